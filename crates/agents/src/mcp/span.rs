//! Where a server is declared in the settings file (MC-4).

use workspace::discovery::SourceSpan;

/// Where the table of a server stands: the one of that number among the tables of servers, with those that are part of it.
pub(super) fn find_table(text: &str, index: usize) -> Option<SourceSpan> {
    let mut at = 0;
    let mut seen = 0;
    let mut start = None;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        let is_server = is_header(content, "[[mcp]]");
        let is_part = content.starts_with("[mcp.") || content.starts_with("[[mcp.");
        if content.starts_with('[') && !is_part {
            if start.is_some() {
                break;
            }
            if is_server {
                start = (seen == index).then_some(at);
                seen += 1;
            }
        }
        if start.is_some() && !content.is_empty() && !content.starts_with('#') {
            end = at + line.trim_end().len();
        }
        at += line.len();
    }
    Some(SourceSpan::of(text, start?, end))
}

/// Whether a line is this header, perhaps with a comment behind it.
fn is_header(line: &str, header: &str) -> bool {
    let rest = line.strip_prefix(header).map(str::trim_start);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_its_table_with_the_tables_in_it() {
        let text = "a = 1\n[[mcp]]\nname = \"x\"\n\n[mcp.env]\nA = \"b\"\n\n# two\n[[mcp]] # yes\nname = \"y\"\n[other]\n";
        let lines = |index| {
            let span = find_table(text, index)?;
            Some((span.start.line, span.end.line, span.end.character))
        };
        assert_eq!(lines(0), Some((1, 5, 7)));
        assert_eq!(lines(1), Some((8, 9, 10)));
        assert_eq!(lines(2), None);
    }
}
