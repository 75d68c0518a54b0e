//! The drawing of amplification: three axes from the middle, logarithmic, on which near the middle is less.

use crate::words::{factor, known};

/// The view that [`shape`] and [`labels`] draw into.
pub(super) const VIEW: &str = "0 0 160 136";
const MIDDLE: (f64, f64) = (80.0, 82.0);
/// The directions: up, right below, left below.
const AXES: [(f64, f64); 3] = [(0.0, -1.0), (0.866, 0.5), (-0.866, 0.5)];
/// The length of an axis.
const RADIUS: f64 = 62.0;
/// How far beyond its axis a corner may lie, as a part of the axis.
const BEYOND: f64 = 1.15;

/// A polygon with a corner on each axis. `most`: the values at the ends of the axes. An unknown corner lies in the middle.
pub(super) fn shape(corners: [Option<f64>; 3], most: [f64; 3], class: &str) -> String {
    let point = |axis: usize| {
        let part = match corners[axis] {
            Some(value) if most[axis] > 0.0 => (value.ln_1p() / most[axis].ln_1p()).clamp(0.0, BEYOND),
            _ => 0.0,
        };
        let along = |middle: f64, direction: f64| middle + direction * part * RADIUS;
        format!("{:.1},{:.1}", along(MIDDLE.0, AXES[axis].0), along(MIDDLE.1, AXES[axis].1))
    };
    format!("<polygon class=\"{class}\" points=\"{}\"/>", [0, 1, 2].map(point).join(" "))
}

/// The names of the axes with the values.
pub(super) fn labels(names: [&str; 3], values: [Option<f64>; 3]) -> String {
    let places = [(80, 13, "middle"), (159, 131, "end"), (1, 131, "start")];
    let label = |((x, y, anchor), (what, value)): ((u32, u32, &str), (&str, Option<f64>))| {
        let value = known(value, factor);
        format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{what} <tspan>{value}</tspan></text>")
    };
    places.into_iter().zip(names.into_iter().zip(values)).map(label).collect()
}
