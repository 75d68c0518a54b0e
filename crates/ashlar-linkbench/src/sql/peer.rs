//! MariaDB as an engine under the driver: one server of its own, and clients with two connections each.

use super::server::{self, Server};
use super::tables::{self, DATABASE, Question};
use super::wire::{Connection, Fault, Param, Row};
use ashlar_peers::client::{Bounds, Changes, Client};
use ashlar_peers::engine::EngineName;
use ashlar_peers::measure;
use ashlar_peers::operations::Operations;
use ashlar_peers::peer::{Cursor, Entries, Lent, NoWriter, Peer, Read, Result, Written};
use ashlar_peers::settings::Settings;
use ashlar_peers::space::{Taken, taken};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long settling may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// The pause between two looks, and how many looks in a row must find no work. They take 100 ms, in which a compaction of more than 10
/// MiB a second writes: RocksDB writes and counts a MiB at a time.
const PAUSE: Duration = Duration::from_millis(20);
const LOOKS: u32 = 6;

/// The status variables of MyRocks with the bytes that flushes and compactions wrote.
const FLUSHED: &str = "ROCKSDB_FLUSH_WRITE_BYTES";
const COMPACTED: &str = "ROCKSDB_COMPACT_WRITE_BYTES";

/// How often a batch of the load runs that meets a lock of another one.
const TRIES: u32 = 100;

/// A server with an open database.
pub struct MariaDb {
    /// A connection for what belongs to no client. It is closed before the server ends.
    own: Mutex<Connection>,
    server: Server,
    engine: EngineName,
    version: String,
    /// What the directory took before the first row.
    empty: Taken,
}

impl MariaDb {
    /// The options of the server, those of its paths left out.
    pub fn options(&self) -> String {
        self.server.options().join(" ")
    }

    /// Bytes of `dir`, less those of a server without rows: preallocated logs and the tables of the system.
    pub fn taken(&self, dir: &Path) -> Taken {
        let now = taken(dir);
        Taken {
            allocated: now.allocated.saturating_sub(self.empty.allocated),
            apparent: now.apparent.saturating_sub(self.empty.apparent),
        }
    }

    /// What a server without rows takes, in words.
    pub fn empty(&self) -> String {
        format!("{} MiB, which the sizes leave out", self.empty.allocated >> 20)
    }

    /// The text of a fault, with the end of the server's log if the server has ended.
    pub fn explained(&self, fault: &Fault) -> String {
        self.server.explained(fault)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> std::result::Result<T, Fault>) -> Result<T> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut own).map_err(|fault| self.explained(&fault))
    }

    fn connect(&self) -> Result<Connection> {
        let mut connection = self.server.connect()?;
        let used = connection.run(&format!("USE {DATABASE}"));
        used.map(|_| connection).map_err(|fault| self.explained(&fault))
    }

    /// The sum of the status variables whose names are like `names`.
    fn status(&self, names: &str) -> Result<u64> {
        let text = "SELECT CAST(COALESCE(SUM(VARIABLE_VALUE), 0) AS UNSIGNED) \
                    FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME LIKE ?";
        self.number(text, &[Param::Bytes(names.as_bytes())])
    }

    fn number(&self, text: &str, params: &[Param<'_>]) -> Result<u64> {
        let mut number = None;
        self.with(|own| own.select(text, params, |row| number = row.number(0)))?;
        number.ok_or_else(|| format!("the server answers no number: {text}"))
    }

    /// Work that the server still has to do in the background.
    fn left(&self) -> Result<u64> {
        if self.engine == EngineName::Myrocks {
            let text = "SELECT CAST(COALESCE(SUM(VALUE), 0) AS UNSIGNED) FROM information_schema.ROCKSDB_CFSTATS \
                        WHERE STAT_TYPE IN ('NUM_IMMUTABLE_MEM_TABLE', 'MEM_TABLE_FLUSH_PENDING', 'COMPACTION_PENDING')";
            return self.number(text, &[]);
        }
        self.status("INNODB_BUFFER_POOL_PAGES_DIRTY")
    }

    /// Bytes that flushes and compactions of MyRocks wrote. A compaction that runs is not pending: only these bytes show it.
    fn background_bytes(&self) -> Result<u64> {
        if self.engine != EngineName::Myrocks {
            return Ok(0);
        }
        Ok(self.status(FLUSHED)? + self.status(COMPACTED)?)
    }

    fn run(&self, text: &str) -> Result<()> {
        self.with(|own| own.run(text)).map(drop)
    }

    /// Ends the server's background work, with at most [`PATIENCE`] from `begun`.
    fn settle_since(&self, begun: Instant) -> Result<()> {
        let hurry = || {
            let left = PATIENCE.saturating_sub(begun.elapsed()).max(PAUSE);
            self.with(|own| own.wait_at_most(Some(left)))
        };
        let (begin, end) = match self.engine {
            EngineName::Myrocks => ("SET GLOBAL rocksdb_force_flush_memtable_now = 1", None),
            _ => (
                "SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0, innodb_max_dirty_pages_pct = 0",
                Some(
                    "SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT, innodb_max_dirty_pages_pct_lwm = DEFAULT",
                ),
            ),
        };
        hurry()?;
        self.run(begin)?;
        let mut looks = Looks::default();
        loop {
            hurry()?;
            let left = self.left()?;
            if looks.idle(left, self.background_bytes()?) {
                break;
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!(
                    "the server has background work left ({left}) after {} s",
                    PATIENCE.as_secs()
                ));
            }
            std::thread::sleep(PAUSE);
        }
        hurry()?;
        end.map_or(Ok(()), |end| self.run(end))
    }
}

