//! Formats numbers and texts for people.

/// Operations per second and the like, to three digits: `4,030,000`, `420`, `34.2`, `0.81`.
pub fn rate(value: f64) -> String {
    match value {
        v if !v.is_finite() => "–".to_owned(),
        0.0 => "0".to_owned(),
        v if v >= 999.5 => {
            let unit = 10_f64.powf(v.log10().floor() - 2.0);
            thousands((v / unit).round() * unit)
        }
        v if v >= 100.0 => thousands(v),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// A whole number with commas: `1,234,567`.
pub fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let first = digits.len() % 3;
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && index % 3 == first {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The text of a value, or a dash if the value is unknown.
pub fn known(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}

/// A factor: `1.23`.
pub fn factor(value: f64) -> String {
    if value >= 99.95 {
        thousands(value)
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Microseconds: `0.42 µs`, `17 ms`.
pub fn micros(value: f64) -> String {
    match value {
        v if v >= 10_000_000.0 => format!("{:.0} s", v / 1e6),
        v if v >= 1_000_000.0 => format!("{:.1} s", v / 1e6),
        v if v >= 10_000.0 => format!("{:.0} ms", v / 1e3),
        v if v >= 1000.0 => format!("{:.1} ms", v / 1e3),
        v if v >= 10.0 => format!("{v:.0} µs"),
        v => format!("{v:.2} µs"),
    }
}

/// Bytes: `64 KiB`, `1.5 GiB`.
pub fn bytes(value: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut rest = value;
    let mut unit = 0;
    while rest >= 1024.0 && unit + 1 < units.len() {
        rest /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(rest < 10.0 && rest.fract() > 0.05);
    format!("{rest:.digits$} {}", units[unit])
}

/// Text inside an element or a quoted attribute.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        let seen = [4_034_567.0, 999_600.0, 999.6, 100.0, 34.21, 0.812, 0.0].map(rate);
        assert_eq!(seen, ["4,030,000", "1,000,000", "1,000", "100", "34.2", "0.81", "0"]);
        assert_eq!(thousands(1_234_567.0), "1,234,567");
        assert_eq!([1.0, 12.34, 1234.5].map(factor), ["1.00", "12.3", "1,234"]);
        assert_eq!(
            [0.421, 17.4, 1700.0, 17_000.0, 2e6].map(micros),
            ["0.42 µs", "17 µs", "1.7 ms", "17 ms", "2.0 s"]
        );
        assert_eq!([12.0, 65_536.0, 1.5 * 1024.0 * 1024.0].map(bytes), ["12 B", "64 KiB", "1.5 MiB"]);
        assert_eq!(known(None, rate), "–");
        assert_eq!(escape("<a href=\"x\">'&\u{7}"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp; ");
    }
}
