//! The configuration: property files of the original program, as values that have been checked.

mod fields;
mod functions;
mod names;
mod properties;

pub use properties::Properties;

use crate::digest::{fold, of_bytes};
use crate::generate::access::Function as Access;
use crate::generate::degree::Function as Degree;
use crate::generate::multiget::Geometric;
use crate::generate::payload::Shape;
use crate::mix::{Mix, Op};
use ashlar_peers::meter::Kinds;
use fields::Fields;
use functions::{Functions, Prefix};
use std::path::Path;

/// The workload without files.
const WORKLOAD: &str = include_str!("workload.properties");

/// Ids and counters fit 48 bits, so that no sum of them overflows.
const MOST_IDS: u64 = 1 << 48;

/// Longest data of a link and of a node, plus one.
pub const LINK_DATA_END: usize = 255;
/// See [`LINK_DATA_END`].
pub const NODE_DATA_END: usize = 1 << 20;

/// The nodes and links of the load.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphConfig {
    /// The first id.
    pub first: u64,
    /// The id behind the last one.
    pub end: u64,
    /// Link types.
    pub types: u64,
    /// The out-degree.
    pub degree: Degree,
    /// `nlinks_config`.
    pub parameter: u64,
    /// `nlinks_default`.
    pub least: u64,
    /// Other ends are drawn below this number; 0: they follow the node's own id.
    pub random_id2: u64,
    /// Median bytes of a link's data.
    pub link_bytes: f64,
    /// Median bytes of a node's data.
    pub node_bytes: f64,
    /// Data of new links, rewritten links, new nodes, rewritten nodes.
    pub shapes: [Shape; 4],
}

/// Access functions.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessConfig {
    /// Link reads with the permutation of the degrees, and others with their percentage.
    pub reads: (Access, Option<(Access, f64)>),
    /// Link writes, likewise.
    pub writes: (Access, Option<(Access, f64)>),
    /// Nodes read, rewritten and removed.
    pub nodes: [Access; 3],
}

/// Everything that the files say.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The graph.
    pub graph: GraphConfig,
    /// The operations.
    pub mix: Mix,
    /// Which ids they take.
    pub access: AccessConfig,
    /// How many links a multiget takes.
    pub multiget: Option<Geometric>,
    /// The percentage of lists that continue an earlier one.
    pub history: f64,
    /// `id2gen_config`: each requester has ends of its own.
    pub own_ends: bool,
    /// Loader threads.
    pub loaders: u32,
    /// Ids that a loader takes at a time.
    pub chunk: u64,
    /// Whether nodes are loaded.
    pub nodes: bool,
    /// Seed of the load.
    pub load_seed: u64,
    /// Requester threads.
    pub requesters: u32,
    /// Operations of each.
    pub requests: u64,
    /// Operations a second of each; 0: as fast as they can.
    pub rate: f64,
    /// Seconds after which the requests end; 0: never.
    pub seconds: f64,
    /// Seconds before anything is counted.
    pub warmup: f64,
    /// Seed of the requests.
    pub request_seed: u64,
    /// Failed operations after which a requester gives up; `None`: never.
    pub max_failed: Option<u64>,
    /// Whether the original is followed where it differs from its words.
    pub as_java: bool,
    /// A digest of every property and its text.
    pub digest: u64,
}

impl Config {
    /// The workload without files.
    ///
    /// # Errors
    /// None: a test reads it.
    pub fn builtin(overrides: &[String], as_java: bool) -> Result<Config, String> {
        let properties = Properties::parse(WORKLOAD, "the built-in workload")?;
        Config::of(properties, overrides, Path::new(""), as_java)
    }

    /// Reads the file `path`. Relative names in it start at `home`.
    ///
    /// # Errors
    /// A file cannot be read, or a property is unknown or impossible; the text names file and line.
    pub fn read(path: &Path, home: &Path, overrides: &[String], as_java: bool) -> Result<Config, String> {
        Config::of(Properties::read(path, home)?, overrides, home, as_java)
    }

