//! The functions of the theory by name, for the command line.

use super::{
    DISK_POINT, TIERED_SPACE, btree_row_overhead, btree_space, btree_wa, cache_need, capacity_ratio,
    cmp_point, cmp_range, disk_range, disk_range_worst, leveled_last_share, leveled_space, lsm_wa,
    page_compress_space, page_compress_wasted, tiered_wa,
};

/// A function with a name.
pub struct Calculation {
    /// The name.
    pub name: &'static str,
    /// The arguments, in order.
    pub arguments: &'static [&'static str],
    /// The defaults of the last arguments.
    pub defaults: &'static [f64],
    /// The formula.
    pub formula: &'static str,
    run: fn(&[f64; 5]) -> f64,
}

macro_rules! calculation {
    ($name:literal, [$($argument:literal),*], [$($default:literal),*], $formula:literal, $run:expr) => {
        Calculation {
            name: $name,
            arguments: &[$($argument),*],
            defaults: &[$($default),*],
            formula: $formula,
            run: $run,
        }
    };
}

/// All of them.
pub const CALCULATIONS: [Calculation; 17] = [
    calculation!(
        "btree_wa",
        ["page", "row", "changes"],
        [1.0],
        "(page + changes*row) / (changes*row)",
        |a| { btree_wa(a[0], a[1], a[2]) }
    ),
    calculation!("lsm_wa", ["levels", "per_level"], [], "1 + 1 + 1 + levels*per_level", |a| lsm_wa(
        a[0], a[1]
    )),
    calculation!("tiered_wa", ["tiers"], [], "1 + 1 + (tiers - 1)", |a| tiered_wa(a[0])),
    calculation!("btree_space", ["fill"], [], "1 / fill", |a| btree_space(a[0])),
    calculation!("btree_row_overhead", ["row", "meta"], [20.0], "(row + meta) / row", |a| {
        btree_row_overhead(a[0], a[1])
    }),
    calculation!("page_compress_space", ["packed", "slot"], [], "slot / packed", |a| {
        page_compress_space(a[0], a[1])
    }),
    calculation!("page_compress_wasted", ["packed", "slot"], [], "slot - packed", |a| {
        page_compress_wasted(a[0], a[1])
    }),
    calculation!("leveled_space", ["fanout"], [], "fanout / (fanout - 1)", |a| leveled_space(a[0])),
    calculation!("leveled_last_share", ["fanout"], [], "(fanout - 1) / fanout", |a| leveled_last_share(a[0])),
    calculation!("tiered_space", [], [], "2", |_| TIERED_SPACE),
    calculation!("cmp_point", ["keys"], [], "ceil(log2(keys))", |a| cmp_point(a[0])),
    calculation!("cmp_range", ["keys", "rows"], [], "ceil(log2(keys)) + rows", |a| cmp_range(a[0], a[1])),
    calculation!("disk_point", [], [], "1", |_| DISK_POINT),
    calculation!("disk_range", ["rows", "rows_per_block"], [], "1 + (rows - 1) / rows_per_block", |a| {
        disk_range(a[0], a[1])
    }),
    calculation!(
        "disk_range_worst",
        ["rows", "rows_per_block"],
        [],
        "ceil((rows - 1) / rows_per_block) + 1",
        |a| { disk_range_worst(a[0], a[1]) }
    ),
    calculation!(
        "cache_need",
        ["blocks", "key", "pointer", "filter_keys", "filter_bits"],
        [0.0, 0.0],
        "blocks*(key + pointer) + filter_keys*filter_bits/8",
        |a| cache_need(a[0], a[1], a[2], a[3], a[4])
    ),
    calculation!("capacity_ratio", ["data", "cache_need"], [], "data / cache_need", |a| capacity_ratio(
        a[0], a[1]
    )),
];

/// A line per function.
pub fn help() -> String {
    let line = |c: &Calculation| {
        let required = c.arguments.len() - c.defaults.len();
        let argument = |(index, name): (usize, &&str)| match index.checked_sub(required) {
            Some(index) => format!(" [{name}={}]", c.defaults[index]),
            None => format!(" {name}"),
        };
        let arguments: String = c.arguments.iter().enumerate().map(argument).collect();
        format!("  {:<62} {}\n", format!("{}{arguments}", c.name), c.formula)
    };
    CALCULATIONS.iter().map(line).collect()
}

/// The value of the function `name` for these arguments; the last ones may have defaults.
///
/// # Errors
/// No such function, a wrong number of arguments, or no value for these arguments. The text lists the functions.
pub fn answer(name: &str, arguments: &[f64]) -> Result<f64, String> {
    let found = CALCULATIONS.iter().find(|c| c.name == name);
    let found =
        found.ok_or_else(|| format!("calc {name}: no such function. The functions are:\n{}", help()))?;
    let (most, required) = (found.arguments.len(), found.arguments.len() - found.defaults.len());
    if !(required..=most).contains(&arguments.len()) {
        let names = found.arguments.join(", ");
        return Err(format!("calc {name}: {} arguments given, it takes ({names})", arguments.len()));
    }
    let mut all = [0.0; 5];
    let defaults = found.defaults[arguments.len() - required..].iter();
    for (to, from) in all.iter_mut().zip(arguments.iter().chain(defaults)) {
        *to = *from;
    }
    let value = (found.run)(&all);
    if arguments.iter().any(|&argument| argument < 0.0) || !value.is_finite() || value < 0.0 {
        return Err(format!("calc {name}: {} has no value for {arguments:?}", found.formula));
    }
    Ok(value)
}
