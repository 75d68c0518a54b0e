//! What a repair knows: of the directory, and of its families before the WAL files are read.

use super::found::Found;
use ashlar_base::{Error, Order, Result};
use ashlar_engine::column_family::DEFAULT_FAMILY;
use ashlar_engine::for_repair::Settings;
use ashlar_env::Env;
use ashlar_format::version_edit::VersionEdit;
use ashlar_options::{DbOptions, FamilyOptions, StoredFamily};
use ashlar_tree::version::FamilyState;
use std::cell::OnceCell;
use std::path::Path;

/// More levels than any family has.
pub(super) const LEVELS_MAX: usize = 64;

/// The state of a repair.
pub(super) struct Repair<'a> {
    pub(super) env: Env,
    pub(super) dir: &'a Path,
    pub(super) options: DbOptions,
    pub(super) settings: Settings,
    /// The families that the OPTIONS file lists.
    pub(super) stored: Vec<StoredFamily>,
    pub(super) found: Found,
    /// Whether more families than `default` are named. Empty: not asked yet.
    pub(super) has_several: OnceCell<bool>,
    pub(super) session_id: String,
}

/// What a repair knows of a family before the WAL files are read.
pub(super) struct Begun {
    pub(super) state: FamilyState,
    /// The new tables and blob files or, without a MANIFEST, all there are.
    pub(super) edit: VersionEdit,
}

impl Repair<'_> {
    /// The settings of a family whose keys are in `order`, whatever order was listed.
    pub(super) fn settings(&self, family: &str, order: &Order) -> FamilyOptions {
        let mut options = self.settings.of(family, order);
        (options.order, options.table.order) = (order.clone(), order.clone());
        options
    }

    /// The order of a family's keys: a built-in one, or a comparator of that name that the caller gave for the family or for
    /// `default`.
    pub(super) fn order(&self, family: &str, comparator: Option<&str>) -> Result<Order> {
        let Some(name) = comparator else { return Ok(Order::Bytewise) };
        let given = [self.settings.given_order(family), self.settings.given_order(DEFAULT_FAMILY)];
        let given = || given.into_iter().find(|order| order.name() == name);
        Order::by_name(name).or_else(given).ok_or_else(|| {
            Error::other_comparator(family, name, None).hint("List the family with its comparator")
        })
    }
}
