//! The door held against real directories, real RocksDB, killed processes, and users' habits.
//!
//! | module | question |
//! |---|---|
//! | `golden` | do we read what RocksDB 7.8.3 and LevelDB left, and leave it readable? |
//! | `judge` | do RocksDB 7.8.3 and 11.8.1 read what we write, and we what they write? |
//! | `modes` | what do the recovery modes make of damaged logs, beside RocksDB? |
//! | `recycled` | is nothing given up of logs that RocksDB recycles, and no alarm raised? |
//! | `carried` | what do we do with what we cannot carry along? |
//! | `backup`, `backup_judged` | are backups whole whatever interrupts a call, and do RocksDB and we read those of one another? |
//! | `exports`, `exports_judged` | is an imported family what was exported, whatever interrupts the call, and do RocksDB and we take those of one another? |
//! | `live` | is a copy by the list of live files a database of one moment? |
//! | `checkpoint` | has a checkpoint the state of one moment? |
//! | `direct_blobs` | are values read that RocksDB has in blob files of no MANIFEST, and do they stay? |
//! | `directories` | what if the directory is renamed, replaced or removed while a database is open in it? |
//! | `door`, `damage`, `threads` | does the API keep its word? |
//! | `misuse` | does wrong use of the API end in an error, or in the right answer, and never in a hang? |
//! | `operations` | do operations on many keys, ranges and files agree with those on one key? |
//! | `ingest` | are files that were written outside taken in as the model says, beside writers and compactions? |
//! | `behind` | does every entry above hide a table behind it, here and in RocksDB, whatever was compacted? |
//! | `ingest_judged` | does RocksDB take our files, and read a database that took its files? |
//! | `range_locks` | does nothing appear in a range that a transaction has locked, and does every end release it? |
//! | `locking` | do plain writes with locks wait for transactions, and leave what is prepared? |
//! | `indexed`, `transactions`, `transaction_locks` | do reads with pending changes agree with a model, and is no update lost? |
//! | `two_phase` | does what is prepared survive everything but its decision, and is it decided on once? |
//! | `two_phase_crashes` | does a crash leave each transaction where its last call left it? |
//! | `two_phase_judged` | do RocksDB and we decide on what the other has prepared? |
//! | `upkeep` | do compactions on request leave every answer as it was? |
//! | `observe` | does what it tells about itself add up, on a small workload to the last count? |
//! | `manual` | is the manual whole, and true about the tests? |
//! | `prefixes` | are scans of a prefix right with every extractor, here and in RocksDB, and do they skip tables? |
//! | `places` | are files in several directories found, written and handed back? |
//! | `options` | are settings by RocksDB's names stored, loaded, changed, and known to RocksDB? |
//! | `integrity` | is every damage found, by file, offset and keys, and are checksums over files those of RocksDB? |
//! | `repair` | does what is left of a damaged directory open, here and in RocksDB, and is every loss told? |
//! | `repair_names` | does a repair take from the OPTIONS file what no other file tells? |
//! | `repair_rebuilt` | does a tree that is built without a MANIFEST open in RocksDB, with blob files and with one level? |
//! | `repair_sound` | is what a repair leaves sound, and does a check agree? |
//! | `salvage` | is a damaged directory left as it is, and the copy what its repair would be? |
//! | `quarantine` | does a damaged table leave an open database with nothing lost but what the report names? |
//! | `updates` | does a follower that reads the WAL files have what was written, without a silent hole? |
//! | `unused_logs` | is a log kept that was not replayed to its end, and named what stands there? |
//! | `scrub` | is damage found without a request? |
//! | `crafted` | do files with right checksums over wrong contents cost little, and are they told from sound ones? |
//! | `fork` | is a child refused what is its parent's, and does the parent lose nothing? |
//! | `manifest_end` | if the end of the MANIFEST is lost, do open, check and repair judge alike, and is the data kept? |
//! | `many_families` | does the OPTIONS file tell every family, however many there are? |
//! | `gone_back` | is a log that two processes wrote to told as damage, and is what stands before kept? |
//! | `read_options` | does each option of a read hold for every verb? |
//! | `secondary` | do views follow a writer, and stay as they are? |
//! | `tailing` | does a tailing cursor show what is written, by a model and call by call? |
//! | `styles` | do universal and FIFO trees hold what they should, and may RocksDB and we take turns on them? |
//! | `incremental` | do universal trees that merge in parts stay near the bound, and does RocksDB go on between the parts? |
//! | `resources` | do databases share memory and threads without harm to one another? |
//! | `filters` | does a compaction filter remove what it says, and nothing that a snapshot sees? |
//! | `collectors`, `collectors_judged` | do tables say what their collectors found, here and in RocksDB, and harms a wrong collector nothing? |
//! | `partitioners` | do compactions begin tables where a partitioner says, here as in RocksDB? |
//! | `ttl` | are values that are over hidden at once, and removed? do RocksDB's wrapper and we read each other? |
//! | `examples` | do the examples do what they say? |
//!
//! `store` is our side of every comparison; `child` is what a child process of this program does.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "in a test a panic is the report")]
#![allow(clippy::cast_possible_truncation, reason = "test data is small")]
#![allow(clippy::disallowed_methods, reason = "tests look at files from outside")]

mod adopt;
mod backup;
mod backup_judged;
mod behind;
mod carried;
mod checkpoint;
mod child;
mod collectors;
mod collectors_judged;
mod crafted;
mod damage;
mod direct_blobs;
mod directories;
mod door;
mod examples;
mod exports;
mod exports_judged;
mod filters;
mod fork;
mod gone_back;
mod golden;
mod incremental;
mod indexed;
mod indexed_operations;
mod integrity;
mod ingest;
mod ingest_judged;
mod judge;
mod leveldb;
mod live;
mod locking;
mod manual;
mod misuse;
mod manifest_end;
mod many_families;
mod modes;
mod nested_ranges;
mod observe;
mod operations;
mod partitioners;
mod places;
mod places_crashes;
mod prefixes;
mod options;
mod own_prefixes;
mod quarantine;
mod quarantine_blobs;
mod range_locks;
mod read_options;
mod recycled;
mod refusals;
mod repair;
mod repair_names;
mod repair_rebuilt;
mod repair_sound;
mod resources;
mod salvage;
mod scrub;
mod secondary;
mod store;
mod styles;
mod table_filters;
mod tailing;
mod threads;
mod transaction_locks;
mod transactions;
mod ttl;
mod two_phase;
mod two_phase_crashes;
mod two_phase_judged;
mod unused_logs;
mod updates;
mod upkeep;
