//! MariaDB as an engine under the driver: one server of its own, and clients with two connections each.

use super::server::Server;
use super::tables::{self, DATABASE, Question};
use super::wire::{Connection, Fault, Param, Row};
use ashlar_peers::client::{Bounds, Changes, Client};
use ashlar_peers::engine::EngineName;
use ashlar_peers::measure;
use ashlar_peers::operations::Operations;
use ashlar_peers::peer::{Cursor, Entries, Lent, NoWriter, Peer, Read, Result, Written};
use ashlar_peers::settings::Settings;
use ashlar_peers::space::{Taken, taken};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long settling may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// The pause between two looks, and how many looks in a row must find no work.
const PAUSE: Duration = Duration::from_millis(20);
const LOOKS: u32 = 3;

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

    /// What `dir` takes, without what a server without rows took: preallocated logs and the tables of the system.
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

    fn run(&self, text: &str) -> Result<()> {
        self.with(|own| own.run(text)).map(drop)
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
        let empty = empty(dir, server.created)?;
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
        let (begin, end) = match self.engine {
            EngineName::Myrocks => ("SET GLOBAL rocksdb_force_flush_memtable_now = 1", None),
            _ => (
                "SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0, innodb_max_dirty_pages_pct = 0",
                Some(
                    "SET GLOBAL innodb_max_dirty_pages_pct = DEFAULT, innodb_max_dirty_pages_pct_lwm = DEFAULT",
                ),
            ),
        };
        self.run(begin)?;
        let (begun, mut looks) = (Instant::now(), 0);
        while looks < LOOKS {
            let left = self.left()?;
            looks = if left == 0 { looks + 1 } else { 0 };
            if begun.elapsed() > PATIENCE {
                return Err(format!(
                    "the server has background work left ({left}) after {} s",
                    PATIENCE.as_secs()
                ));
            }
            std::thread::sleep(PAUSE);
        }
        end.map_or(Ok(()), |end| self.run(end))
    }

    fn written(&self) -> Written {
        if self.engine != EngineName::Myrocks {
            return Written::default();
        }
        let of = |names| self.status(names).ok();
        Written { flush: of("ROCKSDB_FLUSH_WRITE_BYTES"), compaction: of("ROCKSDB_COMPACT_WRITE_BYTES") }
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

/// What the directory `dir` of a new server takes. An older one keeps the numbers in a file.
fn empty(dir: &Path, new: bool) -> Result<Taken> {
    let (file, now) = (dir.join("empty-bytes"), taken(dir));
    if new {
        let text = format!("{} {}", now.allocated, now.apparent);
        std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
        return Ok(now);
    }
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let mut numbers = text.split_whitespace().map_while(|number| number.parse().ok());
    Ok(Taken { allocated: numbers.next().unwrap_or(0), apparent: numbers.next().unwrap_or(0) })
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
