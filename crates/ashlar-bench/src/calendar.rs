//! Dates from microseconds since 1970, UTC.

use std::fmt;

/// A moment as year, month, day and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    year: u64,
    month: u64,
    day: u64,
    weekday: usize,
    second_of_day: u64,
}

/// The moment `unix_micros` after 1970 began, as records have it: `2026-11-21T11:02:34Z`.
pub fn utc(unix_micros: u64) -> String {
    Moment::new(unix_micros).iso()
}

const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl Moment {
    /// The moment `unix_micros` after 1970 began.
    pub(crate) fn new(unix_micros: u64) -> Self {
        let seconds = unix_micros / 1_000_000;
        let days = seconds / 86400;
        // Years that begin in March end with the leap day; 719468 days from year 0 to 1970.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * of_year + 2) / 153;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        Moment {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: of_year - (153 * march_month + 2) / 5 + 1,
            weekday: usize::try_from(days % 7).unwrap_or(0),
            second_of_day: seconds % 86400,
        }
    }

    fn clock(&self) -> (u64, u64, u64) {
        let s = self.second_of_day;
        (s / 3600, s / 60 % 60, s % 60)
    }

    /// As in `2026/11/21-11:02:34`.
    pub(crate) fn sortable(&self) -> String {
        let (h, m, s) = self.clock();
        format!("{:04}/{:02}/{:02}-{h:02}:{m:02}:{s:02}", self.year, self.month, self.day)
    }

    /// As in `2026-11-21T11:02:34Z`.
    pub(crate) fn iso(&self) -> String {
        let (h, m, s) = self.clock();
        format!("{:04}-{:02}-{:02}T{h:02}:{m:02}:{s:02}Z", self.year, self.month, self.day)
    }
}

/// As in `Sat Nov 21 11:02:34 2026`.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (h, m, s) = self.clock();
        let month = usize::try_from(self.month - 1).ok().and_then(|i| MONTHS.get(i)).unwrap_or(&"");
        write!(f, "{} {month} {:>2} {h:02}:{m:02}:{s:02} {}", WEEKDAYS[self.weekday], self.day, self.year)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_calendar() {
        let show = |seconds: u64| Moment::new(seconds * 1_000_000);
        assert_eq!(show(0).to_string(), "Thu Jan  1 00:00:00 1970");
        assert_eq!(show(951_782_400).to_string(), "Tue Feb 29 00:00:00 2000");
        assert_eq!(show(951_868_799).sortable(), "2000/02/29-23:59:59");
        assert_eq!(utc(951_868_799_000_000), "2000-02-29T23:59:59Z");
        assert_eq!(show(951_868_800).sortable(), "2000/03/01-00:00:00");
        assert_eq!(show(1_704_067_199).to_string(), "Sun Dec 31 23:59:59 2023");
        assert_eq!(show(4_102_444_800).sortable(), "2100/01/01-00:00:00");
        assert_eq!(show(4_107_542_400).sortable(), "2100/03/01-00:00:00");
    }
}
