//! A process that is killed while its clients apply batches leaves each batch whole or not at all.
//!
//! 1. Each client applies the rounds up to [`SETTLED`]. Then the process settles, so that these rounds outlive it on every engine:
//!    without sync, redb keeps commits in its own memory until then.
//! 2. The process says that it is at work, and its clients go on until it is killed.
//! 3. Each writer's entries are those of one round, which is [`SETTLED`] or a later one.

use super::{again, settings};
use crate::client::{Bounds, Changes, Client};
use crate::engine::EngineName;
use crate::peer::Peer;
use crate::place;
use crate::process::end_with_parent;
use crate::settings::{Class, Settings};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// The directory of the database of the process that is killed.
pub const DIR: &str = "ASHLAR_COMPARE_KILLED";

const WRITERS: u8 = 3;
/// The last round before the process settles.
const SETTLED: u64 = 9;
/// What the process prints when its clients have written and it has settled.
const AT_WORK: &str = "at work";

const SIGKILL: i32 = 9;
const SIGABRT: i32 = 6;

fn opened<P: Peer>(engine: EngineName, dir: &Path, library: Option<&str>) -> P {
    let settings = Settings { clients: WRITERS.into(), value_bytes: 8, ..settings(Class::Matched) };
    P::open(engine, dir, &settings, library).unwrap()
}

/// Ends the whole process when a thread panics. Otherwise its other threads would go on, and the test would wait for them forever.
fn end_with_a_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        std::process::abort();
    }));
}

/// The batch of a round: two puts, and a third one that alternates between two keys. The other of the two is deleted.
fn batch(changes: &mut Changes, writer: u8, round: u64) {
    let [kept, deleted] = if round.is_multiple_of(2) { [2, 3] } else { [3, 2] };
    changes.clear();
    for key in [0, 1, kept] {
        changes.put(&[b'p', writer, key], &round.to_be_bytes());
    }
    changes.delete(&[b'p', writer, deleted]);
}

/// The round whose batch left these entries of a writer. `None`: they are not those of one whole batch.
fn round_of(entries: &[(u8, u64)]) -> Option<u64> {
    let &(_, round) = entries.first()?;
    let last = if round.is_multiple_of(2) { 2 } else { 3 };
    (entries == [0, 1, last].map(|key| (key, round))).then_some(round)
}

/// Applies batches until the process is killed.
pub fn works<P: Peer>(engine: EngineName, dir: &Path) {
    end_with_parent();
    end_with_a_panic();
    let library = place::library(engine, None).unwrap().map(|path| path.to_string_lossy().into_owned());
    let peer = opened::<P>(engine, dir, library.as_deref());
    let apply = |rounds: std::ops::RangeInclusive<u64>| {
        peer.expect_clients(WRITERS.into()).unwrap();
        let clients: Vec<_> = (0..WRITERS).map(|_| peer.client().unwrap()).collect();
        std::thread::scope(|scope| {
            for (mut client, writer) in clients.into_iter().zip(0_u8..) {
                let rounds = rounds.clone();
                scope.spawn(move || {
                    let mut changes = Changes::new();
                    for round in rounds {
                        batch(&mut changes, writer, round);
                        client.apply(&changes).unwrap();
                    }
                });
            }
        });
    };
    apply(0..=SETTLED);
    peer.settle().unwrap();
    println!("{AT_WORK}");
    apply(SETTLED + 1..=u64::MAX);
}

/// Kills such a process at work, and checks what it left in a directory below `parent`.
pub fn leaves_whole_batches<P: Peer>(engine: EngineName, parent: &Path, library: Option<&str>) {
    let dir = parent.join("killed");
    let mut child = again(engine).env(DIR, &dir).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let at_work = lines.any(|line| line.ends_with(AT_WORK));
    std::thread::sleep(Duration::from_millis(50));
    child.kill().unwrap();
    let ended = child.wait().unwrap();
    assert!(at_work && ended.signal() == Some(SIGKILL), "the process ended by itself: {ended}");
    let peer = opened::<P>(engine, &dir, library);
    peer.expect_clients(1).unwrap();
    let mut client = peer.client().unwrap();
    for writer in 0..WRITERS {
        let mut entries = Vec::new();
        let (from, to) = ([b'p', writer], [b'p', writer + 1]);
        let see = |key: &[u8], value: &[u8]| {
            entries.push((key[2], u64::from_be_bytes(value.try_into().unwrap())));
            true
        };
        client.scan(Bounds::forward(&from, &to), see).unwrap();
        let round = round_of(&entries);
        assert!(
            round.is_some_and(|round| round >= SETTLED),
            "writer {writer}: not a whole batch: {entries:?}"
        );
    }
    drop(client);
    peer.close().unwrap();
}

#[test]
fn a_batch_is_told_from_parts_of_two() {
    for round in [9, 10] {
        let last = if round == 9 { 3 } else { 2 };
        let whole = [(0, round), (1, round), (last, round)];
        assert_eq!(round_of(&whole), Some(round));
        assert_eq!(round_of(&whole[..2]), None, "a put is missing");
        assert_eq!(round_of(&[(0, round), (1, round), (2, round), (3, round)]), None, "a delete is missing");
        assert_eq!(round_of(&[(0, round), (1, round - 1), (last, round)]), None, "a put of the round before");
    }
    assert_eq!(round_of(&[]), None);
}

/// The child panics in one thread while another one goes on.
#[test]
fn a_panic_ends_the_process_whatever_its_threads_do() {
    const CHILD: &str = "ASHLAR_COMPARE_PANIC";
    if std::env::var_os(CHILD).is_some() {
        end_with_parent();
        end_with_a_panic();
        std::thread::scope(|scope| {
            scope.spawn(|| std::thread::sleep(Duration::from_mins(1)));
            scope.spawn(|| panic!("on purpose"));
        });
    }
    let test = "peers::conformance::killed::a_panic_ends_the_process_whatever_its_threads_do";
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact"]).env(CHILD, "1").stdout(Stdio::null()).stderr(Stdio::null());
    let begun = std::time::Instant::now();
    let ended = child.status().unwrap();
    assert_eq!(ended.signal(), Some(SIGABRT), "{ended}");
    assert!(begun.elapsed() < Duration::from_secs(50));
}
