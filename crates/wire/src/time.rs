//! Moments as milliseconds since 1970, and the one text form the wire uses for them.
//!
//! Time only ever walks in as a value: nothing here asks a clock.

use jiff::SignedDuration;

/// A moment in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// RFC 3339 in UTC with exactly three fraction digits, as every timestamp the host makes (H-171).
    pub fn to_rfc3339(self) -> String {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => format!("{moment:.3}"),
            Err(_) => "1970-01-01T00:00:00.000Z".to_owned(),
        }
    }

    /// The moment an RFC 3339 text names.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let moment: jiff::Timestamp = text.parse().ok()?;
        Some(Self(moment.as_millisecond()))
    }

    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)))
    }

    /// Milliseconds from `earlier` to `self`, never below zero.
    pub fn ms_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0).max(0)
    }
}

/// `started_at` plus `duration_ms` in the form reducers write into `modifiedAt`; `None` if the text is no RFC 3339
/// moment or the sum leaves the calendar (H-171).
pub fn add_ms_to_rfc3339(started_at: &str, duration_ms: i64) -> Option<String> {
    let start: jiff::Timestamp = started_at.parse().ok()?;
    let end = start.checked_add(SignedDuration::from_millis(duration_ms)).ok()?;
    Some(format!("{end:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_fraction_digits_always() {
        assert_eq!(Timestamp(0).to_rfc3339(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp(1_763_194_000_007).to_rfc3339(), "2025-11-15T08:06:40.007Z");
        assert_eq!(
            add_ms_to_rfc3339("2026-11-15T10:00:00+02:00", 1_500).as_deref(),
            Some("2026-11-15T08:00:01.500Z")
        );
        assert_eq!(add_ms_to_rfc3339("yesterday", 1), None);
    }
}
