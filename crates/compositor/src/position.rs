//! Positions in a text: lines and UTF-16 units as clients count them, byte offsets as we do (3.2, G-39).
//!
//! Any number of positions in a text of any length: each is found in a time that does not depend on the length of its
//! line, from marks set in one pass.

use std::ops::Range;

use serde_json::Value;

/// A position in a text: both count from zero, the second in UTF-16 units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u64,
    pub character: u64,
}

impl Position {
    /// Reads `{line, character}`; both are whole numbers from zero on.
    pub fn read(value: &Value) -> Option<Self> {
        Some(Self {
            line: value.get("line")?.as_u64()?,
            character: value.get("character")?.as_u64()?,
        })
    }
}

/// Reads `{start, end}`.
pub fn read_range(value: &Value) -> Option<Range<Position>> {
    Some(Position::read(value.get("start")?)?..Position::read(value.get("end")?)?)
}

/// The lines, counted from 1 and both included, that a selection `{range: {start, end}}` touches. Its end is exclusive:
/// in the first column it touches no line more (3.2).
pub fn lines_of_selection(selection: &Value) -> Option<(u64, u64)> {
    lines_of_range(selection.get("range")?)
}

/// The same of a range `{start, end}` itself.
pub fn lines_of_range(range: &Value) -> Option<(u64, u64)> {
    let range = read_range(range)?;
    let start = range.start.line.checked_add(1)?;
    let end = range.end.line.checked_add(1)?;
    let excludes_last = range.end.character == 0 && range.end.line > range.start.line;
    Some((start, if excludes_last { end - 1 } else { end }))
}

/// How far apart marks are, in bytes.
const STRIDE: usize = 128;

/// What is known of one position in the text.
#[derive(Debug, Clone, Copy)]
struct PositionMark {
    byte: usize,
    /// UTF-16 units before it.
    units: u64,
    /// Line ends before it.
    line: u64,
}

/// Converts positions in one text.
pub struct PositionConverter<'a> {
    text: &'a str,
    marks: Vec<PositionMark>,
    lines: u64,
    units: u64,
}

/// Where to go from the middle of a surrogate pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SurrogateRounding {
    Down,
    Up,
}

