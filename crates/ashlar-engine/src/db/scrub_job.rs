//! The scrubber: reads every table and blob file repeatedly, at a limited rate, to find damage before a read needs the
//! damaged data.
//!
//! 1. Files are read in the order of their numbers, one at a time, through a new file handle and past the cache. A version is held
//!    only while one of its files is read, so files that become obsolete are removed and skipped.
//! 2. The first file is chosen at random, so that every file is reached even if a database is never open for a whole
//!    round. A round takes at least an hour.
//! 3. Damage changes nothing and is reported once: as an event, and by [`Db::scrubbed`] with the keys at risk. A failed
//!    read is no damage; it is reported, and the next round retries.
//! 4. Only a close waits for the scrubber. It pauses while background work is paused.

use super::Db;
use super::core::Core;
use super::job::Run;
use super::work::Work;
use ashlar_base::{Error, FileNumber, Result};
use ashlar_blob::{BlobReader, BlobVerified};
use ashlar_env::{JobKind, StepBudget, StepResult};
use ashlar_format::filename::FileKind;
use ashlar_observe::Scrubbed;
use ashlar_options::Event;
use ashlar_table::{TableReader, Verification};
use ashlar_tree::check::{CheckReport, Damage, Risk, check_file};
use ashlar_tree::version::Version;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The minimum time between the beginnings of two rounds.
const ROUND: Duration = Duration::from_secs(3600);

/// The interval of checks while background work is paused.
const PAUSED: Duration = Duration::from_secs(1);

/// The scrubber's position and account.
pub(super) struct ScrubJob {
    /// When the round began.
    begun: Duration,
    /// Files up to this number were read in this round.
    after: FileNumber,
    reading: Option<Reading>,
    /// When the pause for the bytes read so far ends; a wake-up does not end it earlier.
    paid_at: Duration,
    /// Files whose damage was reported.
    told: BTreeSet<FileNumber>,
}

/// The file being read, and the version that keeps it.
struct Reading {
    family: String,
    version: Arc<Version>,
    number: FileNumber,
    size: u64,
    /// Bytes of the file that a pause has accounted for.
    paid: u64,
    content: Content,
}

enum Content {
    Unopened,
    Table(Verification<Arc<TableReader>>),
    Blobs(Arc<BlobReader>, BlobVerified),
}

impl Reading {
    /// Reads further. True: the end was reached.
    fn step(&mut self, core: &Core, bytes: u64) -> Result<bool> {
        match &mut self.content {
            Content::Unopened => {
                self.content = self.open(core)?;
                Ok(false)
            }
            Content::Table(verification) => verification.step(bytes),
            Content::Blobs(reader, done) => reader.verify_some(done, bytes),
        }
    }

    fn open(&self, core: &Core) -> Result<Content> {
        if let Some((_, file)) = self.version.files().find(|(_, file)| file.number() == self.number) {
            let table = self.version.tables().open(&file.file)?;
            return Verification::begin(table).map(Content::Table);
        }
        let file = core.env.fs.open_read(&core.dir.join(FileKind::Blob(self.number).name()))?;
        let reader = BlobReader::open(file, self.number, None, Some(self.size))?;
        Ok(Content::Blobs(reader, BlobVerified::default()))
    }

    fn bytes(&self) -> u64 {
        match &self.content {
            Content::Unopened => 0,
            Content::Table(verification) => verification.bytes(),
            Content::Blobs(_, done) => done.bytes(),
        }
    }
}

impl ScrubJob {
    /// The next file by number.
    fn next(&self, core: &Core) -> Option<Reading> {
        let versions: Vec<(String, Arc<Version>)> = {
            let state = core.state();
            state.families.iter().map(|f| (f.family.name().to_owned(), Arc::clone(&f.version))).collect()
        };
        let files = versions.iter().flat_map(|(family, version)| {
            let tables = version.files().map(|(_, file)| (file.number(), file.size()));
            let blobs = version.blobs().files().iter().map(|(number, file)| (*number, file.added.bytes));
            tables.chain(blobs).map(move |(number, size)| (number, size, family, version))
        });
        let (number, size, family, version) =
            files.filter(|(number, ..)| *number > self.after).min_by_key(|(number, ..)| *number)?;
        let (family, version) = (family.clone(), Arc::clone(version));
        Some(Reading { family, version, number, size, paid: 0, content: Content::Unopened })
    }

