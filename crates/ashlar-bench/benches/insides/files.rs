//! Records appended to a file by one system call each, as the log does.

use crate::case::{Bench, Place};
use ashlar_env::WriteFile;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of the record of a put of 16 + 100 bytes.
const RECORD: usize = 141;

/// What the file holds where the records go.
#[derive(Clone, Copy)]
enum Ahead {
    /// Nothing: each write makes the file longer.
    Nothing,
    /// Space that was reserved after its end.
    Space,
    /// Zeros, written before.
    Zeros,
}

struct Appends {
    env: ashlar_env::Env,
    path: PathBuf,
    file: Option<Arc<dyn WriteFile>>,
    ahead: Ahead,
    count: u64,
}

fn appends(place: &Place<'_>, name: &str, ahead: Ahead) -> Box<dyn Bench> {
    let path = place.dir.join(name);
    Box::new(Appends { env: place.env.clone(), path, file: None, ahead, count: place.size(20_000, 1000) })
}

/// To a file that grows.
pub fn plain(place: &Place<'_>) -> Box<dyn Bench> {
    appends(place, "plain", Ahead::Nothing)
}

/// Into space that was reserved.
pub fn fallocated(place: &Place<'_>) -> Box<dyn Bench> {
    appends(place, "fallocated", Ahead::Space)
}

/// Over zeros.
pub fn zeroed(place: &Place<'_>) -> Box<dyn Bench> {
    appends(place, "zeroed", Ahead::Zeros)
}

impl Bench for Appends {
    fn fresh(&mut self) {
        let file = self.env.fs.create(&self.path).unwrap();
        let bytes = self.count * RECORD as u64;
        match self.ahead {
            Ahead::Nothing => {}
            Ahead::Space => file.allocate(0, bytes).unwrap(),
            Ahead::Zeros => file.write_at(&vec![0; usize::try_from(bytes).unwrap()], 0).unwrap(),
        }
        self.file = Some(file);
    }

    fn round(&mut self) -> u64 {
        let file = self.file.as_ref().unwrap();
        let record = [7; RECORD];
        for at in 0..self.count {
            file.write_at(&record, at * RECORD as u64).unwrap();
        }
        self.count
    }
}
