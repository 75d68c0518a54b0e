//! The bytes of a directory.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of all files below a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Allocated.
    pub allocated: u64,
    /// Sum of the lengths.
    pub apparent: u64,
}

/// Sums all files below `dir`. A file that is deleted meanwhile does not count.
pub fn taken(dir: &Path) -> Taken {
    let mut taken = Taken::default();
    let mut open = vec![dir.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                open.push(entry.path());
            } else {
                taken.allocated += meta.blocks() * 512;
                taken.apparent += meta.len();
            }
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_not_allocated() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("below")).unwrap();
        std::fs::write(dir.path().join("below/full"), vec![1_u8; 100_000]).unwrap();
        let sparse = std::fs::File::create(dir.path().join("sparse")).unwrap();
        sparse.set_len(10 << 20).unwrap();
        let taken = taken(dir.path());
        assert_eq!(taken.apparent, 100_000 + (10 << 20));
        assert!((100_000..1 << 20).contains(&taken.allocated), "{taken:?}");
        assert_eq!(super::taken(Path::new("/no/such/folder")), Taken::default());
    }
}
