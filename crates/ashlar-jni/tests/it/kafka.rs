//! Kafka Streams over both native halves, with RocksDB's jars 7.9.2 and 10.1.3.

use crate::engine::Engine;

const VERSIONS: [&str; 2] = ["3.9.2", "4.3.1"];

/// Builds the program for each version and tests it. A version that cannot be built does not stop the others.
fn each_version(test: &str, run: impl Fn(&Engine)) {
    for version in VERSIONS {
        match Engine::build_version("kafka-streams", Some(("kafka.version", version))) {
            Ok(streams) => run(&streams),
            Err(skip) => skip.announce(test),
        }
    }
}

/// Runs a part of the program under each version. The part on a broker takes minutes, and is run by hand.
fn both_say_the_same(test: &str, words: &[&str]) {
    each_version(test, |streams| {
        let said = streams.both_say_the_same(words);
        assert!(said.contains("differences from the model: 0\n"), "{said}");
    });
}

/// Each kind of state store beside a model, closed, reopened and restored, with RocksDB's metrics.
#[test]
fn state_stores_of_kafka_streams_say_the_same_over_both_halves() {
    both_say_the_same("state_stores_of_kafka_streams_say_the_same_over_both_halves", &["stores"]);
}

/// A topology with counts in windows and two joins, in Kafka's test driver.
#[test]
fn a_topology_of_kafka_streams_says_the_same_over_both_halves() {
    both_say_the_same("a_topology_of_kafka_streams_says_the_same_over_both_halves", &["driver", "100"]);
}

/// State that a run leaves over one half, and the next run over the other half goes on with.
#[test]
fn state_of_kafka_streams_goes_from_one_half_to_the_other() {
    each_version("state_of_kafka_streams_goes_from_one_half_to_the_other", |streams| {
        streams.take_turns(&["handover"], 4);
    });
}
