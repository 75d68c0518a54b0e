//! Databases and their families.
//!
//! 1. All kinds of databases are one kind of object, because Java passes the handle of each to the natives of `RocksDB`.
//! 2. A closed database answers an error to whatever still refers to it: iterators, snapshots, transactions, families.
//! 3. The WAL is written without a mapping, so that no signal handler of the JVM is replaced.
//! 4. The handle of the family `default` belongs to its database, and ends with it.

use crate::classes::{BYTES, Class, Method};
use crate::door::{Result, array_of};
use crate::env::{Env, Local, object};
use crate::handles::{self, Lent, Object};
use crate::listeners::tell_handle_closed;
use crate::parts::EnvObject;
use crate::settings::{HasTexts, OptionsObject, Shared, TxnDbOptionsObject};
use crate::transactions::Names;
use ashlar_compat::database::{Database, Held, Mode as Open, Named, families};
use ashlar_compat::listener::Listener;
use ashlar_compat::options::{Options, Texts};
use ashlar_compat::transactions::check_policy;
use ashlardb::{Env as Files, Error, ErrorKind, Family, IoKind};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// How a database is opened.
#[derive(Clone, Debug)]
pub enum Mode {
    /// For reading and writing.
    Write,
    /// For reading.
    Read {
        /// Not if WAL files have writes that no table has.
        refuse_wal: bool,
    },
    /// As a secondary of another process.
    Secondary,
    /// With a time to live of all values, in seconds.
    Ttl(i32),
    /// With pessimistic transactions.
    Locked(Texts),
    /// With optimistic transactions.
    Optimistic,
}

impl Mode {
    /// For reading.
    pub fn read(refuse_wal: bool) -> Mode {
        Mode::Read { refuse_wal }
    }

    /// With a time to live.
    ///
    /// # Errors
    /// `NotSupported`: for reading only.
    pub fn ttl(seconds: i32, reads: bool) -> Result<Mode> {
        if reads {
            return Err(Error::not_supported("a database with times to live for reading only").into());
        }
        Ok(Mode::Ttl(seconds))
    }

    /// With pessimistic transactions.
    ///
    /// # Errors
    /// `NotSupported`: transactions that write before the commit.
    pub fn locked(options: &TxnDbOptionsObject) -> Result<Mode> {
        options.with(|texts| {
            check_policy(texts)?;
            Ok(Mode::Locked(texts.clone()))
        })
    }

    fn open(&self) -> Open {
        match self {
            Mode::Read { refuse_wal } => Open::Read { refuse_wal: *refuse_wal },
            Mode::Secondary => Open::Secondary,
            _ => Open::Write,
        }
    }
}

/// `RocksDB`, `TtlDB`, `TransactionDB`, `OptimisticTransactionDB`.
#[derive(Debug)]
pub struct DbObject {
    /// The database.
    pub database: Database,
    /// The options of a database with pessimistic transactions, whose plain writes take locks.
    pub locking: Option<Texts>,
    /// Its transactions that a program can find by their names.
    pub names: Arc<Names>,
    default: OnceLock<Lent>,
    env: OnceLock<Lent>,
    options: Options,
}

impl Object for DbObject {
    const NAME: &'static str = "RocksDB";
}

impl Drop for DbObject {
    fn drop(&mut self) {
        // The transactions that were found refer to the list of names, so the list does not end by itself.
        self.names.clear();
    }
}