    /// Reads further, or ends a round. Returns the pause after it.
    fn read(&mut self, core: &Core, rate: u64, bytes: usize) -> Duration {
        let Some(mut reading) = self.reading.take().or_else(|| self.next(core)) else {
            core.scrubbed.lock().rounds += 1;
            let now = core.env.clock.now();
            let pause = (self.begun + ROUND).saturating_sub(now);
            (self.after, self.begun) = (FileNumber(0), now + pause);
            return pause;
        };
        let stepped = reading.step(core, bytes as u64);
        // Opening reads index, filter and footer; the last step accounts for their bytes.
        let over = stepped.as_ref().map_or(true, |done| *done);
        let read = if over { reading.size } else { reading.bytes().min(reading.size) };
        let cost = read.saturating_sub(reading.paid);
        reading.paid += cost;
        if over {
            self.after = reading.number;
            let mut scrubbed = core.scrubbed.lock();
            (scrubbed.files, scrubbed.bytes) = (scrubbed.files + 1, scrubbed.bytes + reading.size);
        }
        match stepped {
            Ok(false) => self.reading = Some(reading),
            Ok(true) => {}
            Err(e) => self.tell(core, &reading, &e),
        }
        Duration::from_secs_f64(cost as f64 / rate as f64)
    }

    /// Reports the damage of a file, with the keys at risk.
    fn tell(&mut self, core: &Core, reading: &Reading, cause: &Error) {
        if !cause.is_corruption() && !cause.is_not_found() {
            return core.events.tell(&Event::BackgroundError { work: "scrub", cause: cause.clone() });
        }
        if !self.told.insert(reading.number) {
            return;
        }
        let mut report = CheckReport::default();
        let family = (&*reading.family, &*reading.version);
        check_file(&*core.env.fs, &core.dir, family, reading.number, &mut report);
        if report.damages.is_empty() {
            let name = cause.path().and_then(|p| p.file_name()).unwrap_or_default().to_string_lossy();
            report.damages.push(Damage::of(&name, cause, Risk::Nothing).in_family(&reading.family));
        }
        for damage in &report.damages {
            core.events.tell(&Event::DamageFound { file: damage.file.clone(), cause: damage.to_string() });
        }
        core.scrubbed.lock().damages.extend(report.damages);
    }
}

impl Run for ScrubJob {
    const KIND: JobKind = JobKind::Other("scrub");
    const NAME: &'static str = "the scrubber";
    const WORK: Option<Work> = Some(Work::Scrub);

    fn is_wanted(&self, core: &Core) -> bool {
        !core.is_closed() && core.options().scrub_bytes_per_second > 0
    }

    fn advance(&mut self, core: &Arc<Core>, budget: StepBudget) -> Result<StepResult> {
        if core.state().pauses > 0 {
            return Ok(StepResult::Wait(PAUSED));
        }
        let now = core.env.clock.now();
        if self.paid_at <= now {
            let rate = core.options().scrub_bytes_per_second.max(1);
            self.paid_at = now + self.read(core, rate, budget.bytes);
        }
        Ok(match self.paid_at.saturating_sub(now) {
            Duration::ZERO => StepResult::Again,
            pause => StepResult::Wait(pause),
        })
    }

    fn failed(&mut self, _: &Arc<Core>, _: &Error) -> Duration {
        PAUSED
    }

    fn give_up(&mut self, _: &Core) {
        self.reading = None;
    }

    fn ended(&self, core: &Arc<Core>) {
        core.progress.notify();
    }
}

impl Core {
    /// Starts the scrubber, if the settings enable it.
    pub(super) fn start_scrub(self: &Arc<Self>) {
        if self.options().scrub_bytes_per_second == 0 {
            return;
        }
        let last = self.versions.next_file_number().0.max(1);
        let begun = self.env.clock.now();
        let after = FileNumber(self.env.rand.next_u64() % last);
        let (reading, told, paid_at) = (None, BTreeSet::new(), begun);
        self.start(Work::Scrub, ScrubJob { begun, after, reading, paid_at, told });
    }
}

impl Db {
    /// What the scrubber has read and found since the open; empty unless `scrub_bytes_per_second` is set.
    pub fn scrubbed(&self) -> Scrubbed {
        let core = self.core();
        if core.database.is_inherited() { Scrubbed::default() } else { core.scrubbed.lock().clone() }
    }
}