impl<'a> PositionConverter<'a> {
    pub fn new(text: &'a str) -> Self {
        let mut marks = Vec::with_capacity(text.len() / STRIDE + 1);
        let mut mark = PositionMark { byte: 0, units: 0, line: 0 };
        marks.push(mark);
        for (byte, c) in text.char_indices() {
            if byte - marks[marks.len() - 1].byte >= STRIDE {
                mark.byte = byte;
                marks.push(mark);
            }
            mark.units += c.len_utf16() as u64;
            mark.line += u64::from(ends_line(text.as_bytes(), byte));
        }
        Self { text, marks, lines: mark.line, units: mark.units }
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The bytes that a range covers: a position past the end of its line is that end, one in the middle of a character
    /// widens the range. `None` if a line does not exist or the range is backwards.
    pub fn bytes(&self, range: &Range<Position>) -> Option<Range<usize>> {
        if range.end < range.start {
            return None;
        }
        let start = self.byte(range.start, SurrogateRounding::Down)?;
        let end = self.byte(range.end, SurrogateRounding::Up)?;
        Some(start..end.max(start))
    }

    /// The offset of a position. The line after a final line end is one (G-39).
    pub fn byte(&self, position: Position, snap: SurrogateRounding) -> Option<usize> {
        let start = self.line_start(position.line)?;
        let end = self.line_end(position.line);
        let units = self.units_before(start).saturating_add(position.character);
        if units >= self.units_before(end) {
            return Some(end);
        }
        self.byte_of_unit(units, snap)
    }

    /// The line and column of an offset that is on a character.
    pub fn position(&self, byte: usize) -> Position {
        let from = self.mark_by(|mark| mark.byte <= byte);
        let (before, _) = self.walk(from, |mark| mark.byte >= byte);
        let start = self.line_start(before.line).unwrap_or(0);
        Position { line: before.line, character: before.units - self.units_before(start) }
    }

    /// The offset of the Nth UTF-16 unit of the whole text; `None` past its end.
    pub fn byte_of_unit(&self, units: u64, snap: SurrogateRounding) -> Option<usize> {
        if units > self.units {
            return None;
        }
        let from = self.mark_by(|mark| mark.units <= units);
        let (at, before) = self.walk(from, |mark| mark.units >= units);
        let inside_of_a_pair = at.units > units;
        Some(if inside_of_a_pair && snap == SurrogateRounding::Down {
            before.byte
        } else {
            at.byte
        })
    }

    /// UTF-16 units before an offset that is on a character.
    pub fn units_before(&self, byte: usize) -> u64 {
        let from = self.mark_by(|mark| mark.byte <= byte);
        self.walk(from, |mark| mark.byte >= byte).0.units
    }

    fn line_start(&self, line: u64) -> Option<usize> {
        if line > self.lines {
            return None;
        }
        if line == 0 {
            return Some(0);
        }
        let from = self.mark_by(|mark| mark.line < line);
        Some(self.walk(from, |mark| mark.line >= line).0.byte)
    }

    /// The end of a line that exists, without what ends it.
    fn line_end(&self, line: u64) -> usize {
        let Some(next) = self.line_start(line + 1) else { return self.text.len() };
        let bytes = self.text.as_bytes();
        match &bytes[..next] {
            [.., b'\r', b'\n'] => next - 2,
            _ => next - 1,
        }
    }

    /// The last mark of which something holds that holds of the first marks and not of the last ones.
    fn mark_by(&self, holds: impl Fn(&PositionMark) -> bool) -> PositionMark {
        let beyond = self.marks.partition_point(holds);
        self.marks[beyond.saturating_sub(1)]
    }

    /// Goes on character by character until something holds or the text ends; where that is, and the position before.
    fn walk(
        &self,
        from: PositionMark,
        until: impl Fn(&PositionMark) -> bool,
    ) -> (PositionMark, PositionMark) {
        let (mut at, mut before) = (from, from);
        for c in self.text[from.byte..].chars() {
            if until(&at) {
                break;
            }
            before = at;
            at.line += u64::from(ends_line(self.text.as_bytes(), at.byte));
            at.units += c.len_utf16() as u64;
            at.byte += c.len_utf8();
        }
        (at, before)
    }
}

/// Whether the byte is the last of a line end: LF, CR LF or CR.
fn ends_line(text: &[u8], byte: usize) -> bool {
    match text[byte] {
        b'\n' => true,
        b'\r' => text.get(byte + 1) != Some(&b'\n'),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn at(line: u64, character: u64) -> Position {
        Position { line, character }
    }

    fn covered(text: &str, range: Range<Position>) -> Option<&str> {
        Some(&text[PositionConverter::new(text).bytes(&range)?])
    }

    #[test]
    fn columns_are_utf_16_units_and_clamp_to_their_line() {
        let text = "a👍b\r\nsecond\rthird\n";
        assert_eq!(covered(text, at(0, 0)..at(0, 3)), Some("a👍"));
        assert_eq!(covered(text, at(0, 3)..at(0, 99)), Some("b"));
        assert_eq!(covered(text, at(1, 0)..at(2, 5)), Some("second\rthird"));
        assert_eq!(covered(text, at(0, 9)..at(1, 0)), Some("\r\n"));
        assert_eq!(covered(text, at(0, u64::MAX)..at(0, u64::MAX)), Some(""));
    }

    #[test]
    fn a_position_inside_a_surrogate_pair_widens_the_range() {
        assert_eq!(covered("👍x", at(0, 1)..at(0, 2)), Some("👍"));
        assert_eq!(covered("👍x", at(0, 0)..at(0, 1)), Some("👍"));
        assert_eq!(covered("👍x", at(0, 1)..at(0, 1)), Some("👍"));
    }

    #[test]
    fn the_line_after_a_final_line_end_exists_and_no_other() {
        assert_eq!(covered("a\n", at(1, 0)..at(1, 5)), Some(""));
        assert_eq!(covered("a\n", at(2, 0)..at(2, 0)), None);
        assert_eq!(covered("", at(0, 0)..at(0, 3)), Some(""));
        assert_eq!(covered("", at(1, 0)..at(1, 0)), None);
        assert_eq!(covered("abc", at(0, 2)..at(0, 1)), None, "backwards");
        assert_eq!(covered("abc", at(u64::MAX, 0)..at(u64::MAX, 0)), None);
    }

    #[test]
    fn an_invalid_number_is_no_position() {
        for bad in [
            json!(null),
            json!({"line": -1, "character": 0}),
            json!({"line": 0.5}),
            json!({"line": 1}),
        ] {
            assert_eq!(Position::read(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_selection_that_ends_in_the_first_column_excludes_that_line() {
        let lines = |start: (u64, u64), end: (u64, u64)| {
            let position = |(line, character)| json!({"line": line, "character": character});
            lines_of_selection(&json!({"range": {"start": position(start), "end": position(end)}}))
        };
        assert_eq!(lines((9, 0), (12, 0)), Some((10, 12)));
        assert_eq!(lines((9, 3), (12, 1)), Some((10, 13)));
        assert_eq!(lines((9, 0), (9, 0)), Some((10, 10)));
        assert_eq!(lines((u64::MAX, 0), (u64::MAX, 0)), None);
        assert_eq!(lines_of_selection(&json!({})), None);
    }

    #[test]
    fn a_million_lookups_in_one_long_line_end() {
        let text = "👍".repeat(500_000);
        let ruler = PositionConverter::new(&text);
        for character in 0..20_000 {
            let byte = ruler.byte(at(0, character * 50), SurrogateRounding::Down);
            assert_eq!(byte, Some((character * 100) as usize));
        }
    }

    /// Counts the slow way.
    fn slowly(text: &str, position: Position) -> Option<usize> {
        let mut lines = vec![0];
        let bytes = text.as_bytes();
        lines.extend((0..bytes.len()).filter(|at| ends_line(bytes, *at)).map(|at| at + 1));
        let line = usize::try_from(position.line).ok()?;
        let start = *lines.get(line)?;
        let end = lines.get(line + 1).copied().unwrap_or(text.len());
        let line = if lines.len() > line + 1 {
            let whole = &text[start..end];
            whole.strip_suffix("\r\n").unwrap_or(&whole[..whole.len() - 1])
        } else {
            &text[start..end]
        };
        let mut units = 0;
        for (byte, c) in line.char_indices() {
            if units + c.len_utf16() as u64 > position.character {
                return Some(start + byte);
            }
            units += c.len_utf16() as u64;
        }
        Some(start + line.len())
    }

    proptest! {
        #[test]
        fn marks_change_nothing(
            text in "([a-z]|\r\n|\r|\n|é|👍|\u{2028}|[a-z]{600}){0,30}",
            line in 0..6_u64,
            character in 0..3_000_u64,
        ) {
            let ruler = PositionConverter::new(&text);
            let position = at(line, character);
            prop_assert_eq!(ruler.byte(position, SurrogateRounding::Down), slowly(&text, position));
            for (byte, _) in text.char_indices().step_by(97) {
                let back = ruler.byte(ruler.position(byte), SurrogateRounding::Down);
                let in_line_end = text[..byte].ends_with('\r') && text[byte..].starts_with('\n');
                prop_assert_eq!(back, Some(byte - usize::from(in_line_end)));
                let units = ruler.units_before(byte);
                prop_assert_eq!(ruler.byte_of_unit(units, SurrogateRounding::Down), Some(byte));
                prop_assert_eq!(ruler.byte_of_unit(units, SurrogateRounding::Up), Some(byte));
            }
        }
    }
}
