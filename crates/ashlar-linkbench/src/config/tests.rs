use super::*;

fn with(overrides: &[&str]) -> Result<Config, String> {
    Config::builtin(&overrides.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), true)
}

#[test]
fn the_builtin_workload_is_that_of_the_specification() {
    let config = with(&[]).unwrap();
    assert_eq!((config.graph.first, config.graph.end, config.ids()), (1, 10_000_001, 10_000_000));
    assert_eq!(config.access.reads, (Access::Zipf { shape: 0.8 }, Some((Access::Zipf { shape: 0.8 }, 99.5))));
    assert_eq!(config.access.writes.1, config.access.reads.1, "the original reads the wrong names");
    assert_eq!(config.graph.shapes.map(|shape| shape.motif), [512; 4], "the original ignores the length");
    let intended = Config::builtin(&[], false).unwrap();
    assert_eq!(
        intended.access.writes,
        (Access::Zipf { shape: 0.741 }, Some((Access::Zipf { shape: 0.741 }, 95.0)))
    );
    assert_eq!(intended.graph.shapes.map(|shape| shape.motif), [128, 128, 512, 512]);
    assert_eq!((config.rate, config.max_failed, config.history), (0.0, Some(100), 0.3));
}

#[test]
fn values_are_overridden_and_bounded() {
    let config = with(&["requesters=4", "requestrate=-1", "max_failed_requests=-1", "maxid1=11"]).unwrap();
    assert_eq!((config.requesters, config.rate, config.max_failed, config.ids()), (4, 0.0, None, 10));
    for (given, wanted) in [
        ("maxid1=1", "-D: maxid1 = 1: must be above startid1 = 1, or there is no node"),
        ("startid1=0", "-D: startid1 = 0: must be from 1 to 281474976710656"),
        ("requesters=x", "-D: requesters = x: not a number from 1 to 1024"),
        ("addlink=80", "the shares of the operations sum to "),
        ("nlinks_func=NICE", "-D: nlinks_func = NICE: there are REAL, CONST, "),
        ("read_function=REAL", "-D: read_function = REAL: needs a data_file with observed accesses"),
        ("read_function=Nice", "-D: read_function = Nice: there are ZipfDistribution, "),
        ("read_shape=1", "-D: read_shape = 1: must be above 0 and below 1"),
        ("data_file=/no/file", "-D: data_file /no/file: "),
        ("link_up_datagen=x.OtherGenerator", "-D: link_up_datagen = x.OtherGenerator: there are "),
        (
            "node_add_datagen_endbyte=9",
            "-D: node_add_datagen_endbyte = 9: is below node_add_datagen_startbyte = 50",
        ),
        (
            "link_multiget_dist_max=1",
            "-D: link_multiget_dist_max = 1: must be above link_multiget_dist_min = 1",
        ),
        ("maxid=5", "-D: unknown property maxid; did you mean maxid1?"),
    ] {
        let why = with(&[given]).unwrap_err();
        assert!(why.starts_with(wanted), "{given}: {why}");
    }
}

/// A file as the original program has it, with its class names and its stores.
#[test]
fn files_of_the_original_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let class = "com.facebook.LinkBench.distributions.ZipfDistribution";
    let workload = WORKLOAD.replace("= ZipfDistribution", &format!("= {class}")).replace("REAL", "real");
    write("work.properties", &format!("data_file = data\n{workload}"));
    write("data", "nlinks\n0 50\n10 100\nlink_nreads\n1 100\n");
    write(
        "top.properties",
        "workload_file = work.properties\nlinkstore = com.x.Y\nport = 3306\nloaders = 10\nmaxtime = 100000\n",
    );
    let config = Config::read(&dir.path().join("top.properties"), dir.path(), &[], true).unwrap();
    assert_eq!((config.loaders, config.seconds), (10, 100_000.0));
    let Degree::Real { table, .. } = &config.graph.degree else { panic!("{:?}", config.graph.degree) };
    assert_eq!([0.4, 0.6].map(|u| table.at(u)), [0, 10]);
    write("bad.properties", "workload_file = work.properties\n\nrequesters = 0\n");
    let why = Config::read(&dir.path().join("bad.properties"), dir.path(), &[], true).unwrap_err();
    assert!(why.ends_with("bad.properties:3: requesters = 0: must be from 1 to 1024"), "{why}");
}
