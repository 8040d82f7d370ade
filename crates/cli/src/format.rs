//! States, times, counts and sizes as people read them.

use unicode_width::UnicodeWidthStr;
use wire::Timestamp;
use wire::state::status;

/// The status of a session or chat.
pub(crate) fn format_status(bits: u32) -> String {
    let activity = match bits & status::ACTIVITY_MASK {
        status::IDLE => "idle",
        status::ERROR => "failed",
        status::IN_PROGRESS => "working",
        status::INPUT_NEEDED => "needs you",
        _ => "unknown",
    };
    let archived = if bits & status::IS_ARCHIVED != 0 { ", archived" } else { "" };
    format!("{activity}{archived}")
}

/// How long ago a moment was.
pub(crate) fn format_age(moment: &str, now: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    let Some(then) = Timestamp::parse_rfc3339(moment) else { return "unknown".to_owned() };
    let counted = |count: i64, unit: &str| format!("{} ago", format_count(count, unit));
    match now.ms_since(then) / 1_000 {
        seconds if seconds < MINUTE => "just now".to_owned(),
        seconds if seconds < HOUR => counted(seconds / MINUTE, "minute"),
        seconds if seconds < DAY => counted(seconds / HOUR, "hour"),
        seconds => counted(seconds / DAY, "day"),
    }
}

/// How long something took or takes.
pub(crate) fn format_duration(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => format!("{minutes} min"),
        3_600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// How many of something.
pub(crate) fn format_count<N: PartialEq + From<u8> + std::fmt::Display>(
    count: N,
    unit: &str,
) -> String {
    let ending = if count == N::from(1) { "" } else { "s" };
    format!("{count} {unit}{ending}")
}

/// A number of bytes, rounded for reading.
pub(crate) fn format_bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => format!("{} {unit}", bytes / size),
        None => format!("{bytes} bytes"),
    }
}

/// Rows in columns, the first of them the titles; what is in the last column may be of any length.
pub(crate) fn format_table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.width()).max().unwrap_or(0)
    };
    let line = |row: &[String; N]| {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line.push_str(cell);
            if column + 1 < N {
                let gap = width(column).saturating_sub(cell.width()) + 2;
                line.extend(std::iter::repeat_n(' ', gap));
            }
        }
        line + "\n"
    };
    rows.iter().map(line).collect()
}

/// A directory, and how many a session works in beside it.
pub(crate) fn with_further(directory: String, further: usize) -> String {
    match further {
        0 => directory,
        further => format!("{directory} +{further}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_word() {
        for (bits, words) in [
            (1, "idle"),
            (1 | 32, "idle"),
            (2, "failed"),
            (8, "working"),
            (24, "needs you"),
            (1 | 32 | 64, "idle, archived"),
            (0, "unknown"),
        ] {
            assert_eq!(format_status(bits), words);
        }
    }

    #[test]
    fn times_are_formatted_relative_to_now() {
        let now = Timestamp::parse_rfc3339("2026-11-15T12:00:00Z").unwrap();
        for (moment, words) in [
            ("2026-11-15T11:59:30Z", "just now"),
            ("2026-11-15T13:00:00Z", "just now"),
            ("2026-11-15T11:58:59Z", "1 minute ago"),
            ("2026-11-15T10:00:00Z", "2 hours ago"),
            ("2026-11-12T11:00:00Z", "3 days ago"),
            ("someday", "unknown"),
        ] {
            assert_eq!(format_age(moment, now), words);
        }
    }

    #[test]
    fn durations_have_two_units_at_most() {
        for (seconds, words) in
            [(0, "0 s"), (59, "59 s"), (61, "1 min"), (3_700, "1 h 1 min"), (90_000, "1 d 1 h")]
        {
            assert_eq!(format_duration(seconds), words);
        }
    }

    #[test]
    fn sizes_are_rounded_down() {
        assert_eq!(format_bytes(700), "700 bytes");
        assert_eq!(format_bytes(3 << 20), "3 MiB");
    }
}
