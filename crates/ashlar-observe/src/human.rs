//! Numbers as RocksDB's texts show them.

/// `9999`, `10K`, `12M`: whole thousands, rounded down, once there are five digits.
pub(crate) fn number(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..10_000_000 => format!("{}K", n / 1000),
        10_000_000..10_000_000_000 => format!("{}M", n / 1_000_000),
        _ => format!("{}G", n / 1_000_000_000),
    }
}

/// `1.50 MB`: bytes in the unit that fits, from KB to TB.
pub fn bytes(n: u64) -> String {
    let (mut size, mut unit) = (n as f64 / 1024.0, "KB");
    for larger in ["MB", "GB", "TB"] {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, larger);
    }
    format!("{size:.2} {unit}")
}

/// `00:01:02.500 H:M:S`.
pub(crate) fn duration(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    let rest = (micros % 60_000_000) as f64 / 1e6;
    format!("{:02}:{:02}:{rest:06.3} H:M:S", seconds / 3600, seconds / 60 % 60)
}

/// `bytes` in units of 2^30.
pub(crate) fn gb(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}

/// `bytes` in units of 2^20.
pub(crate) fn mb(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 20) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_rocksdb_shows_them() {
        let numbers = [0, 9999, 10_000, 9_999_999, 10_000_000, 12_345_678_901];
        assert_eq!(numbers.map(number), ["0", "9999", "10K", "9999K", "10M", "12G"]);
        let sizes = [0, 1536, 3 << 20, 5 << 40, 5 << 50];
        assert_eq!(sizes.map(bytes), ["0.00 KB", "1.50 KB", "3.00 MB", "5.00 TB", "5120.00 TB"]);
        assert_eq!(duration(62_500_000), "00:01:02.500 H:M:S");
        assert_eq!(duration(7_200_000_000), "02:00:00.000 H:M:S");
    }
}
