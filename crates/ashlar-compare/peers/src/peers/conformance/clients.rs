//! What every engine's clients must do: bounded scans in both directions, mixed batches, and atomicity beside other clients.

use super::settings;
use crate::client::{Bounds, CONFLICT, Changes, Client};
use crate::engine::EngineName;
use crate::peer::{Keys, Peer};
use crate::settings::{Class, Settings, Transactions};
use std::path::Path;

const WRITERS: u8 = 3;
const ROUNDS: u64 = 60;

fn scanned<C: Client>(client: &mut C, from: &str, to: &str, reverse: bool, most: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let bounds = Bounds { from: from.as_bytes(), to: to.as_bytes(), reverse };
    client
        .scan(bounds, |key, value| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            seen.push(format!("{}={}", text(key), text(value)));
            seen.len() < most
        })
        .unwrap();
    seen
}

/// Opens a fresh database for several clients, and checks everything about them.
pub fn several<P: Peer>(engine: EngineName, dir: &Path, class: Class, library: Option<&str>) {
    let settings = Settings { clients: WRITERS.into(), value_bytes: 8, ..settings(class) };
    let peer = P::open(engine, dir, &settings, library).unwrap();
    peer.expect_clients(2).unwrap();
    batches_and_bounds(&peer);
    peer.expect_clients(WRITERS.into()).unwrap();
    batches_are_whole(&peer, engine);
    peer.close().unwrap();
    for kind in [Transactions::Pessimistic, Transactions::Optimistic] {
        let settings = Settings { transactions: Some(kind), ..settings.clone() };
        if let Some(why) = engine.lacks(&settings) {
            assert!(why.starts_with("transactions; "), "{why}");
            continue;
        }
        let dir = dir.with_file_name(format!("{kind:?}"));
        let peer = P::open(engine, &dir, &settings, library).unwrap();
        transactions_lose_nothing(&peer);
        peer.close().unwrap();
    }
}

/// Clients that add one to the same number, each in a transaction, count every addition.
fn transactions_lose_nothing<P: Peer>(peer: &P) {
    let clients: Vec<_> = (0..WRITERS).map(|_| peer.client().unwrap()).collect();
    std::thread::scope(|scope| {
        for mut client in clients {
            scope.spawn(move || (0..ROUNDS).for_each(|_| while !added(&mut client) {}));
        }
    });
    let mut client = peer.client().unwrap();
    let wanted = (u64::from(WRITERS) * ROUNDS).to_be_bytes();
    assert!(client.get(b"sum", |value| assert_eq!(value, wanted)).unwrap());
    client.begin().unwrap();
    assert!(client.get_for_update(b"sum", |_| ()).unwrap());
    client.rollback().unwrap();
    assert!(client.get(b"gone", |_| ()).is_ok_and(|found| !found), "deleted in each transaction");
}

fn added<C: Client>(client: &mut C) -> bool {
    client.begin().unwrap();
    let mut sum = 0;
    let mut changes = Changes::new();
    let read = client.get_for_update(b"sum", |value| {
        sum = u64::from_be_bytes(value.try_into().unwrap());
    });
    let done = read.and_then(|_| {
        changes.put(b"sum", &(sum + 1).to_be_bytes());
        changes.put(b"gone", b"");
        changes.delete(b"gone");
        client.commit(&changes)
    });
    if let Err(why) = &done {
        assert!(why.starts_with(CONFLICT), "{why}");
        client.rollback().unwrap();
    }
    done.is_ok()
}

fn batches_and_bounds<P: Peer>(peer: &P) {
    let (mut one, mut other) = (peer.client().unwrap(), peer.client().unwrap());
    assert_eq!(scanned(&mut one, "a", "z", false, 9), [""; 0]);
    let mut changes = Changes::new();
    for (key, value) in [("b", "1"), ("c", "22"), ("d", ""), ("e", "4444"), ("f", "5")] {
        changes.put(key.as_bytes(), value.as_bytes());
    }
    one.apply(&changes).unwrap();
    changes.clear();
    changes.delete(b"e");
    changes.put(b"c", b"two");
    changes.delete(b"no such key");
    changes.put(b"g", b"6");
    changes.delete(b"g");
    other.apply(&changes).unwrap();
    for settled in [false, true] {
        if settled {
            peer.settle().unwrap();
        }
        for client in [&mut one, &mut other] {
            assert_eq!(scanned(client, "b", "f", false, 9), ["b=1", "c=two", "d="], "settled: {settled}");
            assert_eq!(scanned(client, "bb", "g", true, 9), ["f=5", "d=", "c=two"]);
            assert_eq!(scanned(client, "b", "c0", true, 1), ["c=two"]);
            assert_eq!(scanned(client, "a", "z", true, 2), ["f=5", "d="]);
            assert_eq!(scanned(client, "a", "z", false, 2), ["b=1", "c=two"]);
            assert_eq!(scanned(client, "e", "f", false, 9), [""; 0], "a deleted key");
            assert_eq!(scanned(client, "x", "y", true, 9), [""; 0], "behind the last key");
            assert_eq!(scanned(client, "0", "a", true, 9), [""; 0], "before the first key");
            assert!(
                !client.get(b"e", |_| ()).unwrap() && client.get(b"d", |v| assert!(v.is_empty())).unwrap()
            );
            let mut keys = Keys::new(1);
            [b"f", b"e", b"b"].iter().for_each(|key| keys.push(*key));
            let mut seen = Vec::new();
            client.multi_get(&keys, |place, value| seen.push((place, value.to_vec()))).unwrap();
            assert_eq!(seen, [(0, b"5".to_vec()), (2, b"1".to_vec())]);
        }
    }
    changes.clear();
    changes.put(b"e", b"back");
    one.apply(&changes).unwrap();
    assert_eq!(
        scanned(&mut other, "d", "f", false, 9),
        ["d=", "e=back"],
        "a scan sees every write before it"
    );
}

/// Every batch writes one number to two keys far apart; a scan of both never sees two numbers.
fn batches_are_whole<P: Peer>(peer: &P, engine: EngineName) {
    let clients: Vec<_> = (0..WRITERS).map(|_| peer.client().unwrap()).collect();
    std::thread::scope(|scope| {
        for (mut client, writer) in clients.into_iter().zip(0_u8..) {
            scope.spawn(move || {
                let mut changes = Changes::new();
                for round in 0..ROUNDS {
                    changes.clear();
                    let number = round.to_be_bytes();
                    changes.put(&[b'p', writer, 0], &number);
                    changes.put(&[b'p', writer, 1], &number);
                    changes.delete(&[b'p', writer, 2]);
                    client.apply(&changes).unwrap();
                    let other = (writer + 1) % WRITERS;
                    let mut pair = Vec::new();
                    let (from, to) = ([b'p', other, 0], [b'p', other, 2]);
                    client
                        .scan(Bounds::forward(&from, &to), |_, value| {
                            pair.push(value.to_vec());
                            true
                        })
                        .unwrap();
                    if engine != EngineName::Treedb {
                        assert!([0, 2].contains(&pair.len()), "half of the first batch");
                        assert!(pair.windows(2).all(|both| both[0] == both[1]), "half of a batch: {pair:?}");
                    }
                }
            });
        }
    });
    let mut client = peer.client().unwrap();
    let mut last = 0;
    client
        .scan(Bounds::forward(b"p", b"q"), |_, value| {
            assert_eq!(value, (ROUNDS - 1).to_be_bytes());
            last += 1;
            true
        })
        .unwrap();
    assert_eq!(last, 2 * usize::from(WRITERS));
}
