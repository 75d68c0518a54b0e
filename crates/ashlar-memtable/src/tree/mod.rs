//! A tree with one writer and many readers: the index for the built-in orders.
//!
//! Entries stay in the arena. A leaf has up to 14 of them, with four bytes of each key; a word tells their order. A
//! search reads two cache lines per leaf and mostly one entry. Example: the keys `user1`, `user19` and `user5` in a leaf
//! whose keys all begin with `user`:
//! ```text
//! slots: 3, in the order 1 2 0 | skip: 4 | words: `5`, `1`, `19` | entries: their addresses
//! ```
//! 1. A reader takes no lock and writes nothing. It loads a node's word with Acquire and has a snapshot of the node.
//!    The writer fills a slot before it stores a word that has the slot, and fills no slot twice.
//! 2. A full leaf is replaced by two new ones. It stays as it is for readers that are in it, and is marked dead. Nodes
//!    are freed with the arena.
//! 3. A dead leaf holds all that was inserted before it died. So a search that began before ends correctly in it. An
//!    iterator that finds its leaf dead searches its place again.
//! 4. All keys that a search brings to a node between two others begin alike: with what the bounds have in common. The
//!    node skips these bytes. A node at an edge of the tree has one bound or none; there the search compares the
//!    beginning, and the writer replaces the node when a key begins otherwise.
//! 5. Ascending inserts leave full leaves: if an entry follows the one inserted before it, a full leaf is not halved.
//!
//! Sources: Mao, Kohler, Morris, "Cache craftiness for fast multicore key-value storage" (EuroSys 2012), for the order
//! of slots in a word; Bayer, Unterauer, "Prefix B-trees" (TODS 1977), for the skipped bytes.

mod build;
mod insert;
mod node;
mod read;
mod search;
mod slots;
mod weigh;

pub(crate) use read::Tree;
