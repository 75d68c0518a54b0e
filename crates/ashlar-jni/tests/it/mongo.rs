//! MongoDB's driver against a server of MongoDB's protocol over both native halves.

use crate::engine::Engine;

/// Runs a part of the program, which compares every answer with a model.
fn both_say_the_same(test: &str, words: &[&str]) {
    match Engine::build("mongo") {
        Ok(mongo) => {
            let said = mongo.both_say_the_same(words);
            assert!(said.contains("differences from the model: 0\n"), "{said}");
        }
        Err(skip) => skip.announce(test),
    }
}

/// Each kind of operation, with a reopen, a server that only reads, and damaged tables.
#[test]
fn mongodbs_driver_gets_the_same_answers_over_both_halves() {
    both_say_the_same("mongodbs_driver_gets_the_same_answers_over_both_halves", &["steps", "300"]);
}

/// A killed server leaves each acknowledged write, and each document with all its index entries.
#[test]
fn a_killed_server_of_documents_leaves_them_whole() {
    both_say_the_same("a_killed_server_of_documents_leaves_them_whole", &["kill", "150", "1"]);
}

/// Documents that a server over one half leaves, and the next server over the other half goes on with.
#[test]
fn documents_go_from_one_half_to_the_other() {
    match Engine::build("mongo") {
        Ok(mongo) => mongo.take_turns(&["handover", "60"], 3),
        Err(skip) => skip.announce("documents_go_from_one_half_to_the_other"),
    }
}

/// Linkbench's mix by one client, whose answers are summed, and by four at once; then each count is compared with the links.
#[test]
fn linkbenchs_counts_are_right_over_both_halves() {
    for clients in ["1", "4"] {
        both_say_the_same(
            "linkbenchs_counts_are_right_over_both_halves",
            &["linkbench", "400", clients, "200"],
        );
    }
}
