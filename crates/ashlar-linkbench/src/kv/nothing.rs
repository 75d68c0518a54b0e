//! A client of an engine that does nothing: the time of requests on it is the driver's own cost.

use ashlar_peers::client::{Bounds, Changes, Client};
use ashlar_peers::peer::Result;
use std::hint::black_box;

/// Finds nothing and accepts every change.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Client for Nothing {
    fn get(&mut self, key: &[u8], _: impl FnOnce(&[u8])) -> Result<bool> {
        black_box(key);
        Ok(false)
    }

    fn scan(&mut self, bounds: Bounds<'_>, _: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        black_box(bounds);
        Ok(())
    }

    fn apply(&mut self, changes: &Changes) -> Result<()> {
        black_box(changes);
        Ok(())
    }
}
