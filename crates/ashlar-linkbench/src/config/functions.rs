//! Names of distributions, as the original's classes or built-in functions, with the parameters behind their prefix.

use super::fields::Fields;
use crate::generate::access::Function as Access;
use crate::generate::degree::Function as Degree;
use crate::generate::multiget::Geometric;
use crate::generate::table::Table;
use std::path::Path;

/// The uses of an access function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// Link reads.
    Read,
    /// Link reads that do not follow the degrees.
    ReadUncorrelated,
    /// Link writes.
    Write,
    /// Link writes that do not follow the degrees.
    WriteUncorrelated,
    /// Node reads.
    NodeRead,
    /// Node updates.
    NodeUpdate,
    /// Node deletes.
    NodeDelete,
}

impl Prefix {
    fn text(self) -> &'static str {
        match self {
            Prefix::Read => "read",
            Prefix::ReadUncorrelated => "read_uncorr",
            Prefix::Write => "write",
            Prefix::WriteUncorrelated => "write_uncorr",
            Prefix::NodeRead => "node_read",
            Prefix::NodeUpdate => "node_update",
            Prefix::NodeDelete => "node_delete",
        }
    }

    /// The distribution of a data file.
    fn observed(self) -> &'static str {
        match self {
            Prefix::Read | Prefix::ReadUncorrelated => "link_nreads",
            Prefix::Write | Prefix::WriteUncorrelated => "link_nwrites",
            Prefix::NodeRead => "node_nreads",
            Prefix::NodeUpdate | Prefix::NodeDelete => "node_nwrites",
        }
    }
}

/// Reads names of distributions.
#[derive(Clone, Copy, Debug)]
pub struct Functions<'a> {
    /// The properties.
    pub fields: Fields<'a>,
    /// Where relative file names start.
    pub home: &'a Path,
}

const ACCESS: &str = "there are ZipfDistribution, UniformDistribution, REAL, ROUND_ROBIN, RECIPROCAL, MULTIPLE, POWER and PERFECT_POWER";
const DEGREE: &str = "there are REAL, CONST, RECIPROCAL, MULTIPLES, PERFECT_SQUARES, EXPONENTIAL, ZipfDistribution and UniformDistribution";

impl Functions<'_> {
    /// The name behind the package, in capitals.
    fn name(self, key: &str) -> Option<String> {
        let given = self.fields.text(key)?;
        Some(given.value.rsplit('.').next().unwrap_or_default().to_uppercase())
    }

    /// A distribution of the data file. `None`: no file is given.
    fn observed(self, name: &str) -> Result<Option<Table>, String> {
        let Some(given) = self.fields.text("data_file") else { return Ok(None) };
        let read = Table::read(&self.home.join(&given.value), name);
        read.map(Some).map_err(|why| format!("{}: {why}", given.place))
    }

    /// `nlinks_func`.
    pub fn degree(self) -> Result<Degree, String> {
        let key = "nlinks_func";
        let name = self.name(key).ok_or_else(|| format!("{key} is missing: {DEGREE}"))?;
        let fields = self.fields;
        let mean = || fields.number("nlinks_mean", 1.0, 0.0..=1e9);
        Ok(match name.as_str() {
            "REAL" => Degree::Real {
                table: self.observed("nlinks")?.unwrap_or_else(Table::degrees),
                cap: fields.number("nlinks_cap", u64::MAX, 1..=u64::MAX)?,
            },
            "CONST" => Degree::Const,
            "RECIPROCAL" => Degree::Reciprocal,
            "MULTIPLES" => Degree::Multiples,
            "PERFECT_SQUARES" => Degree::PerfectSquares,
            "EXPONENTIAL" => Degree::Exponential,
            "ZIPFDISTRIBUTION" => Degree::Zipf { shape: self.shape("nlinks")?, mean: mean()? },
            "UNIFORMDISTRIBUTION" => Degree::Uniform { mean: mean()? },
            _ => return Err(fields.wrong(key, DEGREE)),
        })
    }

    fn shape(self, head: &str) -> Result<f64, String> {
        let key = format!("{head}_shape");
        let shape: f64 = self.fields.required(&key, 0.0..=1.0)?;
        if shape > 0.0 && shape < 1.0 {
            Ok(shape)
        } else {
            Err(self.fields.wrong(&key, "must be above 0 and below 1"))
        }
    }

    /// `…_function` of a use.
    pub fn access(self, prefix: Prefix) -> Result<Access, String> {
        let head = prefix.text();
        let key = format!("{head}_function");
        let name = self.name(&key).ok_or_else(|| format!("{key} is missing: {ACCESS}"))?;
        let parameter = || self.fields.number(&format!("{head}_config"), 2, 1..=1_u64 << 48);
        Ok(match name.as_str() {
            "ZIPFDISTRIBUTION" => Access::Zipf { shape: self.shape(head)? },
            "UNIFORMDISTRIBUTION" => Access::Uniform,
            "REAL" => {
                let table = self.observed(prefix.observed())?;
                Access::Real(
                    table
                        .ok_or_else(|| self.fields.wrong(&key, "needs a data_file with observed accesses"))?,
                )
            }
            "ROUND_ROBIN" => Access::RoundRobin,
            "RECIPROCAL" => Access::Reciprocal,
            "MULTIPLE" => Access::Multiple(parameter()?),
            "POWER" => Access::Power(parameter()?),
            "PERFECT_POWER" => Access::PerfectPower(parameter()?),
            _ => return Err(self.fields.wrong(&key, ACCESS)),
        })
    }

    /// The function of `prefix` and its percentage. `None`: the percentage is 0 or missing.
    pub fn blend(self, prefix: Prefix) -> Result<Option<(Access, f64)>, String> {
        let percent = self.fields.number(&format!("{}_blend", prefix.text()), 0.0, 0.0..=100.0)?;
        if percent > 0.0 { Ok(Some((self.access(prefix)?, percent))) } else { Ok(None) }
    }

    /// `link_multiget_dist`. `None`: one link at a time.
    pub fn multiget(self, as_java: bool) -> Result<Option<Geometric>, String> {
        let key = "link_multiget_dist";
        match self.name(key).as_deref() {
            None => return Ok(None),
            Some("GEOMETRICDISTRIBUTION") => {}
            Some(_) => return Err(self.fields.wrong(key, "there is GeometricDistribution")),
        }
        let min = self.fields.number("link_multiget_dist_min", 1, 1..=1_000_000)?;
        let end = self.fields.number("link_multiget_dist_max", 128, 1..=1_000_001)?;
        if end <= min {
            return Err(self
                .fields
                .wrong("link_multiget_dist_max", &format!("must be above link_multiget_dist_min = {min}")));
        }
        let prob: f64 = self.fields.required("link_multiget_dist_prob", 0.0..=1.0)?;
        if prob <= 0.0 || prob >= 1.0 {
            return Err(self.fields.wrong("link_multiget_dist_prob", "must be above 0 and below 1"));
        }
        Ok(Some(Geometric { min, end, prob, as_java }))
    }
}
