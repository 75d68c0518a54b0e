use super::*;

#[test]
fn destroys_databases_and_nothing_else() {
    let env = Env::mem();
    let (engine, dir) = (Ashlar::new(env.clone()), Path::new("/db"));
    engine.destroy(dir, &Flags::default()).unwrap();
    let store = engine.open(dir, &Flags::default(), true).unwrap();
    store.writer(WriteHow::default()).commit().unwrap();
    assert!(engine.destroy(dir, &Flags::default()).is_err(), "an open database was destroyed");
    store.close().unwrap();
    drop(store);
    let foreign = dir.join("letters.txt");
    env.fs.create(&foreign).unwrap().write_at(b"mine", 0).unwrap();
    engine.destroy(dir, &Flags::default()).unwrap();
    let left: Vec<String> = env.fs.list(dir).unwrap().into_iter().map(|f| f.name).collect();
    assert_eq!(left, ["LOCK", "letters.txt"]);
    // A directory with names like ours, but no database.
    env.fs.create(&dir.join("LOG")).unwrap();
    engine.destroy(dir, &Flags::default()).unwrap();
    assert!(env.fs.metadata(&dir.join("LOG")).unwrap().is_some());
    assert!(engine.open(dir, &Flags::default(), false).is_err());
}

#[test]
fn logs_are_in_the_wal_dir_of_the_flags_and_go_with_the_database() {
    let env = Env::mem();
    let (engine, dir, logs) = (Ashlar::new(env.clone()), Path::new("/db"), Path::new("/logs"));
    let flags = Flags { wal_dir: "/logs".to_owned(), ..Flags::default() };
    let found = |place: &Path| -> Vec<String> {
        let names = env.fs.list(place).unwrap().into_iter().map(|file| file.name);
        names.filter(|name| name.ends_with(".log")).collect()
    };
    for _ in 0..2 {
        let store = engine.open(dir, &flags, true).unwrap();
        assert_eq!(store.get(b"k").unwrap(), None);
        let mut writer = store.writer(WriteHow::default());
        writer.put(b"k", b"v");
        writer.commit().unwrap();
        drop(writer);
        store.close().unwrap();
        assert_eq!((found(dir).len(), found(logs).len()), (0, 1));
        let store = engine.open(dir, &Flags::default(), false).unwrap();
        assert_eq!(store.get(b"k").unwrap(), Some(1));
        store.close().unwrap();
        engine.destroy(dir, &flags).unwrap();
        assert!(found(logs).is_empty());
    }
    let foreign = engine.open(logs, &Flags::default(), true).unwrap();
    foreign.close().unwrap();
    drop(foreign);
    engine.open(dir, &Flags::default(), true).unwrap().close().unwrap();
    assert!(engine.destroy(dir, &flags).unwrap_err().to_string().contains("another database"));
}

#[test]
fn many_keys_are_one_call() {
    let (engine, dir) = (Ashlar::new(Env::mem()), Path::new("/db"));
    let store = engine.open(dir, &Flags::default(), true).unwrap();
    let mut writer = store.writer(WriteHow::default());
    (0..100_u8).for_each(|n| writer.put(&[n], &[n; 10]));
    writer.commit().unwrap();
    drop(writer);
    store.flush().unwrap();
    let keys: Vec<Vec<u8>> = (90..110).map(|n| vec![n]).collect();
    assert_eq!(store.multi_get(&keys).unwrap(), (10, 100));
    let counted = store.property("options-statistics").unwrap();
    assert!(counted.contains("rocksdb.number.multiget.get COUNT : 1\n"), "{counted}");
    assert!(counted.contains("rocksdb.number.keys.read COUNT : 0\n"), "{counted}");
    let mut walk = store.cursor_within(Some(&[10]), Some(&[12])).unwrap();
    walk.first().unwrap();
    walk.next().unwrap();
    assert_eq!(walk.entry().map(|(k, _)| k.to_vec()), Some(vec![11]));
    walk.next().unwrap();
    assert!(walk.entry().is_none());
    drop(walk);
    let files = |level: u8| store.property(&format!("num-files-at-level{level}")).unwrap();
    assert_eq!((files(0), files(6)), ("1".into(), "0".into()));
    store.compact_level(0).unwrap();
    assert_eq!((files(0), files(6)), ("0".into(), "1".into()));
    store.compact_level(0).unwrap();
    store.verify().unwrap();
    store.close().unwrap();
}

#[test]
fn keys_belong_to_families() {
    let (engine, dir) = (Ashlar::new(Env::mem()), Path::new("/db"));
    let flags = Flags { num_column_families: 3, merge_operator: "max".into(), ..Flags::default() };
    let store = engine.open(dir, &flags, true).unwrap();
    let keys: Vec<Vec<u8>> = (0..60_u8).map(|n| vec![n]).collect();
    let mut writer = store.writer(WriteHow::default());
    keys.iter().for_each(|key| writer.put(key, b"12345"));
    writer.delete(&[7]);
    writer.merge(&[8], b"987");
    writer.commit().unwrap();
    drop(writer);
    store.flush().unwrap();
    assert_eq!((store.get(&[7]).unwrap(), store.get(&[8]).unwrap()), (None, Some(3)));
    assert_eq!(store.multi_get(&keys).unwrap(), (59, 58 * 5 + 3));
    store.close().unwrap();
    drop(store);
    let db = Db::builder(dir).env(engine.env.clone()).open().unwrap();
    let names: Vec<String> = db.families().iter().map(|f| f.name().to_owned()).collect();
    assert_eq!(names, ["default", "column_family_name_000001", "column_family_name_000002"]);
    let counts: Vec<usize> = db.families().iter().map(|family| family.scan(..).count()).collect();
    assert!(counts.iter().sum::<usize>() == 59 && counts.iter().all(|n| *n > 8), "{counts:?}");
}

