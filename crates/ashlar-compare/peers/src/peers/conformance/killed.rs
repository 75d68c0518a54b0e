//! A process that is killed while its clients apply batches leaves each batch whole or not at all.

use super::{again, settings};
use crate::client::{Bounds, Changes, Client};
use crate::engine::EngineName;
use crate::peer::Peer;
use crate::place;
use crate::process::end_with_parent;
use crate::settings::{Class, Settings};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// The directory of the database of the process that is killed.
pub const DIR: &str = "ASHLAR_COMPARE_KILLED";

const WRITERS: u8 = 3;
/// What the process prints when its clients have written.
const AT_WORK: &str = "at work";

fn opened<P: Peer>(engine: EngineName, dir: &Path, library: Option<&str>) -> P {
    let settings = Settings { clients: WRITERS.into(), value_bytes: 8, ..settings(Class::Matched) };
    P::open(engine, dir, &settings, library).unwrap()
}

/// Applies batches of two puts and a delete until the process is killed.
pub fn works<P: Peer>(engine: EngineName, dir: &Path) {
    end_with_parent();
    let library = place::library(engine, None).unwrap().map(|path| path.to_string_lossy().into_owned());
    let peer = opened::<P>(engine, dir, library.as_deref());
    peer.expect_clients(WRITERS.into()).unwrap();
    let clients: Vec<_> = (0..WRITERS).map(|_| peer.client().unwrap()).collect();
    std::thread::scope(|scope| {
        for (mut client, writer) in clients.into_iter().zip(0_u8..) {
            scope.spawn(move || {
                let mut changes = Changes::new();
                for round in 0_u64.. {
                    changes.clear();
                    changes.put(&[b'p', writer, 0], &round.to_be_bytes());
                    changes.put(&[b'p', writer, 1], &round.to_be_bytes());
                    changes.delete(&[b'p', writer, 2]);
                    client.apply(&changes).unwrap();
                    if round == 9 {
                        println!("{AT_WORK}");
                    }
                }
            });
        }
    });
}

/// Kills such a process at work, and checks what it left in a directory below `parent`.
pub fn leaves_whole_batches<P: Peer>(engine: EngineName, parent: &Path, library: Option<&str>) {
    let dir = parent.join("killed");
    let mut child = again(engine).env(DIR, &dir).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let at_work = lines.filter(|line| line.ends_with(AT_WORK)).take(usize::from(WRITERS)).count();
    std::thread::sleep(Duration::from_millis(50));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(at_work, usize::from(WRITERS), "the process ended by itself");
    let peer = opened::<P>(engine, &dir, library);
    peer.expect_clients(1).unwrap();
    let mut client = peer.client().unwrap();
    for writer in 0..WRITERS {
        let mut pair = Vec::new();
        let (from, to) = ([b'p', writer], [b'p', writer + 1]);
        let see = |_: &[u8], value: &[u8]| {
            pair.push(value.to_vec());
            true
        };
        client.scan(Bounds::forward(&from, &to), see).unwrap();
        // Without sync redb keeps commits in memory until a later one that is synced.
        let absent = pair.is_empty() && engine == EngineName::Redb;
        assert!(absent || (pair.len() == 2 && pair[0] == pair[1]), "not a whole batch: {pair:?}");
    }
    drop(client);
    peer.close().unwrap();
}