    fn of(mut given: Properties, overrides: &[String], home: &Path, as_java: bool) -> Result<Config, String> {
        overrides.iter().try_for_each(|text| given.set(text))?;
        names::check(&given)?;
        let fields = Fields(&given);
        let functions = Functions { fields, home };
        let shares: Vec<f64> = Op::ALL
            .iter()
            .map(|op| fields.number(op.property(), 0.0, 0.0..=100.0))
            .collect::<Result<_, _>>()?;
        let failed = fields.number("max_failed_requests", 100_i64, -1..=i64::MAX)?;
        Ok(Config {
            graph: graph(fields, functions, as_java)?,
            mix: Mix::new(&shares)?,
            access: access(functions, as_java)?,
            multiget: functions.multiget(as_java)?,
            history: fields.number("getlinklist_history", 0.0, 0.0..=100.0)?,
            own_ends: fields.number("id2gen_config", 0_u32, 0..=1)? == 1,
            loaders: fields.number("loaders", 1, 1..=1024)?,
            chunk: fields.number("loader_chunk_size", 2048, 1..=MOST_IDS)?,
            nodes: fields.yes("generate_nodes", true)?,
            load_seed: fields.number("load_random_seed", 1, 0..=u64::MAX)?,
            requesters: fields.number("requesters", 1, 1..=1024)?,
            requests: fields.number("requests", u64::MAX, 1..=u64::MAX)?,
            rate: fields.number("requestrate", 0.0, f64::MIN..=1e9)?.max(0.0),
            seconds: fields.number("maxtime", 0.0, 0.0..=1e9)?,
            warmup: fields.number("warmup_time", 0.0, 0.0..=1e9)?,
            request_seed: fields.number("request_random_seed", 1, 0..=u64::MAX)?,
            max_failed: u64::try_from(failed).ok(),
            as_java,
            digest: given.iter().fold(0, |digest, (key, given)| {
                fold(digest, &[of_bytes(key.as_bytes()), of_bytes(given.value.as_bytes())])
            }),
        })
    }

    /// Nodes of the load.
    pub fn ids(&self) -> u64 {
        self.graph.end - self.graph.first
    }
}

fn graph(fields: Fields<'_>, functions: Functions<'_>, as_java: bool) -> Result<GraphConfig, String> {
    let first = fields.number("startid1", 1, 1..=MOST_IDS)?;
    let end = fields.required("maxid1", 1..=MOST_IDS)?;
    if end <= first {
        return Err(fields.wrong("maxid1", &format!("must be above startid1 = {first}, or there is no node")));
    }
    let shape = |head: &str| shape(fields, head).map(|shape| if as_java { shape.as_java() } else { shape });
    Ok(GraphConfig {
        first,
        end,
        types: fields.number("link_type_count", 1, 1..=1_000_000)?,
        degree: functions.degree()?,
        parameter: fields.number("nlinks_config", 1, 0..=MOST_IDS)?,
        least: fields.number("nlinks_default", 0, 0..=1_000_000)?,
        random_id2: fields.number("randomid2max", 0, 0..=(1 << 31) - 1)?,
        link_bytes: fields.number("link_datasize", 8.0, 0.0..=254.0)?,
        node_bytes: fields.number("node_datasize", 128.0, 0.0..=1e6)?,
        shapes: [
            shape("link_add_datagen")?,
            shape("link_up_datagen")?,
            shape("node_add_datagen")?,
            shape("node_up_datagen")?,
        ],
    })
}

/// The bytes of the generator with the prefix `head`.
fn shape(fields: Fields<'_>, head: &str) -> Result<Shape, String> {
    if let Some(given) = fields.text(head) {
        let class = given.value.rsplit('.').next().unwrap_or_default();
        if !["MotifDataGenerator", "UniformDataGenerator"].contains(&class) {
            return Err(fields.wrong(head, "there are MotifDataGenerator and UniformDataGenerator"));
        }
    }
    let name = |end: &str| format!("{head}_{end}");
    let first = fields.number(&name("startbyte"), 32, 0..=255_u8)?;
    let last = fields.number(&name("endbyte"), 100, 0..=255_u8)?;
    if last < first {
        return Err(fields.wrong(&name("endbyte"), &format!("is below {} = {first}", name("startbyte"))));
    }
    Ok(Shape {
        first,
        last,
        uniqueness: fields.number(&name("uniqueness"), 1.0, 0.0..=1.0)?,
        motif: fields.number(&name("motif_length"), 512, 1..=1_usize << 20)?,
    })
}

fn access(functions: Functions<'_>, as_java: bool) -> Result<AccessConfig, String> {
    // The original reads the settings of uncorrelated writes under the names of those of reads.
    let uncorrelated_writes = if as_java { Prefix::ReadUncorrelated } else { Prefix::WriteUncorrelated };
    Ok(AccessConfig {
        reads: (functions.access(Prefix::Read)?, functions.blend(Prefix::ReadUncorrelated)?),
        writes: (functions.access(Prefix::Write)?, functions.blend(uncorrelated_writes)?),
        nodes: [
            functions.access(Prefix::NodeRead)?,
            functions.access(Prefix::NodeUpdate)?,
            functions.access(Prefix::NodeDelete)?,
        ],
    })
}

#[cfg(test)]
mod tests;
