//! Column families: key spaces of their own in one database, changed together.
//!
//! `cargo run --example families [DIRECTORY]`

use ashlardb::{Compression, Db, Result, WriteBatch};
use std::path::Path;

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "families.db".to_owned());
    run(Path::new(&dir))
}

/// The example, in the directory `dir`.
pub fn run(dir: &Path) -> Result<()> {
    // Families that are named here are made if they are missing; each may have settings of its own.
    let db = Db::builder(dir)
        .family("articles", |f| f.compression(Compression::Zstd))
        .family("index", |f| f.write_buffer(8 << 20))
        .open()?;
    let (articles, index) = (db.family("articles")?, db.family("index")?);

    // One batch over both: no reader, and no crash, ever sees the article without its index entry.
    db.write(
        WriteBatch::new()
            .in_family(&articles, |b| b.put(b"42", b"Stones are laid in courses."))
            .in_family(&index, |b| b.put(b"stones/42", b"")),
    )?;

    // The same key in another family is another key.
    assert!(index.get(b"42")?.is_none());
    for entry in index.scan(..).prefix(b"stones/") {
        let (key, _) = entry?;
        let id = key.strip_prefix(b"stones/").unwrap_or_default();
        let article = articles.get(id)?.map(|text| text.escape_ascii().to_string());
        println!("{} -> {}", key.escape_ascii(), article.unwrap_or_default());
    }

    // A family goes at once, with all it holds, whatever its size.
    let scratch = match db.family("scratch") {
        Ok(there) => there,
        Err(_) => db.create_family("scratch")?,
    };
    scratch.put(b"x", b"y")?;
    db.drop_family(&scratch)?;
    let names: Vec<String> = db.families().iter().map(|f| f.name().to_owned()).collect();
    println!("families: {}", names.join(", "));
    assert_eq!(names, ["default", "articles", "index"]);
    db.close()
}
