//! `natives`: the table of native methods of RocksDB's Java classes, read from published jars.
//!
//! 1. The table has one row per class, method and descriptor. A row lists the jars that declare the method.
//! 2. The table holds facts only: names, types, and whether the method declares `RocksDBException`.

use crate::fetch::{on_path, replace};
use crate::{project, run};
use std::collections::BTreeMap;
use std::path::Path;

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask natives JAR...

Writes crates/ashlar-jni/api/natives.tsv: every native method that a class of the jars declares, with its descriptor.
Needs javap (of a JDK) and unzip. The table in the repository was made of these jars of Maven Central, oldest first:
  org.rocksdb:rocksdbjni 7.9.2, 8.8.1, 9.8.4, 10.1.3, 11.8.1
  com.ververica:frocksdbjni 8.10.0-ververica-1.0";

/// A native method: class without its package, name, descriptor.
type Native = (String, String, String);

/// Which jars declare a method, and whether it may throw `RocksDBException`.
#[derive(Debug, Default)]
struct Declared {
    throws: bool,
    jars: Vec<String>,
}

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    if args.is_empty() {
        return Err(format!("natives takes one jar or more\n\n{HELP}"));
    }
    for program in ["javap", "unzip"] {
        on_path(program).map_err(|e| format!("{e}: apt-get install default-jdk-headless unzip"))?;
    }
    let mut natives: BTreeMap<Native, Declared> = BTreeMap::new();
    for jar in args {
        let label = Path::new(jar).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let label = label.strip_prefix("rocksdbjni-").unwrap_or(&label).to_owned();
        for (native, throws) in parse(&shown(jar)?) {
            let declared = natives.entry(native).or_default();
            declared.throws |= throws;
            declared.jars.push(label.clone());
        }
    }
    let mut table = String::from(
        "# Native methods of RocksDB's Java classes. Made by `cargo xtask natives`.\n# class\tmethod\tdescriptor\tthrows\tjars\n",
    );
    for ((class, method, descriptor), declared) in &natives {
        let throws = if declared.throws { "throws" } else { "-" };
        let is_everywhere = declared.jars.len() == args.len();
        let jars = if is_everywhere { "all".to_owned() } else { declared.jars.join(" ") };
        table += &format!("{class}\t{method}\t{descriptor}\t{throws}\t{jars}\n");
    }
    let path = project::root().join("crates/ashlar-jni/api/natives.tsv");
    replace(&path, table.as_bytes())?;
    println!("{}: {} native methods of {} jars", path.display(), natives.len(), args.len());
    Ok(())
}

/// What `javap` shows of all classes of a jar.
fn shown(jar: &str) -> Result<String, String> {
    let listed = run::quiet("unzip", &["-Z1", jar, "org/rocksdb/*.class"])
        .ok_or_else(|| format!("{jar}: no classes of org.rocksdb"))?;
    let classes: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(".class")).collect();
    let words = [&["-p", "-s", "-cp", jar], &classes[..]].concat();
    run::quiet("javap", &words).ok_or_else(|| format!("{jar}: javap cannot read its classes"))
}

/// The native methods in what `javap -p -s` shows, and whether each declares `RocksDBException`.
fn parse(shown: &str) -> Vec<(Native, bool)> {
    let (mut natives, mut class, mut found) = (Vec::new(), String::new(), None);
    for line in shown.lines() {
        if !line.starts_with(' ') {
            if let Some(name) = declared_class(line) {
                class = name;
            }
        } else if line.contains(" native ") {
            let name = line.split('(').next().and_then(|head| head.rsplit(' ').next());
            found = name.map(|name| (name.to_owned(), line.contains("org.rocksdb.RocksDBException")));
        } else if let (Some((name, throws)), Some(descriptor)) =
            (&found, line.trim().strip_prefix("descriptor: "))
        {
            natives.push(((class.clone(), name.clone(), descriptor.to_owned()), *throws));
            found = None;
        }
    }
    natives
}

/// The class that a line of `javap` declares, without its package.
fn declared_class(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip_while(|word| !["class", "interface", "enum"].contains(word));
    words.next()?;
    let name = words.next()?.split('<').next()?;
    name.strip_prefix("org.rocksdb.").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn natives_are_found_with_their_class() {
        let shown = "Compiled from \"A.java\"\npublic class org.rocksdb.A<T> extends org.rocksdb.B {\n  \
            native void x(long, byte[]) throws org.rocksdb.RocksDBException;\n    descriptor: (J[B)V\n\n  \
            void y();\n    descriptor: ()V\n\n  private static native long z();\n    descriptor: ()J\n}\n";
        let native = |name: &str, of: &str, throws| ((String::from("A"), name.into(), of.into()), throws);
        assert_eq!(parse(shown), [native("x", "(J[B)V", true), native("z", "()J", false)]);
    }
}
