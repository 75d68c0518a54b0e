//! `natives`: the table of native methods of RocksDB's Java classes, read from published jars.
//!
//! 1. The table has one row per class, method and descriptor. A row lists the jars that declare the method.
//! 2. The table holds facts only: names, types, and whether a program can catch a `RocksDBException` of the method. It can if the
//!    method declares the exception, or if every method that calls it does, directly or through others.

use crate::fetch::{on_path, replace};
use crate::{project, run};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask natives JAR...

Writes crates/ashlar-jni/api/natives.tsv: every native method that a class of the jars declares, with its descriptor.
Needs javap (of a JDK) and unzip. The table in the repository was made of these jars of Maven Central, oldest first:
  org.rocksdb:rocksdbjni 7.9.2, 8.8.1, 9.8.4, 10.1.3, 11.8.1
  com.ververica:frocksdbjni 8.10.0-ververica-1.0";

/// A method: class without its package, name, descriptor.
type Native = (String, String, String);

/// Which jars declare a method, and whether a program can catch a `RocksDBException` of it.
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
    let words = [&["-p", "-s", "-c", "-cp", jar], &classes[..]].concat();
    run::quiet("javap", &words).ok_or_else(|| format!("{jar}: javap cannot read its classes"))
}

/// The methods of a jar.
#[derive(Debug, Default)]
struct Methods {
    natives: Vec<Native>,
    /// Each method, and whether it declares `RocksDBException`.
    declares: BTreeMap<Native, bool>,
    /// The methods that a method calls.
    calls: BTreeMap<Native, BTreeSet<Native>>,
    /// The class that a class extends.
    extends: BTreeMap<String, String>,
}

impl Methods {
    /// The methods in what `javap -p -s -c` shows.
    fn of(shown: &str) -> Methods {
        let mut all = Methods::default();
        let (mut class, mut begun, mut method) = (String::new(), None, None);
        for line in shown.lines() {
            if !line.starts_with(' ') {
                if let Some(name) = declared_class(line) {
                    let above = without_parameters(line);
                    let above = above.split(" extends ").nth(1).and_then(|rest| rest.split(' ').next());
                    let above = above.and_then(|above| above.strip_prefix("org.rocksdb."));
                    all.extends.extend(above.map(|above| (name.clone(), above.to_owned())));
                    class = name;
                }
            } else if let Some((_, target)) = line.split_once("Method ").filter(|_| line.contains(": invoke"))
            {
                if let Some((by, of)) = method.clone().zip(called(target, &class)) {
                    all.calls.entry(by).or_default().insert(of);
                }
            } else if line.starts_with("  ") && !line.starts_with("   ") && line.contains('(') {
                let name = line.split('(').next().and_then(|head| head.rsplit(' ').next());
                begun = name.map(|name| (name.to_owned(), line.to_owned()));
            } else if let (Some((name, line)), Some(descriptor)) =
                (&begun, line.trim().strip_prefix("descriptor: "))
            {
                let found = (class.clone(), name.clone(), descriptor.to_owned());
                if line.contains(" native ") {
                    all.natives.push(found.clone());
                }
                all.declares.insert(found.clone(), line.contains("org.rocksdb.RocksDBException"));
                (method, begun) = (Some(found), None);
            }
        }
        all
    }

    /// Whether `class` is `above`, or extends it.
    fn is_below(&self, class: &str, above: &str) -> bool {
        let mut next = Some(class);
        while let Some(class) = next {
            if class == above {
                return true;
            }
            next = self.extends.get(class).map(String::as_str);
        }
        false
    }

    /// The methods that call each method, also through the class that it extends.
    fn callers(&self) -> BTreeMap<&Native, Vec<&Native>> {
        let mut named: BTreeMap<(&str, &str), Vec<&Native>> = BTreeMap::new();
        for method in self.declares.keys() {
            named.entry((&method.1, &method.2)).or_default().push(method);
        }
        let mut callers: BTreeMap<&Native, Vec<&Native>> = BTreeMap::new();
        for (caller, called) in &self.calls {
            for (class, name, descriptor) in called {
                let same = named.get(&(&**name, &**descriptor)).into_iter().flatten();
                for method in
                    same.filter(|method| self.is_below(&method.0, class) || self.is_below(class, &method.0))
                {
                    callers.entry(method).or_default().push(caller);
                }
            }
        }
        callers
    }

    /// The methods of which a program can catch a `RocksDBException`.
    fn catchable(&self) -> BTreeSet<&Native> {
        let callers = self.callers();
        let declared = self.declares.iter().filter(|(_, declares)| **declares);
        let mut known: BTreeSet<&Native> = declared.map(|(method, _)| method).collect();
        loop {
            let before = known.len();
            for (method, by) in &callers {
                if by.iter().all(|caller| known.contains(caller)) {
                    known.insert(method);
                }
            }
            if known.len() == before {
                return known;
            }
        }
    }
}

/// A line without what is between angle brackets: parameters of types have bounds, which are no classes above.
fn without_parameters(line: &str) -> String {
    let (mut depth, mut out) = (0, String::new());
    for c in line.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

/// The method in `org/rocksdb/A.name:(J)V`, or in `name:(J)V`, which is one of `class`.
fn called(target: &str, class: &str) -> Option<Native> {
    let (path, descriptor) = target.trim().split_once(':')?;
    let (class, name) = match path.rsplit_once('.') {
        Some((class, name)) => (class.strip_prefix("org/rocksdb/")?, name),
        None => (class, path),
    };
    Some((class.to_owned(), name.trim_matches('"').to_owned(), descriptor.to_owned()))
}

/// The native methods in what `javap` shows, and whether a program can catch a `RocksDBException` of each.
fn parse(shown: &str) -> Vec<(Native, bool)> {
    let methods = Methods::of(shown);
    let catchable = methods.catchable();
    methods.natives.iter().map(|native| (native.clone(), catchable.contains(native))).collect()
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
        let shown = "Compiled from \"A.java\"\npublic class org.rocksdb.A<T extends org.rocksdb.A<T>> extends org.rocksdb.B {\n  \
            native void x(long, byte[]) throws org.rocksdb.RocksDBException;\n    descriptor: (J[B)V\n\n  \
            void y();\n    descriptor: ()V\n\n  private static native long z();\n    descriptor: ()J\n}\n";
        let native = |name: &str, of: &str, throws| ((String::from("A"), name.into(), of.into()), throws);
        assert_eq!(parse(shown), [native("x", "(J[B)V", true), native("z", "()J", false)]);
    }

    #[test]
    fn a_native_throws_what_all_its_callers_declare() {
        let shown = "abstract class org.rocksdb.B {\n  public void p() throws org.rocksdb.RocksDBException;\n    \
            descriptor: ()V\n    Code:\n       1: invokevirtual #2  // Method q:()V\n\n  abstract void q();\n    \
            descriptor: ()V\n}\nclass org.rocksdb.A extends org.rocksdb.B {\n  void q();\n    descriptor: ()V\n    \
            Code:\n       1: invokestatic  #3  // Method n:(J)V\n\n  static native void n(long);\n    \
            descriptor: (J)V\n\n  public void r();\n    descriptor: ()V\n    Code:\n       1: invokestatic  #4  \
            // Method m:(J)V\n\n  static native void m(long);\n    descriptor: (J)V\n}\n";
        let native = |name: &str, throws| ((String::from("A"), name.into(), "(J)V".into()), throws);
        assert_eq!(parse(shown), [native("n", true), native("m", false)]);
    }
}
