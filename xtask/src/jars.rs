//! RocksDB's jars for Java and Flink's, which the tests of `ashlar-jni` run over both native halves.

use crate::fetch::{on_path, sha256};
use crate::run;
use std::path::{Path, PathBuf};

/// The jars: name and version as Maven writes them, the group, and the digest. First RocksDB's generations, then Flink's.
const JARS: [(&str, &str, &str); 6] = [
    ("rocksdbjni-7.9.2", "org.rocksdb", "0e0e886c44ef1a04104116a05c7e03e9b24069d7fbc6a0fb2cde2032fa92cb20"),
    ("rocksdbjni-8.8.1", "org.rocksdb", "012750e10b9c739246dc0ba59ef9b248dd8e31e0df359f8493e8a1aa9596b7ae"),
    ("rocksdbjni-9.8.4", "org.rocksdb", "b60144a306bf7dd3de2b6fea947681fe940ba1510b9bc36ece836484af7bb7fa"),
    ("rocksdbjni-10.1.3", "org.rocksdb", "e7f925287d9fe2574fb7c7a86f7facaa9b8ab602a2eed0e598bf633528121498"),
    ("rocksdbjni-11.8.1", "org.rocksdb", "628ed387887f4a431df480857954df2a28b4389bfe24858ccdec611cabf65dbf"),
    (
        "frocksdbjni-8.10.0-ververica-1.0",
        "com.ververica",
        "4e9bcd16a0232c7c8bc3779a2ff627be7c05c49826c1b2fa0bf7ba760f7cdcb7",
    ),
];
const COPY_GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:copy";

/// The JDK's compiler and each jar, or why it is not there. Without a JDK no jar is fetched.
pub fn found(folder: &Path) -> Vec<(&'static str, Result<PathBuf, String>)> {
    let javac = on_path("javac").map_err(|e| format!("{e}: apt-get install default-jdk-headless"));
    let jars = JARS.iter().map(|(name, group, digest)| {
        let place = javac.clone().and_then(|_| jar(folder, name, group, digest));
        (*name, place)
    });
    let jars: Vec<_> = jars.collect();
    std::iter::once(("javac", javac.clone())).chain(jars).collect()
}

fn jar(folder: &Path, name: &str, group: &str, digest: &str) -> Result<PathBuf, String> {
    let place = folder.join(format!("{name}.jar"));
    if sha256(&place)? == digest {
        return Ok(place);
    }
    on_path("mvn").map_err(|e| format!("{e}: apt-get install maven"))?;
    let (artifact, version) = name.split_once('-').unwrap_or((name, ""));
    let artifact = format!("{group}:{artifact}:{version}");
    eprintln!("setup: fetching {artifact}");
    let (artifact_word, target) =
        (format!("-Dartifact={artifact}"), format!("-DoutputDirectory={}", folder.display()));
    let args = ["-q", "-B", COPY_GOAL, &artifact_word, &target, "-Dmdep.useBaseVersion=true"];
    run::quiet("mvn", &args).ok_or_else(|| format!("mvn cannot fetch {artifact}: no network?"))?;
    match sha256(&place)? {
        found if found == digest => Ok(place),
        found => Err(format!("{name}.jar has SHA-256 {found}, not the pinned one: not used")),
    }
}
