//! `ashlar db`: commands on one database.
//!
//! 1. Only commands that write create a database, and only with `--create_if_missing`.
//! 2. Commands that only read take no lock and write nothing: they work beside a process that has the database open.
//! 3. Results go to standard output in ldb's format; remarks go to standard error.

mod backups;
mod check;
mod checkpoint;
mod counts;
mod entries;
mod explain;
mod exports;
mod files;
mod info;
mod internal;
mod level;
mod levels;
mod lines;
mod live;
mod load;
mod query;
mod repair;
mod sst_files;
mod stored;
mod text;
mod times;
mod transactions;
mod writes;

use crate::cli::{Common, DbArguments, DbCommand, TreeCommand};
use crate::outcome::{Outcome, answer};
use crate::wal::Rows;
use crate::{Done, manifest};
use ashlar_bench::say;
use ashlardb::{Builder, Db, Family, FormatLevel, PlaceSettings};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use text::{Form, Separator};

/// The commands, for messages.
pub(crate) const COMMANDS: &str = "put, get, batchput, multi_get, put_entity, get_entity, multi_get_entity, delete, singledelete, deleterange, query, approxsize, scan, dump, load, families, create_family, drop_family, explain, compact, property, check, checkconsistency, list_live_files_metadata, dump_live_files, file_checksum_dump, list_file_range_deletes, idump, reduce_levels, change_compaction_style, dump_wal, manifest_dump, repair, checkpoint, export_family, import_family, backup, restore, backups, write_sst, ingest, info, transactions, commit_transaction, rollback_transaction, level, rewrite (see ashlar db --help)";

/// A command with its database.
struct Target {
    directory: PathBuf,
    common: Common,
}

impl Target {
    /// Opens an existing database for reading only. Other processes may have it open. Writes nothing.
    fn open_to_read(&self) -> Result<Db, Outcome> {
        match self.common.tuning.is_secondary() {
            true => Ok(self.builder().open_secondary()?.db()),
            false => Ok(self.builder().read_only(true).open()?),
        }
    }

    /// Opens an existing database with times to live for reading only. Values are as they are stored, with their times.
    fn open_without_ttl(&self) -> Result<Db, Outcome> {
        let tuning = self.common.tuning.without_ttl();
        let common = Common { tuning, ..self.common.clone() };
        Target { directory: self.directory.clone(), common }.open_to_read()
    }

    /// Opens an existing database.
    fn open(&self) -> Result<Db, Outcome> {
        self.open_with(false)
    }

    /// Opens for writing. Creates the database if `--create_if_missing` is given.
    fn open_to_write(&self) -> Result<Db, Outcome> {
        self.open_with(self.common.create_if_missing)
    }

    fn open_with(&self, create: bool) -> Result<Db, Outcome> {
        if self.common.tuning.is_secondary() {
            let directory = self.directory.display();
            return Err(Outcome::Failed(format!(
                "{directory}: this command needs the LOCK, and a secondary only reads; leave out --secondary_path"
            )));
        }
        self.warn_one_way();
        Ok(self.builder().create(create).open()?)
    }

    /// Warns on standard error, before the first write, that LevelDB will not open the directory again. Ignores errors: the
    /// open meets and reports them.
    fn warn_one_way(&self) {
        let leveldb =
            ashlardb::Env::os().and_then(|env| ashlardb::is_leveldb_directory(&env, &self.directory));
        if leveldb.unwrap_or(false) {
            say::line(&format!("{}: {}", self.directory.display(), ashlardb::LEVELDB_UPGRADE_NOTICE));
        }
    }

    fn builder(&self) -> Builder {
        let builder = match self.common.level {
            Some(level) => self.at_level(level),
            None => self.placed(Db::builder(&self.directory)),
        };
        self.common.tuning.apply(builder)
    }

    /// Applies --wal_dir and --db_path.
    fn placed(&self, builder: Builder) -> Builder {
        let PlaceSettings { wal_dir, db_paths, .. } = self.common.places();
        let builder = db_paths.into_iter().fold(builder, |b, p| b.db_path(p.path, p.target_bytes));
        if wal_dir.is_empty() { builder } else { builder.wal_dir(wal_dir) }
    }

    /// Settings for an existing database, with the newest table format that `level` allows.
    fn at_level(&self, level: FormatLevel) -> Builder {
        let version = level.max_table_version();
        let builder = self.placed(Db::builder(&self.directory)).create(false).format_level(level);
        builder.tune(move |_, family| family.table.format_version = version)
    }

    fn family(&self, db: &Db) -> Result<Family, Outcome> {
        Ok(db.family(self.common.family_name())?)
    }

    fn form(&self, tsv: bool) -> Form {
        Form::new(&self.common, if tsv { Separator::Tab } else { Separator::Arrow })
    }
}

