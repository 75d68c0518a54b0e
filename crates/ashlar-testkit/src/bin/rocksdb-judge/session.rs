//! One conversation: a command per line in, answers out.
//!
//! ```text
//! open create|existing|readonly 0xPATH [OPTIONS]    opens; OPTIONS is RocksDB's "name=value;…"
//! open stored 0xPATH                                the same with the options of the newest OPTIONS file
//! with db OPTIONS | with family NAME OPTIONS        prepares the next openings: families that differ, ...
//! with path *|NAME 0xPATH SIZE                      ... db_paths and cf_paths, ...
//! with ttl SECONDS | with transactions [POLICY]     ... a wrapper (POLICY: committed, prepared, unprepared), ...
//! with read NAME NAME | without                     ... read options that are on; back to openings that are not prepared
//! bulk ...                                            as in ashlar_testkit::ops::Bulk
//! sst FAMILY 0xPATH CHANGE ; CHANGE ; …            writes an SST file outside the database
//! ingest FAMILY 0xPATH 0xPATH …                     takes such files; ingest_behind: below all entries
//! export FAMILY 0xDIR                               one family: a line with the comparator, and one per table
//! import NAME COMPARATOR TABLE ; TABLE ; …          makes a family of such tables
//! backup create|list|verify ID|purge KEEP 0xDIR     backups by RocksDB's engine, in DIR
//! backup restore 0xDIR 0xINTO                       ... the newest one
//! undecided | decide commit|rollback 0xNAME         transactions that the opening found prepared
//! close | reopen                                    in order, not by a kill
//! families | create NAME | drop NAME                column families
//! create_families PREFIX COUNT                      several by one call: PREFIX0, PREFIX1, …
//! put … | delete … | single_delete … | merge … | delete_range … | batch … | flush … | compact … | get …    as in ashlar_testkit::ops
//! dump NAME | rdump NAME | digest NAME              contents with every checksum verified
//! probe NAME                                        gets and seeks keys, compared with a scan
//! tables | verify                                   number of tables; the same, all their blocks verified, or "none"
//! ```
//! An answer is any number of lines `= …`, then one line `ok` with perhaps a word after it, or `error: TEXT`.

use crate::capi::{Backups, Database, Functions, OpenMode, Prepared};
use ashlar_testkit::judge::{Digest, ExportedTable};
use ashlar_testkit::text::{from_hex, to_hex};
use ashlar_testkit::{Change, Op};
use std::ffi::CString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

/// The state between two lines.
pub struct Session {
    functions: Rc<Functions>,
    opened: Option<(CString, OpenMode, String)>,
    prepared: Option<Prepared>,
    database: Option<Database>,
}

impl Session {
    /// Nothing open yet.
    pub fn new(functions: Rc<Functions>) -> Session {
        Session { functions, opened: None, prepared: None, database: None }
    }

