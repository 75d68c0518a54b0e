//! The paths of the engines' libraries, as recorded by `cargo xtask setup` and `cargo xtask peers`.

use crate::engine::EngineName;
use std::path::{Path, PathBuf};

/// The library that `engine` needs, or the program of a server. `None`: the engine is compiled in.
///
/// # Errors
/// A text that says why the library is missing.
pub fn library(engine: EngineName, rocksdb: Option<&Path>) -> Result<Option<PathBuf>, String> {
    match (engine, engine.shim(), rocksdb) {
        (EngineName::Rocksdb, _, Some(path)) => {
            let told = path.is_file().then(|| Some(path.to_path_buf()));
            told.ok_or_else(|| format!("no file {}", path.display()))
        }
        (EngineName::Rocksdb, _, None) => noted("judges", "rocksdb-11.8.1", "cargo xtask setup").map(Some),
        (_, Some(shim), _) => noted("peers", shim, "cargo xtask peers").map(Some),
        (server, ..) if server.is_server() => mariadb(server).map(Some),
        (EngineName::Fjall, ..) => compiled_in(cfg!(feature = "fjall"), "fjall"),
        (EngineName::Redb, ..) => compiled_in(cfg!(feature = "redb"), "redb"),
        _ => Ok(None),
    }
}

/// What `cargo xtask setup` noted under this name: a jar, a compiler.
///
/// # Errors
/// A text that says why it is missing.
pub fn judge(name: &str) -> Result<PathBuf, String> {
    noted("judges", name, "cargo xtask setup")
}

/// Where distributions put programs of the system, which are not always on the path.
const SYSTEM: [&str; 3] = ["/usr/sbin", "/usr/libexec", "/usr/bin"];

/// The program `name` on the path or among those of the system.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SYSTEM.map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|place| place.is_file())
}

/// MariaDB's server, with the plugin of MyRocks if `engine` needs it.
fn mariadb(engine: EngineName) -> Result<PathBuf, String> {
    let server = program("mariadbd").ok_or("no program mariadbd: apt-get install mariadb-server")?;
    let plugin = Path::new("lib/mysql/plugin/ha_rocksdb.so");
    let prefix = server.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let has = [prefix, Path::new("/usr")].iter().any(|prefix| prefix.join(plugin).is_file());
    if engine == EngineName::Myrocks && !has {
        return Err("no plugin ha_rocksdb.so: apt-get install mariadb-plugin-rocksdb".to_owned());
    }
    Ok(server)
}

fn compiled_in(is: bool, feature: &str) -> Result<Option<PathBuf>, String> {
    if is { Ok(None) } else { Err(format!("this program was built without its feature {feature}")) }
}

fn noted(folder: &str, name: &str, chore: &str) -> Result<PathBuf, String> {
    let notes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target").join(folder).join("paths");
    let text = std::fs::read_to_string(&notes).map_err(|_| format!("`{chore}` has not been run"))?;
    found(&text, name).unwrap_or_else(|| Err(format!("`{chore}` noted no {name}")))
}

/// The recorded path of `name`. `None`: there is no record.
fn found(notes: &str, name: &str) -> Option<Result<PathBuf, String>> {
    let place = notes.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'))?;
    Some(match place.strip_prefix("missing: ") {
        Some(why) => Err(why.to_owned()),
        None if Path::new(place).is_file() => Ok(PathBuf::from(place)),
        None => Err(format!("{place} is gone")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read() {
        let notes = "leveldb\tmissing: no compiler\nlmdb\t/no/such.so\nlmdb2\t/dev/null\n";
        assert_eq!(found(notes, "leveldb"), Some(Err("no compiler".into())));
        assert_eq!(found(notes, "lmdb"), Some(Err("/no/such.so is gone".into())));
        assert_eq!(found(notes, "sqlite"), None);
    }

    #[test]
    fn a_missing_library_says_why() {
        let why = library(EngineName::Rocksdb, Some(Path::new("no/such/file.so"))).unwrap_err();
        assert_eq!(why, "no file no/such/file.so");
        assert_eq!(library(EngineName::Ashlardb, None), Ok(None));
    }
}