impl Operations for MariaDb {
    type Transactions<'a> = NoWriter;
}

impl Peer for MariaDb {
    type Cursor<'a> = Never;
    type Reader<'a> = Never;
    type Writer<'a> = NoWriter;
    type Client<'a> = Handle<'a>;

    fn open(engine: EngineName, dir: &Path, settings: &Settings, library: Option<&str>) -> Result<MariaDb> {
        let program = Path::new(library.ok_or("no path of MariaDB's server")?);
        let server = Server::start(engine, dir, settings, program)?;
        let mut own = server.connect()?;
        let mut version = String::new();
        let mut prepare = || {
            for statement in tables::schema(engine) {
                own.run(&statement)?;
            }
            own.select("SELECT VERSION()", &[], |row| {
                version = String::from_utf8_lossy(row.bytes(0).unwrap_or_default()).into_owned();
            })
        };
        prepare().map_err(|fault| server.explained(&fault))?;
        let empty = empty(dir, || {
            let mut rows = None;
            let asked = own.select(tables::HAS_ROWS, &[], |row| rows = row.number(0));
            asked.map_err(|fault| server.explained(&fault))?;
            Ok(rows != Some(0))
        })?;
        measure::beside(server.process());
        Ok(MariaDb { own: Mutex::new(own), server, engine, version, empty })
    }

    fn version(&self) -> String {
        let engine = match self.engine {
            EngineName::Myrocks => "MyRocks",
            _ => "InnoDB, tables uncompressed",
        };
        format!("{} (a server beside the driver, Unix socket); {engine}, pages of 16 KiB", self.version)
    }

    fn put(&self, _: &[u8], _: &[u8]) -> Result<()> {
        has_tables()
    }

    fn put_all(&self, _: &Entries) -> Result<()> {
        has_tables()
    }

    fn reader(&self) -> Result<Never> {
        has_tables()
    }

    fn client(&self) -> Result<Handle<'_>> {
        let (plain, atomic) = (self.connect()?, self.connect()?);
        let mut handle = Handle { of: self, plain, atomic };
        let set = handle.atomic.run("SET autocommit = 0");
        set.map(|_| handle).map_err(|fault| self.explained(&fault))
    }

    fn cursor(&self) -> Result<Never> {
        has_tables()
    }

    fn settle(&self) -> Result<()> {
        self.settle_since(Instant::now())?;
        self.with(|own| own.wait_at_most(None))
    }

    fn written(&self) -> Written {
        if self.engine != EngineName::Myrocks {
            return Written::default();
        }
        let of = |names| self.status(names).ok();
        Written { flush: of(FLUSHED), compaction: of(COMPACTED), stalled: None }
    }

    fn close(self) -> Result<()> {
        measure::beside(None);
        drop(self.own);
        self.server.stop()
    }
}

fn has_tables<T>() -> Result<T> {
    Err("not offered: keys and values; a server has tables".to_owned())
}

