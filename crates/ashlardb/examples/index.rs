//! A secondary index: articles by number, and the same articles by word, changed together.
//!
//! `cargo run -p ashlardb --example index [DIRECTORY]`

use ashlardb::prelude::*;
use ashlardb::{Compression, Result};
use std::path::Path;

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "index.db".to_owned());
    run(Path::new(&dir))
}

struct Library {
    db: Db,
    articles: Family,
    words: Family,
}

impl Library {
    fn open(dir: &Path) -> Result<Library> {
        let db = Db::builder(dir)
            .family("articles", |f| f.compression(Compression::Zstd))
            .family("words", |f| f.write_buffer(8 << 20))
            .open()?;
        let (articles, words) = (db.family("articles")?, db.family("words")?);
        Ok(Library { db, articles, words })
    }

    /// Adds an article to a batch, with its index entries.
    fn add(&self, to: &WriteBatch, number: u32, text: &str) -> Result<()> {
        to.family(&self.articles).put(number.to_be_bytes(), text)?;
        for word in text.split_whitespace() {
            let entry = [word.to_lowercase().as_bytes(), b"/", &number.to_be_bytes()].concat();
            to.family(&self.words).put(entry, "")?;
        }
        Ok(())
    }

    /// The articles with the word, as of one moment.
    fn find(&self, word: &str) -> Result<Vec<String>> {
        let now = self.db.snapshot()?;
        let mut found = Vec::new();
        for entry in now.family(&self.words).prefix(format!("{word}/")) {
            let (key, _) = entry?;
            let number = key.last_chunk::<4>().copied().unwrap_or_default();
            if let Some(text) = now.family(&self.articles).get(number)? {
                found.push(text.escape_ascii().to_string());
            }
        }
        Ok(found)
    }
}

/// The example, in the directory `dir`.
pub fn run(dir: &Path) -> Result<()> {
    let library = Library::open(dir)?;

    // No reader, and no crash, ever sees an article without its index entries.
    let batch = WriteBatch::new();
    library.add(&batch, 1, "Stones are laid in courses")?;
    library.add(&batch, 2, "Courses are bound with mortar")?;
    library.db.write(&batch)?;
    // Written, the batch is empty and ready for the next articles.
    library.add(&batch, 3, "Mortar is lime and sand")?;
    library.db.write(&batch)?;

    let found = library.find("courses")?;
    println!("courses: {found:?}");
    assert_eq!(found.len(), 2);
    assert_eq!(library.find("sand")?, ["Mortar is lime and sand"]);

    // A family goes at once, with all it holds, whatever its size.
    let scratch = library.db.family("scratch").or_else(|_| library.db.create_family("scratch"))?;
    scratch.put("x", "y")?;
    library.db.drop_family(&scratch)?;
    let names: Vec<String> = library.db.families().iter().map(|f| f.name().to_owned()).collect();
    assert_eq!(names, ["default", "articles", "words"]);
    library.db.close()
}
