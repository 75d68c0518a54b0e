//! The collectors of one table: called, contained, and their properties joined.
//!
//! A collector that fails or panics is dropped, with its properties; the table does not depend on it. What went wrong is
//! noted for the report of the table.

use crate::options::{TableIdentity, TableOptions};
use ashlar_base::Result;
use ashlar_base::ext::table_properties_collector::{
    CollectedEntry, CollectorContext, RESERVED, TablePropertiesCollector, UserProperties,
};
use ashlar_base::panics::contained;
use ashlar_format::table::Properties;

/// The collected properties of a table have this many bytes at most, because readers keep them in memory.
const MOST_BYTES: usize = 64 << 20;

/// Why a table lacks properties of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorFailure {
    /// The name of the factory.
    pub collector: String,
    /// What happened.
    pub cause: String,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Collectors {
    active: Vec<Active>,
    failures: Vec<CollectorFailure>,
}

#[derive(Debug)]
struct Active {
    name: String,
    collector: Box<dyn TablePropertiesCollector>,
}

/// What the collectors of a table gave.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) properties: UserProperties,
    pub(super) needs_compaction: bool,
    pub(super) failures: Vec<CollectorFailure>,
}

impl Collectors {
    /// `None` if there is nothing to call and nothing to report.
    pub(super) fn new(options: &TableOptions, identity: &TableIdentity) -> Option<Box<Collectors>> {
        let family = Some(identity.family_id).filter(|id| *id != Properties::UNKNOWN_FAMILY);
        let context = CollectorContext::new(family, &identity.family_name, identity.level);
        let mut all = Collectors { active: Vec::new(), failures: Vec::new() };
        for factory in &options.collectors {
            let made = contained(|| (factory.name().to_owned(), factory.create(&context)));
            match made {
                Some((name, Some(collector))) => all.active.push(Active { name, collector }),
                Some((_, None)) => {}
                None => all.failures.push(CollectorFailure {
                    collector: contained(|| factory.name().to_owned()).unwrap_or_default(),
                    cause: "the factory panicked".to_owned(),
                }),
            }
        }
        (!all.active.is_empty() || !all.failures.is_empty()).then(|| Box::new(all))
    }

    /// Shows an entry to all collectors.
    #[inline(never)]
    pub(super) fn add(&mut self, entry: &CollectedEntry<'_>) {
        self.each(|collector| collector.add(entry));
    }

    /// Shows the end of a data block to all collectors.
    pub(super) fn close_block(&mut self, raw_bytes: usize) {
        self.each(|collector| {
            collector.close_block(raw_bytes as u64);
            Ok(())
        });
    }

    fn each(&mut self, mut call: impl FnMut(&mut dyn TablePropertiesCollector) -> Result<()>) {
        let mut at = 0;
        while let Some(active) = self.active.get_mut(at) {
            match outcome(contained(|| call(&mut *active.collector))) {
                Ok(()) => at += 1,
                Err(cause) => {
                    let collector = self.active.remove(at).end();
                    self.failures.push(CollectorFailure { collector, cause });
                }
            }
        }
    }

    /// Asks all collectors for the properties of the table.
    pub(super) fn finish(mut self) -> Collected {
        let failures = std::mem::take(&mut self.failures);
        let mut collected = Collected { failures, ..Collected::default() };
        let mut room = MOST_BYTES;
        for mut active in std::mem::take(&mut self.active) {
            let collector = &mut active.collector;
            let done = contained(|| collector.finish().map(|own| (own, collector.needs_compaction())));
            let cause = match outcome(done) {
                Ok((own, needs_compaction)) => {
                    collected.needs_compaction |= needs_compaction;
                    collected.take(own, &mut room)
                }
                Err(cause) => Some(cause),
            };
            let collector = active.end();
            collected.failures.extend(cause.map(|cause| CollectorFailure { collector, cause }));
        }
        collected
    }
}

impl Drop for Collectors {
    /// Ends the collectors of a table that is given up.
    fn drop(&mut self) {
        self.active.drain(..).for_each(|active| drop(active.end()));
    }
}

impl Active {
    /// Drops the collector, which may panic, and returns its name.
    fn end(self) -> String {
        let Active { name, collector } = self;
        let _ = contained(|| drop(collector));
        name
    }
}

impl Collected {
    /// Takes the properties of one collector. Returns why some are left out.
    fn take(&mut self, own: UserProperties, room: &mut usize) -> Option<String> {
        let bytes: usize = own.iter().map(|(name, value)| name.len().saturating_add(value.len())).sum();
        let Some(left) = room.checked_sub(bytes) else {
            return Some(format!("it gave {bytes} bytes of properties; a table takes {MOST_BYTES}"));
        };
        *room = left;
        let mut left_out = Vec::new();
        for (name, value) in own {
            if name.is_empty() || name.starts_with(RESERVED.as_bytes()) || self.properties.contains_key(&name)
            {
                left_out.push(format!("{:?}", name.escape_ascii().to_string()));
            } else {
                self.properties.insert(name, value);
            }
        }
        (!left_out.is_empty()).then(|| {
            format!("names that are empty, begin with {RESERVED}, or are taken: {}", left_out.join(", "))
        })
    }
}

fn outcome<T>(done: Option<Result<T>>) -> Result<T, String> {
    match done {
        Some(Ok(value)) => Ok(value),
        Some(Err(e)) => Err(e.to_string()),
        None => Err("it panicked".to_owned()),
    }
}