impl DbObject {
    fn open(
        options: &OptionsObject,
        path: &str,
        mode: &Mode,
        named: &[Named<'_>],
    ) -> Result<(DbObject, Vec<Family>)> {
        let mut options = options.0.read().clone();
        // A mapped WAL needs a handler of SIGBUS, and the JVM's own handlers stay.
        options.texts.set("allow_mmap_writes", false);
        let (database, families) = Database::open(&options, Path::new(path), mode.open(), named)?;
        let locking = if let Mode::Locked(texts) = mode { Some(texts.clone()) } else { None };
        Ok((DbObject::of(database, locking, options), families))
    }

    fn of(database: Database, locking: Option<Texts>, options: Options) -> DbObject {
        let (default, env) = (OnceLock::new(), OnceLock::new());
        DbObject { database, locking, names: Arc::default(), default, env, options }
    }

    /// The same database, for an object that does not close it.
    pub fn lent(database: &Database) -> DbObject {
        DbObject::of(database.clone(), None, Options::default())
    }

    /// Files and clock of the database.
    ///
    /// # Errors
    /// Those of [`ashlardb::Env::os`].
    pub fn files(&self) -> Result<Files> {
        Ok(self.database.env()?)
    }

    /// The options of the open.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// A family as it is now; `None`: the family `default`.
    ///
    /// # Errors
    /// Those of [`Database::family`].
    #[inline]
    pub fn family<'a>(&'a self, family: Option<&'a FamilyObject>) -> Result<Held<'a, Family>> {
        Ok(self.database.family(family.map(|family| &family.family))?)
    }
}

/// `ColumnFamilyHandle`.
#[derive(Debug)]
pub struct FamilyObject {
    /// The family.
    pub family: Family,
    /// With which it was opened or created.
    pub options: Options,
    /// Those of its database, which hear of the end of the handle.
    listeners: Vec<Arc<dyn Listener>>,
}

impl FamilyObject {
    /// A family of a database that was opened or created with these options.
    pub fn new(db: &DbObject, family: Family, options: Options) -> FamilyObject {
        FamilyObject { family, options, listeners: db.options.listeners.clone() }
    }
}

impl Object for FamilyObject {
    const NAME: &'static str = "ColumnFamilyHandle";
}

/// A name of Java's bytes.
///
/// # Errors
/// `InvalidArgument`: it is not UTF-8.
pub(crate) fn utf8(name: &[u8]) -> Result<&str> {
    std::str::from_utf8(name).map_err(|_| Error::invalid("a name that is not UTF-8").into())
}

// Each function below is the body of the natives that the description names.

/// Opens a database with its family `default`.
///
/// # Errors
/// Those of [`Database::open`].
pub fn open(options: &OptionsObject, path: &str, mode: &Mode) -> Result<i64> {
    let own = options.0.read().clone();
    let ttl = if let Mode::Ttl(seconds) = mode { Some(*seconds) } else { None };
    let named = [Named { name: "default", options: &own, ttl }];
    let db = DbObject::open(options, path, mode, &named)?.0;
    if !db.options.listeners.is_empty() {
        // RocksDB's open closes a handle of its own, and listeners hear of that.
        let family = FamilyObject::new(&db, db.family(None)?.clone(), own);
        tell_handle_closed(&db.options.listeners, Lent::new(family)?.handle());
    }
    Ok(handles::keep(db)?)
}

/// Opens a database with families. Answers the handle of the database and those of the families.
///
/// # Errors
/// Those of [`Database::open`].
pub fn open_with(
    options: &OptionsObject,
    path: &str,
    mode: &Mode,
    names: &[Vec<u8>],
    families: &[Arc<OptionsObject>],
) -> Result<Vec<i64>> {
    opened(options, path, mode, names, families, &[])
}

/// Opens a database with families that each have a time to live.
///
/// # Errors
/// Those of [`Database::open`]. `NotSupported`: for reading only.
pub fn open_with_ttls(
    options: &OptionsObject,
    path: &str,
    names: &[Vec<u8>],
    families: &[Arc<OptionsObject>],
    ttls: &[i32],
    reads: bool,
) -> Result<Vec<i64>> {
    if ttls.len() < names.len() {
        return Err(Error::invalid("fewer times to live than families").into());
    }
    opened(options, path, &Mode::ttl(0, reads)?, names, families, ttls)
}

fn opened(
    options: &OptionsObject,
    path: &str,
    mode: &Mode,
    names: &[Vec<u8>],
    families: &[Arc<OptionsObject>],
    ttls: &[i32],
) -> Result<Vec<i64>> {
    if families.len() < names.len() {
        return Err(Error::invalid("fewer options than families").into());
    }
    let of: Vec<Options> = families.iter().map(|family| family.0.read().clone()).collect();
    let mut named = Vec::new();
    for (at, (name, options)) in names.iter().zip(&of).enumerate() {
        named.push(Named { name: utf8(name)?, options, ttl: ttls.get(at).copied() });
    }
    let (db, families) = DbObject::open(options, path, mode, &named)?;
    let made = families
        .into_iter()
        .zip(of)
        .map(|(family, options)| Ok(Lent::new(FamilyObject::new(&db, family, options))?));
    let made = made.collect::<Result<Vec<Lent>>>()?;
    let db = handles::keep(db)?;
    Ok([db].into_iter().chain(made.into_iter().map(Lent::given)).collect())
}

/// The handle of the database itself.
pub fn same(handle: i64) -> Result<i64> {
    Ok(handle)
}

/// Closes the database. Iterators, snapshots and transactions that still refer to it fail from then on.
///
/// # Errors
/// Those of [`ashlardb::Db::close`].
pub fn close(db: &DbObject) -> Result<()> {
    Ok(db.database.db().close()?)
}

/// Removes a database.
///
/// # Errors
/// Those of [`ashlar_compat::database::destroy`].
pub fn destroy(path: &str, options: &OptionsObject) -> Result<()> {
    Ok(ashlar_compat::database::destroy(&options.0.read(), Path::new(path))?)
}

/// The names of the families of a directory. As in RocksDB's Java classes, a directory without a database has none.
///
/// # Errors
/// Those of [`families`], except that there is no database.
pub fn list_families<'a>(env: Env<'a>, options: &OptionsObject, path: &str) -> Result<Local<'a>> {
    let names = match families(&options.0.read(), Path::new(path)) {
        Err(e) if e.kind() == ErrorKind::Io(IoKind::NotFound) => Vec::new(),
        names => names?,
    };
    array_of(env, BYTES.get(env)?, &names, |name| env.new_bytes(name.as_bytes()))
}

