//! Times in ISO 8601 format.

const DAY: i64 = 86_400;

/// Formats microseconds since the epoch, in UTC.
pub fn text(microseconds: i64) -> String {
    let (seconds, fraction) =
        (microseconds.div_euclid(1_000_000), microseconds.rem_euclid(1_000_000));
    let (year, month, day) = date(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:06}Z")
}

/// Year, month and day. Years begin in March here, so that a leap day is the last of a year; 400 years have 146,097 days.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468; // since March of the year 0
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}
