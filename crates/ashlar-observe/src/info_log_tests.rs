use super::*;
use ashlar_base::error::IoKind;
use ashlar_env::sim::{CallClass, Repeat, SimEnv};
use std::time::Duration;

const DIR: &str = "/db";

fn text(env: &Env, name: &str) -> String {
    let file = env.fs.open_read(&Path::new(DIR).join(name)).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn names(env: &Env) -> Vec<String> {
    env.fs.list(Path::new(DIR)).unwrap().into_iter().map(|e| e.name).collect()
}

fn sim() -> (SimEnv, Env) {
    let sim = SimEnv::new(1);
    let env = sim.env();
    env.fs.create_dir_all(Path::new(DIR)).unwrap();
    (sim, env)
}

#[test]
fn lines_behind_their_header_and_the_file_before_kept() {
    let (_sim, env) = sim();
    let options = InfoLogOptions { level: InfoLogLevel::Warn, ..InfoLogOptions::default() };
    let log = InfoLog::open(&env, Path::new(DIR), &options, "RocksDB version: 1\nGit sha x").unwrap();
    assert!(log.takes(InfoLogLevel::Error) && !log.takes(InfoLogLevel::Info));
    log.write(&env, InfoLogLevel::Error, "bad");
    let head = "2020/01/01-00:00:00.000000 0 ";
    assert_eq!(text(&env, "LOG"), format!("{head}RocksDB version: 1\n{head}Git sha x\n{head}[ERROR] bad\n"));
    env.clock.sleep(Duration::from_secs(1));
    drop(log);
    InfoLog::open(&env, Path::new(DIR), &options, "again").unwrap();
    assert_eq!(names(&env), ["LOG", "LOG.old.1577836801000000"]);
    assert!(text(&env, "LOG").ends_with("again\n"));
    assert!(text(&env, "LOG.old.1577836801000000").ends_with("bad\n"));
}

#[test]
fn full_and_old_files_are_replaced_and_few_are_kept() {
    let (_sim, env) = sim();
    let options = InfoLogOptions {
        file_bytes_max: 200,
        file_secs_max: 100,
        files_kept: 3,
        ..InfoLogOptions::default()
    };
    let log = InfoLog::open(&env, Path::new(DIR), &options, "head").unwrap();
    for n in 0..50 {
        log.write(&env, InfoLogLevel::Info, &format!("line {n}"));
    }
    let kept = names(&env);
    assert_eq!(kept.len(), 3, "{kept:?}");
    let all: String = kept.iter().rev().map(|name| text(&env, name)).collect();
    assert!(text(&env, "LOG").contains("line 49\n") && all.len() < 900, "{all}");
    env.clock.sleep(Duration::from_secs(101));
    log.write(&env, InfoLogLevel::Info, "later");
    assert_eq!(text(&env, "LOG").lines().count(), 2);
}

#[test]
fn what_cannot_be_written_is_left_out_and_counted() {
    let (sim, env) = sim();
    let log = InfoLog::open(&env, Path::new(DIR), &InfoLogOptions::default(), "head").unwrap();
    sim.fail_call(CallClass::Write, sim.calls_of(CallClass::Write), Repeat::Sticky, IoKind::NoSpace);
    log.write(&env, InfoLogLevel::Info, "one");
    log.write(&env, InfoLogLevel::Info, "two");
    sim.heal();
    log.write(&env, InfoLogLevel::Info, "three");
    let now = text(&env, "LOG");
    assert!(now.contains("[WARN] 2 lines were left out\n") && now.ends_with("three\n"), "{now}");
}

#[test]
fn lines_of_many_threads_all_stand_there() {
    let env = Env::mem();
    env.fs.create_dir_all(Path::new(DIR)).unwrap();
    let log = InfoLog::open(&env, Path::new(DIR), &InfoLogOptions::default(), "head").unwrap();
    std::thread::scope(|scope| {
        for t in 0..4 {
            let (log, env) = (&log, &env);
            scope.spawn(move || {
                (0..100).for_each(|n| log.write(env, InfoLogLevel::Info, &format!("{t} {n}")))
            });
        }
    });
    let all = text(&env, "LOG");
    assert_eq!(all.lines().count(), 401);
    let of_one: Vec<_> =
        all.lines().filter(|l| l.contains(" 0 2 ")).map(|l| l.rsplit(' ').next().unwrap()).collect();
    assert_eq!(of_one, (0..100).map(|n| n.to_string()).collect::<Vec<_>>());
}

#[test]
fn elsewhere_the_name_tells_the_database() {
    let env = Env::mem();
    let options = InfoLogOptions { dir: "/logs".into(), ..InfoLogOptions::default() };
    let env = InfoLog::hold_elsewhere(env, &options);
    InfoLog::open(&env, Path::new("/data/my db"), &options, "head").unwrap();
    let names: Vec<_> = env.fs.list(Path::new("/logs")).unwrap().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["data_my_db_LOG"]);
}

#[test]
fn our_default_removes_no_log_of_rocksdbs() {
    let (_sim, env) = sim();
    let dir = Path::new(DIR);
    for n in 0..20 {
        let name = if n % 2 == 0 { "AshlarDB-0" } else { "11.8.1" };
        let file = env.fs.create(&dir.join(format!("LOG.old.{n}"))).unwrap();
        file.write_at(format!("RocksDB version: {name}\n").as_bytes(), 0).unwrap();
    }
    InfoLog::open(&env, dir, &InfoLogOptions::default(), "head").unwrap();
    let theirs =
        |names: &[String]| (0..20).filter(|n| names.contains(&format!("LOG.old.{n}")) && n % 2 == 1).count();
    let names_now = names(&env);
    assert_eq!(theirs(&names_now), 10, "{names_now:?}");
    assert!(names_now.len() < 20, "{names_now:?}");
    // A limit that the directory or the caller sets applies to all files.
    env.clock.sleep(Duration::from_secs(1));
    let few = InfoLogOptions { files_kept: 3, ..InfoLogOptions::default() };
    InfoLog::open(&env, dir, &few, "head").unwrap();
    assert_eq!(names(&env).len(), 3);
}
