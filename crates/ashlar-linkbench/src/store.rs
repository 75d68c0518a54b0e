//! The graph through one client, in the form of its engine: keys and values ([`crate::kv`]) or tables ([`crate::sql`]).

use crate::config::Config;
use crate::kv::contents::Contents;
use crate::kv::{Added, Graph, Listing, Locks, Mode};
use crate::model::{Count, Fan, Link, Node};
use crate::phase::check::{self, Expected, Faults};
use crate::sql::{MariaDb, Tables};
use ashlar_peers::client::Client;
use ashlar_peers::peer::{Peer, Result};
use ashlar_peers::space::{Taken, taken};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::Path;

/// What the operations of one client did so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Bytes of the keys and values that were written. In the SQL form those that the key-value form would write.
    pub written: u64,
    /// Transactions that met a conflict and ran again.
    pub conflicts: u64,
    /// The difference that the changes made to the digests of the database. `None`: the form does not read what it replaces.
    pub contents: Option<Contents>,
}

/// The ten operations, and what the phases need besides. All errors are those of the engine.
pub trait Store: Send {
    /// Reads and writes entries, for load and check.
    type Client: Client;

    /// The client.
    fn client(&mut self) -> &mut Self::Client;

    /// What was done.
    fn tally(&self) -> Tally;

    /// Inserts a visible link, or rewrites it.
    ///
    /// # Errors
    /// As all others.
    fn add_link(&mut self, link: &Link<'_>) -> Result<Added>;

    /// Hides a visible link. False: it was hidden, or is not there.
    ///
    /// # Errors
    /// As all others.
    fn delete_link(&mut self, fan: Fan, id2: u64, now: u64) -> Result<bool>;

    /// The count of a fan.
    ///
    /// # Errors
    /// As all others.
    fn count(&mut self, fan: Fan) -> Result<Option<Count>>;

    /// Calls `see` with each of the links that exists, hidden ones too, in the order of `ids`.
    ///
    /// # Errors
    /// As all others.
    fn multiget(&mut self, fan: Fan, ids: &[u64], see: impl FnMut(&Link<'_>)) -> Result<()>;

    /// Calls `see` with the visible links of a list, newest first. Returns how many there are.
    ///
    /// # Errors
    /// As all others.
    fn list(&mut self, listing: &Listing, see: impl FnMut(&Link<'_>)) -> Result<usize>;

    /// Calls `see` with a node. False: it is not there.
    ///
    /// # Errors
    /// As all others.
    fn get_node(&mut self, id: u64, see: impl FnOnce(&Node<'_>)) -> Result<bool>;

    /// Writes a new node, under `id` unless the engine numbers its nodes itself.
    ///
    /// # Errors
    /// As all others.
    fn add_node(&mut self, id: u64, node: &Node<'_>) -> Result<()>;

    /// Rewrites a node. False: it is not there.
    ///
    /// # Errors
    /// As all others.
    fn update_node(&mut self, id: u64, node: &Node<'_>) -> Result<bool>;

    /// Removes a node. False: it was not there.
    ///
    /// # Errors
    /// As all others.
    fn delete_node(&mut self, id: u64) -> Result<bool>;

    /// The id of the first new node, for engines that do not number their nodes.
    ///
    /// # Errors
    /// As all others.
    fn next_node(&mut self, config: &Config) -> Result<u64> {
        check::next_node(self.client(), config)
    }

    /// Checks one fan, while no client writes it.
    ///
    /// # Errors
    /// As all others.
    fn check_fan(&mut self, fan: Fan) -> Result<Faults> {
        check::fan(self.client(), fan)
    }

    /// Checks everything, while no client writes. `expected` is `None` where the driver does not know the rows.
    ///
    /// # Errors
    /// As all others.
    fn check_everything(&mut self, expected: Option<Expected>) -> Result<Faults> {
        check::everything(self.client(), expected)
    }
}

/// A form of the graph: the engine, and the store of a client.
pub trait Form {
    /// The engine.
    type Peer: Peer;
    /// The store.
    type Store<'a>: Store<Client = <Self::Peer as Peer>::Client<'a>>
    where
        Self: 'a;

    /// The store of a client.
    fn store<'a>(client: <Self::Peer as Peer>::Client<'a>, locks: &'a Locks, mode: Mode) -> Self::Store<'a>
    where
        Self: 'a;

    /// What the graph takes in the directory `dir`.
    fn taken(_peer: &Self::Peer, dir: &Path) -> Taken {
        taken(dir)
    }

    /// The engine's own settings, for the records.
    fn options(_peer: &Self::Peer) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
}

/// Keys and values.
pub struct KeyValue<P>(PhantomData<P>);

impl<P: Peer> Form for KeyValue<P> {
    type Peer = P;
    type Store<'a>
        = Graph<'a, P::Client<'a>>
    where
        P: 'a;

    fn store<'a>(client: P::Client<'a>, locks: &'a Locks, mode: Mode) -> Graph<'a, P::Client<'a>>
    where
        P: 'a,
    {
        Graph::new(client, locks, mode)
    }
}

/// Tables and statements.
pub struct Sql;

impl Form for Sql {
    type Peer = MariaDb;
    type Store<'a> = Tables<'a>;

    fn store<'a>(client: <MariaDb as Peer>::Client<'a>, _: &'a Locks, _: Mode) -> Tables<'a>
    where
        Sql: 'a,
    {
        Tables::new(client)
    }

    fn taken(peer: &MariaDb, dir: &Path) -> Taken {
        peer.taken(dir)
    }

    fn options(peer: &MariaDb) -> BTreeMap<String, String> {
        let all = [("server", peer.options()), ("empty server", peer.empty())];
        all.map(|(name, text)| (name.to_owned(), text)).into()
    }
}
