//! Openings whose families differ, whose files lie in several directories, or that wrap the database.

use super::{Bytes, Database, ErrorOut, Functions, Opaque, OpenMode};
use std::ffi::{CStr, CString, c_int};
use std::rc::Rc;

/// What the database is wrapped in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wrapper {
    #[default]
    Plain,
    /// Values expire after so many seconds.
    Ttl(c_int),
    /// With a write policy: 0 writes what is committed, 1 what is prepared, 2 what is not prepared either.
    Transactions(c_int),
}

/// An opening, described line by line (`session.rs`).
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    pub db: String,
    /// Names and options; `default` must be among them.
    pub families: Vec<(String, String)>,
    /// The family's name, or `*` for the database; the directory; its target size.
    pub paths: Vec<(String, CString, u64)>,
    pub wrapper: Wrapper,
    /// Names of read options that are on.
    pub reads: Vec<String>,
}

/// `db_paths` or `cf_paths`, copied by RocksDB when they are set.
struct Paths(Vec<Opaque>);

impl Prepared {
    /// Understands what follows the word `with`.
    pub fn with(&mut self, line: &str) -> Result<(), String> {
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        match what {
            "db" => rest.clone_into(&mut self.db),
            "family" => {
                let (name, options) = rest.split_once(' ').unwrap_or((rest, ""));
                self.families.push((name.to_owned(), options.to_owned()));
            }
            "path" => {
                let words: Vec<&str> = rest.split(' ').collect();
                let [name, path, size] = words.as_slice() else {
                    return Err("with path NAME 0xPATH SIZE".into());
                };
                let path = ashlar_testkit::text::from_hex(path).ok_or("the path is not hex")?;
                let path = CString::new(path).map_err(|e| e.to_string())?;
                self.paths.push(((*name).to_owned(), path, size.parse().map_err(|_| "not a size")?));
            }
            "ttl" => self.wrapper = Wrapper::Ttl(rest.parse().map_err(|_| "not a number of seconds")?),
            "transactions" => {
                let policy =
                    ["committed", "prepared", "unprepared"].iter().position(|policy| *policy == rest);
                let policy = if rest.is_empty() { Some(0) } else { policy };
                let policy = policy.and_then(|policy| c_int::try_from(policy).ok());
                self.wrapper = Wrapper::Transactions(policy.ok_or("not a write policy")?);
            }
            "read" => self.reads = rest.split_whitespace().map(str::to_owned).collect(),
            _ => return Err(format!("nothing opens with {what}")),
        }
        Ok(())
    }
}

impl Database {
    /// Opens `path` as prepared: every family of the preparation with its own options.
    pub fn open_prepared(
        functions: &Rc<Functions>,
        path: &CStr,
        mode: OpenMode,
        prepared: &Prepared,
    ) -> Result<Database, String> {
        let mut database = Database::bare(functions.clone());
        let always = match mode {
            OpenMode::Create => "create_if_missing=true;create_missing_column_families=true;",
            _ => "",
        };
        let db = format!("{always}{}", prepared.db);
        database.parse_into(database.options, &db)?;
        database.set_paths(database.options, prepared, "*", false)?;
        for (name, options) in &prepared.families {
            // SAFETY: a constructor; destroyed once, in `Drop`.
            let own = unsafe { (functions.options_create)() };
            database.family_options.insert(name.clone(), own);
            database.parse_into(own, options)?;
            database.set_paths(own, prepared, name, true)?;
            if options.contains(".u64ts") {
                database.stamped.insert(name.clone());
            }
        }
        let names: Vec<&String> = database.family_options.keys().collect();
        let texts = names.iter().map(|name| CString::new(name.as_str()).map_err(|e| e.to_string()));
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<Bytes> = texts.iter().map(|name| name.as_ptr()).collect();
        let options: Vec<Opaque> = database.family_options.values().copied().collect();
        let mut handles = vec![std::ptr::null_mut(); pointers.len()];
        let arrays = Arrays { names: &pointers, options: &options, handles: &mut handles };
        let (db, transactions) = database.open_wrapped(path, prepared.wrapper, arrays)?;
        (database.db, database.transactions) = (db, transactions);
        database.policy = match prepared.wrapper {
            Wrapper::Transactions(policy) => policy,
            _ => 0,
        };
        database.families = database.family_options.keys().cloned().zip(handles).collect();
        Ok(database)
    }

