//! The property names that are read, those that are accepted and ignored, and the suggestion for an unknown name.

use super::properties::{COMMAND_LINE, Properties};
use ashlar_base::nearest::nearest;

/// Properties that are read, without those of [`PREFIXED`].
const KNOWN: [&str; 38] = [
    "workload_file",
    "data_file",
    "startid1",
    "maxid1",
    "link_type_count",
    "nlinks_func",
    "nlinks_config",
    "nlinks_default",
    "nlinks_shape",
    "nlinks_mean",
    "nlinks_cap",
    "randomid2max",
    "link_datasize",
    "node_datasize",
    "id2gen_config",
    "addlink",
    "deletelink",
    "updatelink",
    "countlink",
    "getlink",
    "getlinklist",
    "getnode",
    "addnode",
    "updatenode",
    "deletenode",
    "getlinklist_history",
    "loaders",
    "loader_chunk_size",
    "generate_nodes",
    "load_random_seed",
    "requesters",
    "requests",
    "requestrate",
    "maxtime",
    "warmup_time",
    "request_random_seed",
    "max_failed_requests",
    "link_multiget_dist",
];

/// Prefixes with the endings that are read.
const PREFIXED: [(&[&str], &[&str]); 4] = [
    (
        &["link_add_datagen", "link_up_datagen", "node_add_datagen", "node_up_datagen"],
        &["", "_startbyte", "_endbyte", "_uniqueness", "_motif_length"],
    ),
    (
        &["read", "read_uncorr", "write", "write_uncorr", "node_read", "node_update", "node_delete"],
        &["_function", "_shape", "_config"],
    ),
    (&["read_uncorr", "write_uncorr"], &["_blend"]),
    (&["link_multiget_dist"], &["_min", "_max", "_prob"]),
];

/// Properties of the original's stores, logs, samples and Hadoop form: accepted in files, without a meaning here.
const IGNORED: [&str; 25] = [
    "maxsamples",
    "linkstore",
    "nodestore",
    "host",
    "user",
    "password",
    "port",
    "dbid",
    "linktable",
    "counttable",
    "nodetable",
    "debuglevel",
    "progressfreq",
    "displayfreq",
    "load_progress_interval",
    "req_progress_interval",
    "tempdir",
    "loaddata",
    "reportprogress",
    "useinputfiles",
    "MySQL_bulk_insert_batch",
    "MySQL_disable_binlog_load",
    "transaction_support_level",
    "write_options_sync",
    "write_options_disableWAL",
];

/// Every name that is read.
fn read() -> impl Iterator<Item = String> {
    let heads_and_ends = PREFIXED.iter().flat_map(|(heads, ends)| {
        heads.iter().flat_map(move |head| ends.iter().map(move |end| format!("{head}{end}")))
    });
    KNOWN.iter().map(|name| (*name).to_owned()).chain(heads_and_ends)
}

/// Refuses unknown properties, and properties without a meaning here on the command line.
///
/// # Errors
/// Names the place of each, and the known name that is most similar.
pub fn check(properties: &Properties) -> Result<(), String> {
    let names: Vec<String> = read().collect();
    let wrong = |key: &str, place: &str| {
        if names.iter().any(|name| name == key) || (IGNORED.contains(&key) && place != COMMAND_LINE) {
            return None;
        }
        if IGNORED.contains(&key) {
            return Some(format!(
                "{place}: {key} is a property of the original program without a meaning here"
            ));
        }
        let similar = nearest(key, names.iter().map(String::as_str));
        let hint = similar.map_or(String::new(), |name| format!("; did you mean {name}?"));
        Some(format!("{place}: unknown property {key}{hint}"))
    };
    let lines: Vec<String> = properties.iter().filter_map(|(key, given)| wrong(key, &given.place)).collect();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn checked(key: &str) -> Result<(), String> {
        check(&Properties::parse(&format!("{key} = 9\n"), "w").unwrap())
    }

    #[test]
    fn the_originals_names_are_known() {
        for key in [
            "maxid1",
            "write_uncorr_blend",
            "node_delete_function",
            "link_up_datagen_motif_length",
            "linkstore",
        ] {
            assert_eq!(checked(key), Ok(()));
        }
        for key in ["maxid", "read_uncorr_blends", "node_read", "link_add_datagen_seed", "node_read_blend"] {
            assert!(checked(key).is_err(), "{key}");
        }
    }

    #[test]
    fn an_unknown_property_names_its_line_and_a_similar_one() {
        let all =
            Properties::parse("maxid1 = 9\nmaxid2 = 9\nread_uncorr_blnd = 1\ncolour = red\n", "w").unwrap();
        assert_eq!(
            check(&all).unwrap_err(),
            "w:4: unknown property colour\nw:2: unknown property maxid2; did you mean maxid1?\n\
             w:3: unknown property read_uncorr_blnd; did you mean read_uncorr_blend?"
        );
        let mut all = Properties::default();
        all.set("linkstore = x").unwrap();
        assert!(check(&all).unwrap_err().starts_with("-D: linkstore is a property of the original program"));
    }

    /// A name that nothing reads would be accepted and change nothing.
    #[test]
    fn every_known_name_is_read() {
        let functions = [
            &["nlinks_func=ZipfDistribution", "nlinks_shape=0.5", "nlinks_mean=3"][..],
            &["read_function=MULTIPLE", "write_function=MULTIPLE", "node_delete_function=MULTIPLE"],
            &["read_uncorr_function=MULTIPLE", "write_uncorr_function=MULTIPLE"],
            &["node_read_function=MULTIPLE", "node_update_function=MULTIPLE"],
            &["node_delete_function=ZipfDistribution", "node_delete_shape=0.5"],
            &[],
        ];
        for key in read().filter(|key| key != crate::config::properties::WORKLOAD_FILE) {
            let refused = functions.iter().any(|given| {
                let nonsense = format!("{key}=nonsense");
                let all: Vec<String> =
                    given.iter().map(|text| (*text).to_owned()).chain([nonsense]).collect();
                Config::builtin(&all, false).is_err_and(|why| why.contains("nonsense"))
            });
            assert!(refused, "{key} = nonsense is accepted");
        }
    }
}