/// Runs one command of `ashlar db`.
pub(crate) fn run(arguments: DbArguments) -> Done {
    let (command, target) = understand(arguments)?;
    let mut out = BufWriter::new(io::stdout().lock());
    match command {
        DbCommand::Put { key, value } => writes::put(&target, &key, &value, &mut out),
        DbCommand::BatchPut { entries } => writes::batch_put(&target, &entries, &mut out),
        DbCommand::PutEntity { key, columns } => writes::put_entity(&target, &key, &columns, &mut out),
        DbCommand::Get { key } => entries::get(&target, &key, &mut out),
        DbCommand::MultiGet { keys } => entries::multi_get(&target, &keys, &mut out),
        DbCommand::GetEntity { key } => entries::get_entity(&target, &key, &mut out),
        DbCommand::MultiGetEntity { keys } => entries::multi_get_entity(&target, &keys, &mut out),
        DbCommand::Query => query::run(&target, &mut io::stdin().lock(), &mut out),
        DbCommand::Delete { key } => writes::delete(&target, &key, false, &mut out),
        DbCommand::SingleDelete { key } => writes::delete(&target, &key, true, &mut out),
        DbCommand::DeleteRange { begin, end } => writes::delete_range(&target, &begin, &end, &mut out),
        DbCommand::ApproxSize { from, to } => files::approximate_size(&target, &from, &to, &mut out),
        DbCommand::CheckConsistency => files::consistency(&target, &mut out),
        DbCommand::Scan { range, no_value } => entries::scan(&target, &range, no_value, &mut out),
        DbCommand::Dump(dump) => entries::dump(&target, &dump, &mut out),
        DbCommand::Load { tsv, disable_wal, compact } => {
            let how = load::How { tsv, disable_wal, compact };
            load::run(&target, &how, &mut io::stdin().lock(), &mut out)
        }
        DbCommand::Compact { from, to, prefix } => entries::compact(&target, (from, to, prefix), &mut out),
        DbCommand::Property { name } => info::property(&target, &name, &mut out),
        DbCommand::Families => families(&target.directory, &mut out),
        DbCommand::CreateFamily { name } => create_family(&target, &name, &mut out),
        DbCommand::DropFamily { name } => drop_family(&target, &name, &mut out),
        DbCommand::Explain { what, key, max_keys } => explain::run(&target, &what, key, max_keys, &mut out),
        DbCommand::Check { json } => check::run(&target, json, &mut out),
        DbCommand::Repair { into, around_unreadable, json } => {
            repair::run(&target, (into.as_deref(), around_unreadable), json, &mut out)
        }
        DbCommand::Checkpoint { into, checkpoint_dir } => {
            checkpoint::run(&target, into.or(checkpoint_dir).as_deref(), &mut out)
        }
        DbCommand::ExportFamily { into } => exports::export(&target, &into, &mut out),
        DbCommand::ImportFamily { name, from, move_files } => {
            exports::import(&target, &name, &from, move_files, &mut out)
        }
        DbCommand::Backup { backups, backup_dir, flush, metadata, keep, rate_limit, num_threads } => {
            let how = backups::Create { flush, metadata, keep, rate_limit, num_threads };
            backups::create(&target, backups.or(backup_dir).as_deref(), how, &mut out)
        }
        DbCommand::Restore { backups, backup_dir, id, keep_log_files, rate_limit, num_threads } => {
            let how = backups::Restore { id, keep_log_files, rate_limit, num_threads };
            backups::restore(&target, backups.or(backup_dir).as_deref(), &how, &mut out)
        }
        DbCommand::Backups { verify } => backups::list(&target.directory, verify, &mut out),
        DbCommand::WriteSst { file, tsv } => {
            sst_files::write(&target, &file, tsv, &mut io::stdin().lock(), &mut out)
        }
        DbCommand::Ingest { files, move_files, ingest_behind, allow_blocking_flush, .. } => {
            let options = sst_files::options(move_files, ingest_behind, allow_blocking_flush);
            sst_files::ingest(&target, &files, options, &mut out)
        }
        DbCommand::Info => info::run(&target, &mut out),
        DbCommand::Transactions => transactions::list(&target, &mut out),
        DbCommand::CommitTransaction { name } => transactions::decide(&target, &name, true, &mut out),
        DbCommand::RollbackTransaction { name } => transactions::decide(&target, &name, false, &mut out),
        DbCommand::Level => level::show(&target, &mut out),
        DbCommand::Rewrite => level::rewrite(&target, &mut out),
        DbCommand::Tree(command) => tree(&target, command, &mut out),
    }?;
    Ok(out.flush()?)
}