/// What the directory `dir` takes without rows. The first start that creates the tables measures it, and keeps the numbers in a file for
/// later starts. An interrupted first start leaves no file and no rows, so the next start measures.
fn empty(dir: &Path, has_rows: impl FnOnce() -> Result<bool>) -> Result<Taken> {
    let file = server::home(dir).join("empty-bytes");
    let said = |e: std::io::Error| format!("{}: {e}", file.display());
    match std::fs::read_to_string(&file) {
        Ok(text) => {
            let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
            let both = numbers.next().zip(numbers.next());
            let (allocated, apparent) =
                both.ok_or_else(|| format!("{}: not the two sizes of an empty server", file.display()))?;
            Ok(Taken { allocated, apparent })
        }
        Err(e) if e.kind() == ErrorKind::NotFound && !has_rows()? => {
            let now = taken(dir);
            // A file that is cut short would not be seen as such.
            let beside = file.with_extension("new");
            let written = std::fs::write(&beside, format!("{} {}", now.allocated, now.apparent));
            written.and_then(|()| std::fs::rename(&beside, &file)).map_err(said)?;
            Ok(now)
        }
        Err(e) => {
            Err(format!("{}: the sizes of the rows are not known: load into another directory", said(e)))
        }
    }
}

/// What the looks at a server that settles found.
#[derive(Debug, Default)]
struct Looks {
    /// How many in a row found no work.
    quiet: u32,
    /// The bytes of the look before.
    written: Option<u64>,
}

impl Looks {
    /// Adds a look that found `left` work and `written` bytes of earlier work. True after [`LOOKS`] looks without work, between which the
    /// server wrote nothing.
    fn idle(&mut self, left: u64, written: u64) -> bool {
        let before = self.written.replace(written);
        self.quiet = match left {
            0 if before == Some(written) => self.quiet + 1,
            0 => 1,
            _ => 0,
        };
        self.quiet >= LOOKS
    }
}

/// A client's connections. Load and check use the first one, and so do the operations that read: each of their statements is a
/// transaction. The second one is for operations of several statements.
pub struct Handle<'a> {
    of: &'a MariaDb,
    pub(super) plain: Connection,
    pub(super) atomic: Connection,
}

impl<'a> Handle<'a> {
    /// The server.
    pub fn server(&self) -> &'a MariaDb {
        self.of
    }

    fn apply_once(&mut self, statements: &[String]) -> std::result::Result<(), Fault> {
        self.plain.run("START TRANSACTION")?;
        for statement in statements {
            self.plain.run(statement)?;
        }
        self.plain.run("COMMIT").map(drop)
    }

    /// Asks `question` and calls `see` with each row as an entry.
    fn ask(&mut self, question: &Question<'_>, mut see: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let (mut key, mut value, mut whole) = (Vec::new(), Vec::new(), true);
        let each = |row: &Row<'_>| match (question.entry)(row, &mut key, &mut value) {
            Some(()) => see(&key, &value),
            None => whole = false,
        };
        self.plain
            .select(&question.text, &question.params, each)
            .map_err(|fault| self.of.explained(&fault))?;
        if whole { Ok(()) } else { tables::malformed(&question.text) }
    }
}

/// The prefix of all keys in `bounds`. `None`: there is no such prefix.
fn prefix<'a>(bounds: &Bounds<'a>) -> Option<&'a [u8]> {
    let (prefix, rest) = bounds.from.split_at_checked(bounds.to.len())?;
    let (last, head) = bounds.to.split_last()?;
    let begins = prefix
        .split_last()
        .is_some_and(|(byte, before)| before == head && byte.checked_add(1) == Some(*last));
    let carries = || {
        // The last byte of the prefix was 255: the byte behind the range has a carry.
        let kept = prefix.iter().rposition(|byte| *byte != 255)?;
        let same = prefix[..kept] == bounds.to[..kept] && bounds.to[kept] == prefix[kept] + 1;
        (same && bounds.to[kept + 1..].iter().all(|byte| *byte == 0)).then_some(())
    };
    ((begins || carries().is_some()) && rest.iter().all(|byte| *byte == 0)).then_some(prefix)
}

impl Client for Handle<'_> {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        let mut found = None;
        match tables::question(key) {
            Some(question) => self.ask(&question, |_, value| found = Some(value.to_vec()))?,
            None => {
                let text = "SELECT value FROM metatable WHERE name = ?";
                let each = |row: &Row<'_>| found = row.bytes(0).map(<[u8]>::to_vec);
                let asked = self.plain.select(text, &[Param::Bytes(key)], each);
                asked.map_err(|fault| self.of.explained(&fault))?;
            }
        }
        Ok(found.map(|value| see(&value)).is_some())
    }

    /// Entries come in the order that the server chooses. The bounds are those of a space, of a list, or of the links of a fan.
    fn scan(&mut self, bounds: Bounds<'_>, mut see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let question = prefix(&bounds).filter(|_| !bounds.reverse).and_then(tables::question);
        let Some(question) = question else {
            return Err("the SQL form has no scan of these bounds".to_owned());
        };
        // The server sends the rows that are left in any case.
        let mut more = true;
        self.ask(&question, |key, value| more = more && see(key, value))
    }

    fn apply(&mut self, changes: &Changes) -> Result<()> {
        let statements = tables::statements(changes)?;
        for left in (0..TRIES).rev() {
            let Err(fault) = self.apply_once(&statements) else { return Ok(()) };
            // After a lost connection this fails too, and the first fault counts.
            let _ = self.plain.run("ROLLBACK");
            if left == 0 || !fault.is_conflict() {
                return Err(self.of.explained(&fault));
            }
        }
        Ok(())
    }
}

