//! How long to wait before a server is asked again.
//!
//! Promises: waits grow and are never all the same; no wait is longer than a minute.
//! Must not know: why it failed.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// The first one included.
pub(super) const TRIES_MAX: u32 = 5;
/// A server that wants a longer pause is not tried again: the user knows better what to do.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The pause after so many failed tries: the first is `base`, each further one twice as long, all up to a quarter longer
/// by `chance` (0 to 255), and none shorter than the server asks for. `None`: enough.
pub(super) fn pause(
    tries: u32,
    base: Duration,
    retry_after: Option<Duration>,
    chance: u8,
) -> Option<Duration> {
    if tries >= TRIES_MAX || retry_after.is_some_and(|wait| wait > RETRY_AFTER_MAX) {
        return None;
    }
    let grown = base * 2_u32.pow(tries.saturating_sub(1));
    let jitter = grown / 4 * u32::from(chance) / 255;
    Some(grown.max(retry_after.unwrap_or_default()) + jitter)
}

/// `Retry-After`: seconds, or a date.
pub(super) fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

/// `2 s`, for people.
pub(super) fn describe(pause: Duration) -> String {
    let seconds = pause.as_secs_f64().round() as u64;
    match seconds {
        0 => "less than a second".to_owned(),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_double_and_end() {
        let pauses: Vec<_> = (1..=6).map(|tries| pause(tries, SECOND, None, 0)).collect();
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(pauses, [seconds(1), seconds(2), seconds(4), seconds(8), None, None]);
    }

    #[test]
    fn chance_makes_a_pause_up_to_a_quarter_longer() {
        assert_eq!(pause(3, SECOND, None, 255), Some(Duration::from_secs(5)));
        let between = pause(3, SECOND, None, 100).unwrap();
        assert!(between > Duration::from_secs(4) && between < Duration::from_secs(5));
    }

    #[test]
    fn a_server_may_ask_for_a_minute_at_most() {
        let asks = |seconds| pause(1, SECOND, Some(Duration::from_secs(seconds)), 0);
        assert_eq!(asks(0), Some(SECOND));
        assert_eq!(asks(7), Some(Duration::from_secs(7)));
        assert_eq!(asks(60), Some(Duration::from_secs(60)));
        assert_eq!(asks(61), None);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "1994-11-06T08:49:30Z".parse().unwrap();
        let read = |value| retry_after(value, now);
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(read(" 0.5 "), Some(Duration::from_millis(500)));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("-1"), None);
        assert_eq!(read("NaN"), None);
        assert_eq!(read("soon"), None);
    }

    #[test]
    fn pauses_are_described_in_whole_seconds() {
        assert_eq!(describe(Duration::from_millis(2_200)), "2 s");
        assert_eq!(describe(Duration::from_millis(3)), "less than a second");
    }
}