fn created(db: &DbObject, name: &[u8], options: &OptionsObject, ttl: Option<i32>) -> Result<Lent> {
    let options = options.0.read().clone();
    let family = db.database.create_family(&options, utf8(name)?, ttl)?;
    Ok(Lent::new(FamilyObject::new(db, family, options))?)
}

/// Creates a family.
///
/// # Errors
/// Those of [`Database::create_family`].
pub fn create_family(db: &DbObject, name: &[u8], options: &OptionsObject) -> Result<i64> {
    created(db, name, options, None).map(Lent::given)
}

/// Creates a family whose values have a time to live.
///
/// # Errors
/// Those of [`Database::create_family`].
pub fn create_family_with_ttl(db: &DbObject, name: &[u8], options: &OptionsObject, ttl: i32) -> Result<i64> {
    created(db, name, options, Some(ttl)).map(Lent::given)
}

/// Creates families with the same options. After an error the families that were made stay, without a handle, as in RocksDB.
///
/// # Errors
/// Those of [`Database::create_family`].
pub fn create_families(db: &DbObject, options: &OptionsObject, names: &[Vec<u8>]) -> Result<Vec<i64>> {
    let all = names.iter().map(|name| created(db, name, options, None)).collect::<Result<Vec<Lent>>>()?;
    Ok(all.into_iter().map(Lent::given).collect())
}

/// Creates families, each with its options.
///
/// # Errors
/// As [`create_families`]. `InvalidArgument`: another number of options than of names.
pub fn create_families_each(
    db: &DbObject,
    options: &[Arc<OptionsObject>],
    names: &[Vec<u8>],
) -> Result<Vec<i64>> {
    if options.len() != names.len() {
        return Err(Error::invalid("another number of options than of families").into());
    }
    let made = names.iter().zip(options).map(|(name, options)| created(db, name, options, None));
    let all = made.collect::<Result<Vec<Lent>>>()?;
    Ok(all.into_iter().map(Lent::given).collect())
}

