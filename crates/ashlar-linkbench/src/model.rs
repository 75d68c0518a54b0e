//! The social graph: nodes, links between them, and the number of visible links of each node and link type.

/// The type of every node.
pub const NODE_TYPE: u32 = 2048;

/// The first link type; the others follow.
pub const FIRST_LINK_TYPE: u64 = 123_456_789;

/// The most links that a list returns.
pub const LIST_LIMIT: usize = 10_000;

/// Whether a link is in lists and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// Deleted, and kept.
    Hidden,
    /// In lists and counts.
    Visible,
}

impl Visibility {
    /// As stored.
    pub fn byte(self) -> u8 {
        u8::from(self == Visibility::Visible)
    }

    /// From its stored form. `None`: another byte.
    pub fn of(byte: u8) -> Option<Visibility> {
        match byte {
            0 => Some(Visibility::Hidden),
            1 => Some(Visibility::Visible),
            _ => None,
        }
    }
}

/// The links of one type that go out of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fan {
    /// The node.
    pub id1: u64,
    /// The type.
    pub link_type: u64,
}

/// A link of a fan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'a> {
    /// The node and type.
    pub fan: Fan,
    /// The node at the other end.
    pub id2: u64,
    /// Whether lists and counts have the link.
    pub visibility: Visibility,
    /// 0 in this workload.
    pub version: u32,
    /// Milliseconds since 1970.
    pub time: u64,
    /// At most 254 bytes.
    pub data: &'a [u8],
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// [`NODE_TYPE`].
    pub node_type: u32,
    /// 1 at first, 2 after an update.
    pub version: u64,
    /// Seconds since 1970.
    pub time: u32,
    /// Less than 1 MiB.
    pub data: &'a [u8],
}

/// The number of visible links of a fan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Visible links.
    pub count: u32,
    /// Milliseconds of the last change.
    pub time: u64,
    /// Changes since the load.
    pub version: u64,
}