/// Runs a command on the files and levels of a database.
fn tree(target: &Target, command: TreeCommand, out: &mut dyn Write) -> Done {
    match command {
        TreeCommand::InternalDump(dump) => internal::dump(target, &dump, out),
        TreeCommand::LiveFiles { sort_by_filename } => live::list(target, sort_by_filename, out),
        TreeCommand::DumpLiveFiles { decode_blob_index, dump_uncompressed_blobs } => {
            live::dump(target, decode_blob_index, dump_uncompressed_blobs, out)
        }
        TreeCommand::FileChecksums { path } => {
            manifest::checksums(path.as_ref().unwrap_or(&target.directory), target.common.hex, out)
        }
        TreeCommand::DumpWal { walfile, header, print_value, .. } => {
            Rows { header, values: print_value }.print(&walfile, out)
        }
        TreeCommand::ManifestDump { path, .. } => {
            manifest::dump(path.as_ref().unwrap_or(&target.directory), target.common.hex, out)
        }
        TreeCommand::RangeDeletes { max_keys } => live::range_deletes(target, max_keys, out),
        TreeCommand::ReduceLevels { new_levels, print_old_levels } => {
            levels::reduce(target, new_levels, print_old_levels, out)
        }
        TreeCommand::ChangeStyle { old: 0, new: 1 } => levels::to_universal(target, out),
        TreeCommand::ChangeStyle { old, new } if old == new => Err(Outcome::Failed(
            "the old compaction style is the same as the new one: nothing to do".to_owned(),
        )),
        TreeCommand::ChangeStyle { .. } => Err(Outcome::Failed(
            "from universal to leveled no file has to change: open the database with compaction_style=kCompactionStyleLevel"
                .to_owned(),
        )),
        TreeCommand::UnsafeRemove { number } => Err(Outcome::Failed(format!(
            "table {number} stays: to take out what is missing or damaged, use `ashlar db DIR repair`, which names the keys at risk"
        ))),
        TreeCommand::UpdateManifest { .. } => Err(Outcome::Failed(
            "update_manifest records the temperatures of files, and AshlarDB has one tier of storage: nothing was changed"
                .to_owned(),
        )),
    }
}

/// The command and its directory. The parser takes a word that is not a command for the directory. With `--db`, or
/// without a command after the word, the user meant the word as a command.
fn understand(arguments: DbArguments) -> Result<(DbCommand, Target), Outcome> {
    let DbArguments { directory, db, common, command } = arguments;
    let usage = |text: String| Err(Outcome::Usage(text));
    let Some(command) = command else {
        return match (directory, db) {
            (Some(word), Some(_)) => usage(format!("unknown command {word:?}; the commands are {COMMANDS}")),
            (Some(word), None) => usage(format!(
                "{word:?} is not a command, and after a directory a command is missing; the commands are {COMMANDS}"
            )),
            (None, _) => usage(format!("a command is missing; the commands are {COMMANDS}")),
        };
    };
    if let Some((flag, commands)) = command.idle_flag(&common) {
        return usage(format!("{flag} has no effect on this command; it is for {commands}"));
    }
    match (directory, db) {
        (Some(word), Some(db)) if word != db => {
            usage(format!("two directories, {word:?} and --db={}", db.display()))
        }
        (Some(directory), _) | (None, Some(directory)) => Ok((command, Target { directory, common })),
        (None, None) if command.names_its_file() => {
            Ok((command, Target { directory: PathBuf::new(), common }))
        }
        (None, None) => {
            usage("which database? Give its directory: ashlar db --db=DIRECTORY COMMAND".to_owned())
        }
    }
}

fn families(directory: &Path, out: &mut dyn Write) -> Done {
    let names = ashlardb::list_families(&ashlardb::Env::os()?, directory)?;
    // A name may contain any byte, control characters of the terminal too.
    let names: Vec<String> = names.iter().map(|name| name.escape_debug().to_string()).collect();
    write!(out, "Column families in {}: \n{{{}}}\n", directory.display(), names.join(", "))?;
    Ok(())
}

fn create_family(target: &Target, name: &str, out: &mut dyn Write) -> Done {
    let db = target.open_to_write()?;
    db.create_family(name)?;
    close(db, out, "the family was created")
}

fn drop_family(target: &Target, name: &str, out: &mut dyn Write) -> Done {
    let db = target.open()?;
    db.drop_family(&db.family(name)?)?;
    close(db, out, "the family was dropped")
}

/// Ends a command that wrote. Prints OK only if the close succeeds too.
fn close(db: Db, out: &mut dyn Write, made: &str) -> Done {
    db.close()?;
    answer(out, "OK\n", made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::LdbCli;
    use clap::Parser;

    fn asked(line: &str) -> Result<PathBuf, String> {
        match understand(LdbCli::try_parse_from(line.split(' ')).unwrap().db) {
            Ok((_, target)) => Ok(target.directory),
            Err(Outcome::Usage(text)) => Err(text),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_directory_stands_in_one_place() {
        assert_eq!(asked("ldb --db=D scan"), Ok("D".into()));
        assert_eq!(asked("ldb D scan"), Ok("D".into()));
        assert!(asked("ldb --db=E D scan").unwrap_err().contains("two directories"));
        assert!(asked("ldb scan").unwrap_err().contains("which database?"));
        assert!(
            asked("ldb --db=D scann")
                .unwrap_err()
                .starts_with("unknown command \"scann\"; the commands are put, get")
        );
        assert!(asked("ldb D").unwrap_err().contains("is missing"));
        assert!(
            asked("ldb D get k --create_if_missing")
                .unwrap_err()
                .starts_with("--create_if_missing has no effect")
        );
        assert!(
            asked("ldb D check --column_family=f").unwrap_err().starts_with("--column_family has no effect")
        );
        assert!(asked("ldb D compact --hex --column_family=f").is_ok());
        assert!(asked("ldb --db=D").unwrap_err().starts_with("a command is missing"));
    }
}