    /// Turns read options on, for all reads that follow. Those that end a scan with its first prefix are for probes alone.
    pub fn read_with(&self, names: &[String]) -> Result<(), String> {
        for name in names {
            let set = self.functions.extra.read_flag(name)?;
            let all = [self.read_probe, self.read, self.read_newest];
            let few = if name.contains("prefix") { 1 } else { all.len() };
            for &options in &all[..few] {
                // SAFETY: the options are live.
                unsafe { set(options, 1) };
            }
        }
        Ok(())
    }

    fn parse_into(&self, options: Opaque, text: &str) -> Result<(), String> {
        let text = CString::new(text).map_err(|e| e.to_string())?;
        let f = &self.functions;
        // SAFETY: the options object is live, the text is NUL-terminated and only read.
        f.checked(|e| unsafe { (f.options_from_string)(options, text.as_ptr(), options, e) })
    }

    fn set_paths(
        &self,
        options: Opaque,
        prepared: &Prepared,
        name: &str,
        family: bool,
    ) -> Result<(), String> {
        let extra = &self.functions.extra;
        let (create, destroy) = (extra.path_create()?, extra.path_destroy()?);
        let set = if family { extra.set_family_paths() } else { extra.set_db_paths() };
        let own = prepared.paths.iter().filter(|(whose, ..)| whose == name);
        // SAFETY: each text is NUL-terminated and copied by the call.
        let paths = Paths(own.map(|(_, path, size)| unsafe { create(path.as_ptr(), *size) }).collect());
        if paths.0.is_empty() {
            return Ok(());
        }
        // SAFETY: the options are live; the array holds as many live pointers as is said, copied by the call.
        let done = set.map(|set| unsafe { set(options, paths.0.as_ptr(), paths.0.len()) });
        for path in paths.0 {
            // SAFETY: made above, destroyed once.
            unsafe { destroy(path) };
        }
        done
    }

    /// The database, and the one for transactions around it.
    fn open_wrapped(
        &self,
        path: &CStr,
        wrapper: Wrapper,
        arrays: Arrays<'_>,
    ) -> Result<(Opaque, Option<Opaque>), String> {
        let f = &self.functions;
        let Arrays { names, options, handles } = arrays;
        let count = c_int::try_from(names.len()).map_err(|e| e.to_string())?;
        let (names, own, out) = (names.as_ptr(), options.as_ptr(), handles.as_mut_ptr());
        match wrapper {
            Wrapper::Plain => {
                // SAFETY: three arrays of `count` live pointers, the last one writable; strings are NUL-terminated.
                let call =
                    |e: ErrorOut| unsafe { (f.open)(self.options, path.as_ptr(), count, names, own, out, e) };
                Ok((f.checked(call)?, None))
            }
            Wrapper::Ttl(seconds) => {
                let open = f.extra.open_ttl()?;
                let ttls = vec![seconds; options.len()];
                let times = ttls.as_ptr();
                // SAFETY: as above, and `count` numbers.
                let call = |e: ErrorOut| unsafe {
                    open(self.options, path.as_ptr(), count, names, own, out, times, e)
                };
                Ok((f.checked(call)?, None))
            }
            Wrapper::Transactions(policy) => {
                let open = f.extra.open_transactions()?;
                // SAFETY: a constructor; destroyed below.
                let own_options = unsafe { (f.extra.transactions_options()?)() };
                if policy > 0 {
                    // SAFETY: the options are live.
                    unsafe { (f.extra.write_policy()?)(own_options, policy) };
                }
                // SAFETY: as for the plain opening, with live options of transactions.
                let call = |e: ErrorOut| unsafe {
                    open(self.options, own_options, path.as_ptr(), count, names, own, out, e)
                };
                let opened = f.checked(call);
                // SAFETY: made above; the database keeps a copy.
                unsafe { (f.extra.transactions_options_destroy()?)(own_options) };
                let opened = opened?;
                // 7.8.3 gives out no plain handle. There the handle itself serves as one: both are a struct with one
                // pointer to a `DB`, from which `TransactionDB` derives alone.
                let base = f.extra.base().ok();
                // SAFETY: the database is live.
                Ok((base.map_or(opened, |base| unsafe { base(opened) }), Some(opened)))
            }
        }
    }
}

/// Parallel arrays of an opening.
struct Arrays<'a> {
    names: &'a [Bytes],
    options: &'a [Opaque],
    handles: &'a mut [Opaque],
}
