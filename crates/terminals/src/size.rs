//! How large a terminal is.

use std::num::NonZeroU16;

/// Columns and rows, within what a screen model may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    columns: NonZeroU16,
    rows: NonZeroU16,
}

impl TerminalSize {
    pub const COLUMNS_MAX: u16 = 500;
    pub const ROWS_MAX: u16 = 200;
    /// What a terminal has that nobody gave a size.
    pub const DEFAULT: Self = Self { columns: at_least_one(80), rows: at_least_one(24) };

    /// The nearest size that is possible.
    pub fn clamped(columns: i64, rows: i64) -> Self {
        let within = |value: i64, most: u16| {
            let value = value.clamp(1, i64::from(most));
            at_least_one(u16::try_from(value).unwrap_or(most))
        };
        Self { columns: within(columns, Self::COLUMNS_MAX), rows: within(rows, Self::ROWS_MAX) }
    }

    pub fn columns(self) -> u16 {
        self.columns.get()
    }

    pub fn rows(self) -> u16 {
        self.rows.get()
    }

    /// Rows and columns, as screen models take them.
    pub(crate) fn of_screen(self) -> (NonZeroU16, NonZeroU16) {
        (self.rows, self.columns)
    }
}

const fn at_least_one(value: u16) -> NonZeroU16 {
    match NonZeroU16::new(value) {
        Some(value) => value,
        None => NonZeroU16::MIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_what_is_nearest() {
        let of = |columns, rows| {
            let size = TerminalSize::clamped(columns, rows);
            (size.columns(), size.rows())
        };
        assert_eq!(of(120, 40), (120, 40));
        assert_eq!(of(0, -7), (1, 1));
        assert_eq!(of(i64::MAX, 100_000), (500, 200));
        assert_eq!((80, 24), (TerminalSize::DEFAULT.columns(), TerminalSize::DEFAULT.rows()));
    }
}