    /// Runs the command of one line. Returns the word after `ok`.
    ///
    /// # Errors
    /// RocksDB's words, or what of the line is not understood.
    pub fn answer(&mut self, line: &str, out: &mut impl Write) -> Result<String, String> {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "open" => self.open(rest),
            "with" => self.prepared.get_or_insert_default().with(rest).map(|()| String::new()),
            "without" => {
                self.prepared = None;
                Ok(String::new())
            }
            "bulk" => {
                let (path, ..) = self.opened.as_ref().ok_or("nothing was open")?;
                let folder = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes())).parent();
                let folder = folder.ok_or("the root is no database")?;
                let database = self.database.as_mut().ok_or("nothing is open")?;
                database.bulk(&line.parse()?, folder).map(|()| String::new())
            }
            "sst" => self.write_sst(rest),
            "ingest" | "ingest_behind" => {
                let mut words = rest.split_whitespace();
                let family = words.next().ok_or("ingest FAMILY 0xPATH ...")?;
                let paths = words.map(c_path).collect::<Result<Vec<_>, _>>()?;
                let behind = verb == "ingest_behind";
                self.database()?.ingest_files(family, &paths, behind).map(|()| String::new())
            }
            "export" => self.export(rest, out),
            "import" => self.import(rest),
            "backup" => self.back_up(rest, out),
            "undecided" | "decide" => self.prepared_before(rest, out),
            "close" => {
                self.database.take().ok_or("nothing is open")?;
                Ok(String::new())
            }
            "reopen" => {
                self.database = None;
                self.open_again()
            }
            "families" => {
                for name in self.database()?.names() {
                    writeln!(out, "= {name}").map_err(|e| e.to_string())?;
                }
                Ok(String::new())
            }
            "create" | "create_families" => self.create(verb, rest).map(|()| String::new()),
            "drop" => {
                self.database.as_mut().ok_or("nothing is open")?.drop_family(rest).map(|()| String::new())
            }
            "dump" => self.dump(rest, false, out),
            "rdump" => self.dump(rest, true, out),
            "digest" => {
                let mut digest = Digest::new();
                self.database()?.scan(rest, false, |(k, v)| digest.add(&k, &v))?;
                Ok(digest.to_string())
            }
            "probe" => self.database()?.probe(rest).map(|probed| probed.to_string()),
            "verify" => Ok(if self.database()?.verify()? {
                self.database()?.tables().to_string()
            } else {
                "none".into()
            }),
            "tables" => Ok(self.database()?.tables().to_string()),
            _ => self.operate(&line.parse()?),
        }
    }

    /// `create NAME`, or `create_families PREFIX COUNT`.
    fn create(&mut self, verb: &str, rest: &str) -> Result<(), String> {
        let database = self.database.as_mut().ok_or("nothing is open")?;
        if verb == "create" {
            return database.create_family(rest);
        }
        let (prefix, count) = rest.split_once(' ').ok_or("create_families PREFIX COUNT")?;
        let count = count.parse().map_err(|_| format!("{count} is no number"))?;
        database.create_families(prefix, count)
    }

    /// Lists the transactions that the opening found prepared, or decides on one.
    fn prepared_before(&mut self, rest: &str, out: &mut impl Write) -> Result<String, String> {
        let database = self.database.as_mut().ok_or("nothing is open")?;
        if let Some((how, name)) = rest.split_once(' ') {
            let name = from_hex(name).ok_or("the name is not hex")?;
            return database.decide(how == "commit", &name).map(|()| String::new());
        }
        for name in database.undecided()? {
            writeln!(out, "= {}", to_hex(&name)).map_err(|e| e.to_string())?;
        }
        Ok(String::new())
    }

    fn database(&self) -> Result<&Database, String> {
        self.database.as_ref().ok_or_else(|| "nothing is open".to_owned())
    }

    fn back_up(&self, rest: &str, out: &mut impl Write) -> Result<String, String> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let open = |dir: &str| Backups::open(&self.functions, &c_path(dir)?);
        let number = |text: &str| text.parse().map_err(|_| format!("not a number: {text}"));
        match words.as_slice() {
            ["create", dir] => open(dir)?.create(self.database()?),
            ["restore", dir, into] => open(dir)?.restore(&c_path(into)?),
            ["verify", id, dir] => open(dir)?.verify(number(id)?),
            ["purge", keep, dir] => open(dir)?.purge(number(keep)?),
            ["list", dir] => open(dir)?.list()?.into_iter().try_for_each(|(id, time, bytes, files)| {
                writeln!(out, "= {id} {time} {bytes} {files}").map_err(|e| e.to_string())
            }),
            _ => Err("backup create|list|verify ID|purge KEEP 0xDIR, or backup restore 0xDIR 0xINTO".into()),
        }
        .map(|()| String::new())
    }

    fn export(&self, rest: &str, out: &mut impl Write) -> Result<String, String> {
        let (family, dir) = rest.split_once(' ').ok_or("export FAMILY 0xDIR")?;
        let (comparator, tables) = self.database()?.export_family(family, &c_path(dir)?)?;
        let mut lines = std::iter::once(comparator).chain(tables.iter().map(ExportedTable::to_string));
        lines.try_for_each(|line| writeln!(out, "= {line}")).map_err(|e| e.to_string())?;
        Ok(String::new())
    }

    fn import(&mut self, rest: &str) -> Result<String, String> {
        let mut words = rest.splitn(3, ' ');
        let (Some(name), Some(comparator), Some(list)) = (words.next(), words.next(), words.next()) else {
            return Err("import NAME COMPARATOR TABLE ; TABLE".into());
        };
        let tables = list.split(" ; ").map(str::parse).collect::<Result<Vec<ExportedTable>, _>>()?;
        let database = self.database.as_mut().ok_or("nothing is open")?;
        database.import_family(name, comparator, &tables).map(|()| String::new())
    }

    fn write_sst(&self, rest: &str) -> Result<String, String> {
        let mut words = rest.splitn(3, ' ');
        let (family, path, list) = (words.next(), words.next(), words.next());
        let (Some(family), Some(path), Some(list)) = (family, path, list) else {
            return Err("sst FAMILY 0xPATH CHANGE ; CHANGE".into());
        };
        let Op::Write { changes, .. } = format!("batch {list}").parse()? else {
            return Err("not a list of changes".into());
        };
        self.database()?.write_sst(family, &c_path(path)?, &changes).map(|()| String::new())
    }

    fn open(&mut self, rest: &str) -> Result<String, String> {
        let mut words = rest.splitn(3, ' ');
        let mode = match words.next() {
            Some("create") => OpenMode::Create,
            Some("existing") => OpenMode::Existing,
            Some("readonly") => OpenMode::ReadOnly,
            Some("stored") => OpenMode::Stored,
            _ => return Err("open create|existing|readonly|stored 0xPATH [OPTIONS]".into()),
        };
        let path = words.next().and_then(from_hex).ok_or("the path is not hex")?;
        let path = CString::new(path).map_err(|e| e.to_string())?;
        if self.database.is_some() {
            return Err("a database is open already".into());
        }
        self.opened = Some((path, mode, words.next().unwrap_or("").to_owned()));
        self.open_again()
    }

    fn open_again(&mut self) -> Result<String, String> {
        let (path, mode, options) = self.opened.as_ref().ok_or("nothing was open")?;
        let database = match &self.prepared {
            Some(prepared) if matches!(mode, OpenMode::Create | OpenMode::Existing) => {
                Database::open_prepared(&self.functions, path, *mode, prepared)?
            }
            _ => Database::open(&self.functions, path, *mode, options)?,
        };
        if let Some(prepared) = &self.prepared {
            database.read_with(&prepared.reads)?;
        }
        let families = database.names().count();
        self.database = Some(database);
        Ok(families.to_string())
    }

    fn dump(&self, family: &str, backwards: bool, out: &mut impl Write) -> Result<String, String> {
        let (mut entries, mut written) = (0_u64, Ok(()));
        self.database()?.scan(family, backwards, |(key, value)| {
            if written.is_ok() {
                written = writeln!(out, "= {} {}", to_hex(&key), to_hex(&value));
                entries += 1;
            }
        })?;
        written.map_err(|e| e.to_string())?;
        Ok(entries.to_string())
    }

    fn operate(&self, op: &Op) -> Result<String, String> {
        let database = self.database()?;
        match op {
            Op::Write { changes, sync } => write(database, changes, *sync),
            Op::Flush { family } => database.flush(family).map(|()| String::new()),
            Op::Compact { family } => database.compact(family).map(|()| String::new()),
            Op::Get { family, key, at: None } => {
                Ok(database.get(family, key)?.map_or("none".to_owned(), |value| to_hex(&value)))
            }
            other => Err(format!("the judge does not do this: {other}")),
        }
    }
}

fn c_path(hex: &str) -> Result<CString, String> {
    CString::new(from_hex(hex).ok_or("the path is not hex")?).map_err(|e| e.to_string())
}

fn write(database: &Database, changes: &[Change], sync: bool) -> Result<String, String> {
    database.write(changes, sync).map(|()| String::new())
}