/// Readers and cursors of keys, which a server has not.
pub enum Never {}

impl Read for Never {
    fn get(&mut self, _: &[u8], _: impl FnOnce(&[u8])) -> Result<bool> {
        match *self {}
    }
}

impl Cursor for Never {
    fn first(&mut self) -> Result<Option<Lent<'_>>> {
        match *self {}
    }

    fn seek(&mut self, _: &[u8]) -> Result<Option<Lent<'_>>> {
        match *self {}
    }

    fn next(&mut self) -> Result<Option<Lent<'_>>> {
        match *self {}
    }

    fn check(&self) -> Result<()> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::layout;
    use crate::model::{Fan, Visibility};

    /// The last compaction of MyRocks is not pending: only the bytes that it writes show it.
    #[test]
    fn a_server_that_writes_is_not_idle() {
        let idle = |looks: &[(u64, u64)]| {
            let mut all = Looks::default();
            looks.iter().map(|(left, written)| all.idle(*left, *written)).collect::<Vec<_>>()
        };
        assert_eq!(idle(&[(0, 7); 6]), [false, false, false, false, false, true]);
        let after = |broken: &[(u64, u64)]| idle(&[broken, &[(0, 8); 6]].concat());
        assert_eq!(after(&[(0, 7); 5])[..10], [false; 10], "it wrote");
        assert_eq!(after(&[(1, 8); 5])[..10], [false; 10], "it has work");
        assert_eq!((after(&[(0, 7); 5])[10], after(&[(1, 8); 5])[10]), (true, true));
    }

    #[test]
    fn the_size_without_rows_is_measured_before_the_first_row_or_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let home = server::home(dir.path());
        std::fs::create_dir(&home).unwrap();
        std::fs::write(home.join("data"), [1; 100_000]).unwrap();
        let file = home.join("empty-bytes");
        let why = empty(dir.path(), || Ok(true)).unwrap_err();
        assert!(why.starts_with(&file.display().to_string()) && why.contains("another directory"), "{why}");
        let first = empty(dir.path(), || Ok(false)).unwrap();
        assert!(first.allocated >= 100_000, "{first:?}");
        std::fs::write(home.join("data"), [1; 900_000]).unwrap();
        assert_eq!(empty(dir.path(), || Ok(true)).unwrap(), first);
        std::fs::write(&file, "12").unwrap();
        let why = empty(dir.path(), || Ok(true)).unwrap_err();
        assert!(why.ends_with("empty-bytes: not the two sizes of an empty server"), "{why}");
    }

    /// The bounds of the phases are those of one prefix each; others are refused.
    #[test]
    fn bounds_are_a_prefix_or_are_refused() {
        let of = |from: &[u8], to: &[u8]| prefix(&Bounds::forward(from, to)).map(<[u8]>::to_vec);
        let (from, to) = layout::space(b'l');
        assert_eq!(of(&from, &to), Some(b"l".to_vec()));
        for id1 in [7, 254, 255, 0xffff, 256] {
            let fan = Fan { id1, link_type: 9 };
            let (from, to) = layout::fan_bounds(fan);
            assert_eq!(of(&from, &to), Some(from.to_vec()), "{id1}");
            let (from, to) = layout::list_bounds(fan, Visibility::Visible, u64::MAX);
            assert_eq!(of(&from, &to), Some(from[..to.len()].to_vec()), "{id1}");
            let (from, to) = layout::list_bounds(fan, Visibility::Visible, 5);
            assert_eq!(of(&from, &to), None, "a part of a list");
        }
        let (_, behind) = layout::fan_bounds(Fan { id1: 7, link_type: 9 });
        assert_eq!(
            (of(&behind, b"m"), of(b"a", b"c"), of(b"", b"b"), of(b"a", b"")),
            (None, None, None, None)
        );
    }
}
