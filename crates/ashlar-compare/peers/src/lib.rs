//! Other engines behind one interface, in processes of their own, with what the system counted of them.
//!
//! 1. An engine is a [`peer::Peer`] with a name ([`engine::EngineName`]), opened with [`settings::Settings`] in the same sense as
//!    every other engine. A feature that an engine lacks is refused with "not offered: why", or emulated in a stated way.
//! 2. An engine in C or C++ is a shared object that a chore fetched or built ([`place`]), loaded at run time. So no build of
//!    the workspace needs it, and a missing engine is reported with the reason.
//! 3. One process opens one engine. The program that compares them starts that process and watches it ([`process`]), and
//!    notices what disturbs it ([`quiet`], [`stop`]).
//! 4. The process itself reads the system's counters ([`measure`], [`sampler`], [`space`], [`memory`]),
//!    which become the parts of a record ([`observed`], [`meter`]).

pub mod client;
pub mod device;
pub mod engine;
pub mod header;
pub mod measure;
pub mod memory;
pub mod meter;
pub mod observed;
pub mod operations;
pub mod peer;
pub mod peers;
pub mod place;
pub mod process;
pub mod quiet;
pub mod records;
pub mod sampler;
pub mod settings;
pub mod shown;
pub mod space;
pub mod stop;
mod usage;