#[test]
fn options_reach_the_database() {
    let (env, dir) = (Env::mem(), Path::new("/db"));
    let engine = Ashlar::new(env.clone());
    let written = |flags: &Flags| {
        engine.open(dir, flags, true).unwrap().close().unwrap();
        let (path, _) = ashlar_options::read_latest_options(&*env.fs, dir).unwrap().unwrap();
        let file = env.fs.open_read(&path).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
        file.read_exact_at(&mut bytes, 0).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let flags = Flags {
        options: "max_compaction_bytes=12345678;".into(),
        partition_index_and_filters: true,
        checksum_type: Some(1),
        wal_compression: "zstd".into(),
        use_ribbon_filter: true,
        bloom_bits: 10.0,
        ..Flags::default()
    };
    let text = written(&flags);
    for line in [
        "max_compaction_bytes=12345678",
        "index_type=kTwoLevelIndexSearch",
        "partition_filters=true",
        "filter_policy=ribbonfilter:10:0",
        "compression=kSnappyCompression",
        "checksum=kCRC32c",
        "wal_compression=kZSTD",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // Settings of a file stay where no flag says otherwise.
    env.fs.create(Path::new("/given")).unwrap().write_at(text.as_bytes(), 0).unwrap();
    let from_file = Flags { options_file: Some("/given".into()), num_levels: Some(5), ..Flags::default() };
    engine.destroy(dir, &Flags::default()).unwrap();
    let text = written(&from_file);
    assert!(text.contains("max_compaction_bytes=12345678") && text.contains("num_levels=5"), "{text}");
    let read = engine.open(dir, &Flags { readonly: true, ..Flags::default() }, true).unwrap();
    let mut writer = read.writer(WriteHow::default());
    writer.put(b"k", b"v");
    assert!(writer.commit().is_err());
}

#[test]
fn refuses_what_it_cannot_do() {
    let open = |change: fn(&mut Flags)| {
        let mut flags = Flags::default();
        change(&mut flags);
        Ashlar::new(Env::mem()).open(Path::new("/db"), &flags, true).err().map(|e| e.to_string())
    };
    let said = open(|f| f.compression_type = "lz4hc".into()).unwrap();
    assert!(said.starts_with("Not implemented: writing with compression_type lz4hc"), "{said}");
    let said = open(|f| f.compression_type = "brotli".into()).unwrap();
    assert!(said.contains("The types are none, snappy, zlib, lz4 and zstd"), "{said}");
    let said = open(|f| f.level = "rocksdb-3".into()).unwrap();
    assert!(said.contains("The levels are"), "{said}");
    let said = open(|f| f.merge_operator = "append".into()).unwrap();
    assert!(said.contains("put, uint64add, max, stringappend"), "{said}");
    let said = open(|f| (f.statistics, f.stats_level) = (true, 6)).unwrap();
    assert!(said.contains("the levels are 0 to 5"), "{said}");
    assert!(open(|f| f.write_buffer_size = Some(1)).unwrap().contains("write_buffer_size"));
    assert_eq!(open(|f| (f.level, f.bloom_bits) = ("rocksdb-7.8".into(), 0.0)), None);
}

/// What `randomtransaction` prints for these flags.
fn transactions(flags: &str) -> Result<String, crate::Failure> {
    let env = Env::mem();
    let engine = Ashlar::new(env.clone());
    let temporary = Path::new("/");
    let place = crate::Place { engine: &engine, env: &env, temporary, title: None, show_progress: false };
    let words =
        format!("--benchmarks=randomtransaction --db=/db --num=20 --writes=500 --threads=4 --seed=7 {flags}");
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let mut out = Vec::new();
    crate::run(&words, &place, &mut out).map(|_| String::from_utf8(out).unwrap())
}

#[test]
fn transactions_leave_sets_of_equal_sums() {
    for kind in ["--transaction_db --transaction_lock_timeout=20", "--optimistic_transaction_db"] {
        let text = transactions(&format!("{kind} --transaction_sets=3")).unwrap();
        assert!(text.contains("2000 operations") && text.contains("( transactions:500 aborts:"), "{text}");
        assert!(text.ends_with("RandomTransactionVerify Success.\n"), "{text}");
        let aborts = text.split("aborts:").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
        assert!(aborts.parse::<u64>().unwrap() < 400, "{text}");
    }
    let text = transactions("").unwrap();
    assert!(text.contains("( batches:500 )") && !text.contains("Verify"), "{text}");
    for refused in
        ["--transaction_db --optimistic_transaction_db", "--transaction_sets=0", "--transaction_sets=10000"]
    {
        assert!(matches!(transactions(refused), Err(crate::Failure::Usage(_))), "{refused}");
    }
}

#[test]
fn a_lost_update_of_a_transaction_is_found() {
    let engine = Ashlar::new(Env::mem());
    let flags = Flags { optimistic_transaction_db: true, ..Flags::default() };
    let store = engine.open(Path::new("/db"), &flags, true).unwrap();
    let put = |key: &[u8], value: &[u8]| {
        let mut writer = store.writer(WriteHow::default());
        writer.put(key, value);
        writer.commit().unwrap();
    };
    let verify = || crate::transactions::verify(&*store, 2).map_err(|e| e.to_string());
    put(b"00017", b"40");
    put(b"00018", b"2");
    put(b"00023", b"42");
    assert_eq!(verify(), Ok(()));
    put(b"00023", b"41");
    assert!(verify().unwrap_err().contains("the keys of set 0002 have the sum 41, those of set 0001 42"));
    put(b"00023", b"many");
    assert!(verify().unwrap_err().contains("the value of 00023 is no number: many"));
}
