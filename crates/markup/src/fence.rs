//! A fenced code block that is being written, read line by line.
//!
//! Promises: the lines are those that the parser would find in the whole block. Must not know: what stands around the block.

/// The first line of a fenced code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fence {
    mark: char,
    length: usize,
    /// Blanks before it; as many are taken off each line.
    indent: usize,
}

/// How far a fence may be indented.
const INDENT_MAX: usize = 3;

impl Fence {
    /// Reads the line that opens a block, if it does.
    pub(crate) fn open(line: &str) -> Option<Self> {
        let unindented = line.trim_start_matches(' ');
        let indent = line.len() - unindented.len();
        let mark = unindented.chars().next()?;
        let info = unindented.trim_start_matches(mark);
        let length = unindented.len() - info.len();
        let is_fence = matches!(mark, '`' | '~') && length >= 3 && indent <= INDENT_MAX;
        // A line with more backticks in it is code within a paragraph.
        let is_code_span = mark == '`' && info.contains('`');
        (is_fence && !is_code_span).then_some(Self { mark, length, indent })
    }

    /// A line that opens the same block.
    pub(crate) fn opening(&self) -> String {
        let mark = self.mark.to_string();
        format!("{}{}", " ".repeat(self.indent), mark.repeat(self.length))
    }

    /// Whether a line, without its end, closes the block.
    pub(crate) fn is_closed_by(&self, line: &str) -> bool {
        let unindented = line.trim_start_matches(' ');
        let rest = unindented.trim_start_matches(self.mark);
        line.len() - unindented.len() <= INDENT_MAX
            && unindented.len() - rest.len() >= self.length
            && rest.trim_matches([' ', '\r']).is_empty()
    }

    /// A line of the code: without its end, and without the blanks that stand before the fence, too.
    pub(crate) fn read_line(&self, line: &str) -> String {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let mut left = self.indent;
        let mut rest = line;
        while left > 0 {
            if let Some(after) = rest.strip_prefix(' ') {
                left -= 1;
                rest = after;
            } else if let Some(after) = rest.strip_prefix('\t') {
                // A tab leads to the next fourth column; what is not taken off of it are blanks.
                let column = self.indent - left;
                let wide = 4 - column % 4;
                let kept = wide.saturating_sub(left);
                return format!("{}{after}", " ".repeat(kept));
            } else {
                break;
            }
        }
        rest.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_known_by_its_first_line_and_ends_at_its_like() {
        for line in ["``", "    ```", "``` a`b", "text", "", "- ```"] {
            assert_eq!(Fence::open(line), None, "{line:?}");
        }
        let fence = Fence::open("  ~~~~ rust `x`").unwrap();
        for (line, is_closed) in [
            ("~~~~", true),
            ("   ~~~~~ \r", true),
            // As the parser has it.
            ("~~~~\t", false),
            ("~~~", false),
            ("    ~~~~", false),
            ("~~~~ x", false),
            ("````", false),
        ] {
            assert_eq!(fence.is_closed_by(line), is_closed, "{line:?}");
        }
        assert_eq!(fence.read_line("    a\r"), "  a");
        assert_eq!(fence.read_line(" a"), "a");
        assert_eq!(fence.read_line("\ta"), "  a");
    }
}