/// Drops a family; its handle stays until it is closed.
///
/// # Errors
/// Those of [`ashlardb::Db::drop_family`].
pub fn drop_family(db: &DbObject, family: &FamilyObject) -> Result<()> {
    Ok(db.database.db().drop_family(&family.family)?)
}

/// Drops families.
///
/// # Errors
/// Those of [`ashlardb::Db::drop_family`].
pub fn drop_families(db: &DbObject, families: &[Arc<FamilyObject>]) -> Result<()> {
    families.iter().try_for_each(|family| drop_family(db, family))
}

/// The handle of the family `default`, the same for each call.
///
/// # Errors
/// Those of [`Database::family`].
pub fn default_family(db: &DbObject) -> Result<i64> {
    if let Some(lent) = db.default.get() {
        return Ok(lent.handle());
    }
    let family = db.family(None)?.clone();
    let made = Lent::new(FamilyObject::new(db, family, db.options.clone()))?;
    // If another thread was first, this one's is closed.
    Ok(db.default.get_or_init(|| made).handle())
}

/// RocksDB's release whose Java interface this is: the largest that the table of natives has. Each jar only prints it.
pub fn version() -> Result<i32> {
    const MAJOR: i32 = 11;
    const MINOR: i32 = 8;
    const PATCH: i32 = 1;
    Ok((MAJOR << 16) | (MINOR << 8) | PATCH)
}

/// The directory, as the program named it.
pub fn path(db: &DbObject) -> Result<String> {
    Ok(db.database.path().to_string_lossy().into_owned())
}

/// A handle of the environment, which belongs to the database.
///
/// # Errors
/// Those of [`ashlardb::Env::os`].
pub fn env_of(db: &DbObject) -> Result<i64> {
    let Some(env) = &db.options.env else { return crate::parts::default_env() };
    if let Some(lent) = db.env.get() {
        return Ok(lent.handle());
    }
    let made = Lent::new(EnvObject::new(env.clone()))?;
    Ok(db.env.get_or_init(|| made).handle())
}

/// Closes the handle of a family.
pub fn close_family(handle: i64) -> Result<()> {
    if let Ok(family) = handles::get::<FamilyObject>(handle) {
        tell_handle_closed(&family.listeners, handle);
    }
    handles::close(handle);
    Ok(())
}

/// The number of a family.
pub fn family_id(family: &FamilyObject) -> Result<i32> {
    Ok(i32::try_from(family.family.id().0).unwrap_or(i32::MAX))
}

/// The name of a family.
pub fn family_name(family: &FamilyObject) -> Result<Vec<u8>> {
    Ok(family.family.name().as_bytes().to_vec())
}

/// A `ColumnFamilyDescriptor` of a family: its name, and a copy of its options.
pub fn family_descriptor<'a>(env: Env<'a>, family: &FamilyObject) -> Result<Local<'a>> {
    descriptor(env, family.family.name(), family.options.clone())
}

/// A `ColumnFamilyDescriptor`, which owns its options.
///
/// # Errors
/// `Thrown`: the JVM has no memory.
pub(crate) fn descriptor<'a>(env: Env<'a>, name: &str, options: Options) -> Result<Local<'a>> {
    static OPTIONS: Class = Class::new("org/rocksdb/ColumnFamilyOptions");
    static NEW_OPTIONS: Method = Method::constructor("(J)V");
    static DESCRIPTOR: Class = Class::new("org/rocksdb/ColumnFamilyDescriptor");
    static NEW: Method = Method::constructor("([BLorg/rocksdb/ColumnFamilyOptions;)V");
    let own = Lent::new(OptionsObject(Shared::new(options)))?;
    let options = OPTIONS.make(env, &NEW_OPTIONS, &[crate::env::long(own.handle())])?;
    own.given();
    let name = env.new_bytes(name.as_bytes())?;
    let made = DESCRIPTOR.make(env, &NEW, &[object(name), object(options)])?;
    env.forget(name);
    env.forget(options);
    Ok(made)
}
