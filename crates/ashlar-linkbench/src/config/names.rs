//! Every property that is known: those that count here, those of the original program without a meaning here, and the next
//! similar name for one that is neither.

use super::properties::Properties;

/// Properties that count, without those of [`PREFIXED`].
const KNOWN: [&str; 39] = [
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
    "maxsamples",
];

/// Prefixes with the endings that count.
const PREFIXED: [(&[&str], &[&str]); 3] = [
    (
        &["link_add_datagen", "link_up_datagen", "node_add_datagen", "node_up_datagen"],
        &["", "_startbyte", "_endbyte", "_uniqueness", "_motif_length"],
    ),
    (
        &["read", "read_uncorr", "write", "write_uncorr", "node_read", "node_update", "node_delete"],
        &["_function", "_shape", "_config", "_blend", "_param", "_mean"],
    ),
    (&["link_multiget_dist"], &["_min", "_max", "_prob"]),
];

/// Properties of the original's stores, logs and Hadoop form: accepted, without a meaning here.
const IGNORED: [&str; 24] = [
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

/// True if `key` is a property of the original program, or one of ours.
pub fn is_known(key: &str) -> bool {
    KNOWN.contains(&key)
        || IGNORED.contains(&key)
        || PREFIXED.iter().any(|(heads, ends)| {
            heads.iter().any(|head| key.strip_prefix(head).is_some_and(|end| ends.contains(&end)))
        })
}

/// Refuses unknown properties.
///
/// # Errors
/// Names the place of each, and the known name that is most similar.
pub fn check(properties: &Properties) -> Result<(), String> {
    let unknown = properties.iter().filter(|(key, _)| !is_known(key));
    let lines: Vec<String> = unknown
        .map(|(key, given)| {
            format!("{}: unknown property {key}; did you mean {}?", given.place, nearest(key))
        })
        .collect();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
}

fn nearest(key: &str) -> String {
    let heads_and_ends = PREFIXED.iter().flat_map(|(heads, ends)| {
        heads.iter().flat_map(move |head| ends.iter().map(move |end| format!("{head}{end}")))
    });
    let all = KNOWN.iter().map(|name| (*name).to_owned()).chain(heads_and_ends);
    all.min_by_key(|name| distance(key, name)).unwrap_or_default()
}

/// Letters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_originals_names_are_known() {
        for key in [
            "maxid1",
            "write_uncorr_blend",
            "node_delete_function",
            "link_up_datagen_motif_length",
            "linkstore",
        ] {
            assert!(is_known(key), "{key}");
        }
        for key in ["maxid", "read_uncorr_blends", "node_read", "link_add_datagen_seed"] {
            assert!(!is_known(key), "{key}");
        }
    }

    #[test]
    fn an_unknown_property_names_its_line_and_a_similar_one() {
        let all = Properties::parse("maxid1 = 9\nmaxid2 = 9\nread_uncorr_blnd = 1\n", "w").unwrap();
        assert_eq!(
            check(&all).unwrap_err(),
            "w:2: unknown property maxid2; did you mean maxid1?\nw:3: unknown property read_uncorr_blnd; did you mean read_uncorr_blend?"
        );
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
