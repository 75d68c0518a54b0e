//! The beginning of a log line: the time and the level.

use ashlar_options::InfoLogLevel;

/// `2026/01/31-12:00:00.000123 0 [WARN] `, in UTC. In RocksDB's logs the number after the time is the thread's id. Here
/// it is always 0, so that two runs of one history write the same log.
pub(crate) fn line_start(unix_micros: u64, level: InfoLogLevel) -> String {
    let (seconds, micros) = (unix_micros / 1_000_000, unix_micros % 1_000_000);
    let [year, month, day, hour, minute, second] = fields(seconds);
    let mark = match level {
        InfoLogLevel::Warn => "[WARN] ",
        InfoLogLevel::Error => "[ERROR] ",
        InfoLogLevel::Fatal => "[FATAL] ",
        InfoLogLevel::Debug => "[DEBUG] ",
        InfoLogLevel::Info | InfoLogLevel::Header => "",
    };
    format!("{year:04}/{month:02}/{day:02}-{hour:02}:{minute:02}:{second:02}.{micros:06} 0 {mark}")
}

/// `2026-01-31 12:00:00`, in UTC.
pub fn utc(unix_seconds: u64) -> String {
    let [year, month, day, hour, minute, second] = fields(unix_seconds);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

fn fields(unix_seconds: u64) -> [u64; 6] {
    let (days, second) = (unix_seconds / 86_400, unix_seconds % 86_400);
    let (year, month, day) = date(days);
    [year, month, day, second / 3600, second / 60 % 60, second % 60]
}

/// Year, month and day of a day since 1970-01-01, by counting in eras of 400 years that begin with March.
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let at = |secs: u64| line_start(secs * 1_000_000 + 5, InfoLogLevel::Info);
        assert_eq!(at(0), "1970/01/01-00:00:00.000005 0 ");
        assert_eq!(utc(951_782_461), "2000-02-29 00:01:01");
        assert_eq!(at(951_782_400), "2000/02/29-00:00:00.000005 0 ");
        assert_eq!(at(1_577_836_799), "2019/12/31-23:59:59.000005 0 ");
        assert_eq!(at(4_107_542_400), "2100/03/01-00:00:00.000005 0 ");
        assert!(line_start(0, InfoLogLevel::Error).ends_with(" 0 [ERROR] "));
    }
}
