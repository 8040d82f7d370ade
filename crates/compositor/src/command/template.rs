//! Templates of commands: slots are filled in one pass, and what fills them is not looked at again (C-046 to C-049).
//!
//! Nothing here runs anything or reads anything (C-052).

/// How much an expansion may grow beyond its template and its arguments taken once: a template can name its arguments
/// any number of times.
pub const GROWTH_BYTES_MAX: usize = 1_048_576;

/// What a template became.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    pub text: String,
    /// Whether it was cut because it grew beyond all bounds.
    pub cut: bool,
}

impl Expansion {
    /// The expansion of a template that exceeds the budget.
    pub(crate) fn nothing() -> Self {
        Self { text: String::new(), cut: true }
    }
}

enum Piece<'a> {
    Literal(&'a str),
    /// The Nth word, counted from 1.
    Word(usize),
    All,
}

/// Fills a template's slots from what was typed after the command's name and its words.
pub fn expand(template: &str, raw: &str, words: &[String]) -> Expansion {
    let bytes_max = GROWTH_BYTES_MAX + template.len() + raw.len();
    let mut text = String::with_capacity(template.len() + raw.len());
    let mut has_slot = false;
    let mut rest = template;
    while !rest.is_empty() {
        let (piece, beyond) = next_piece(rest);
        let filling = match piece {
            Piece::Literal(literal) => literal,
            Piece::Word(n) => words.get(n - 1).map_or("", String::as_str),
            Piece::All => raw,
        };
        has_slot |= !matches!(piece, Piece::Literal(_));
        if text.len() + filling.len() > bytes_max {
            return Expansion { text, cut: true };
        }
        text.push_str(filling);
        rest = beyond;
    }
    if !has_slot && !raw.is_empty() {
        text.push_str("\n\n");
        text.push_str(raw);
    }
    Expansion { text, cut: false }
}

/// The next literal or slot of a template that is not empty, and what comes after it.
fn next_piece(template: &str) -> (Piece<'_>, &str) {
    if let Some(escaped) = template.strip_prefix('\\')
        && let Some((_, beyond)) = slot(escaped)
    {
        let literal = &escaped[..escaped.len() - beyond.len()];
        return (Piece::Literal(literal), beyond);
    }
    if let Some((piece, beyond)) = slot(template) {
        return (piece, beyond);
    }
    // Up to where the next slot or escape may begin.
    let first = template.chars().next().map_or(1, char::len_utf8);
    let end = template[first..].find(['$', '\\']).map_or(template.len(), |at| first + at);
    (Piece::Literal(&template[..end]), &template[end..])
}

/// The slot that a text begins with.
fn slot(text: &str) -> Option<(Piece<'_>, &str)> {
    let after = text.strip_prefix('$')?;
    if let Some(beyond) = after.strip_prefix('@') {
        return Some((Piece::All, beyond));
    }
    if let Some(beyond) = after.strip_prefix("ARGUMENTS") {
        let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_';
        return (!beyond.starts_with(goes_on)).then_some((Piece::All, beyond));
    }
    if let Some(inside) = after.strip_prefix('{') {
        let (word, beyond) = word_number(inside)?;
        return Some((Piece::Word(word), beyond.strip_prefix('}')?));
    }
    let (word, beyond) = word_number(after)?;
    Some((Piece::Word(word), beyond))
}

/// The longest run of digits as a number from 1 on; `0` and numbers with a zero in front are none.
fn word_number(text: &str) -> Option<(usize, &str)> {
    let beyond = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - beyond.len()];
    if digits.is_empty() || digits.starts_with('0') {
        return None;
    }
    // No message has that many words: the slot is empty.
    Some((digits.parse().unwrap_or(usize::MAX), beyond))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::args::split;

    fn check(template: &str, raw: &str, expected: &str) {
        let expansion = expand(template, raw, &split(raw));
        assert_eq!(expansion.text, expected, "{template:?} of {raw:?}");
        assert!(!expansion.cut);
    }

    #[test]
    fn c_046_positions_and_everything() {
        check("Review $1 with $2.", "a.ts high", "Review a.ts with high.");
        check("Say: $ARGUMENTS", r#""x  y" z "#, r#"Say: "x  y" z "#);
        check("All=$@", "a  b", "All=a  b");
    }

    #[test]
    fn c_047_one_pass_longest_digits_braces_and_escapes() {
        check("$1 $2", "$2 x", "$2 x");
        check("A=$1 J=$10 X=${1}0", "a b c d e f g h i j", "A=a J=j X=a0");
        check("A=$1 J=$10 X=${1}0", "a", "A=a J= X=a0");
        check("$ARGUMENTSX $ARGUMENTS_ $ARGUMENTS.", "a", "$ARGUMENTSX $ARGUMENTS_ a.");
        check(r"\$1 \$@ \$ARGUMENTS \${1} $1", "a", "$1 $@ $ARGUMENTS ${1} a");
        check(r"$0 $01 ${0} ${1 $x $ \ \x $1", "a", r"$0 $01 ${0} ${1 $x $ \ \x a");
        check("é$1é", "ü", "éüé");
        check("$99999999999999999999999|$1", "a", "|a");
    }

    #[test]
    fn c_049_a_template_without_a_slot_gets_the_arguments_at_its_end() {
        check("Run the checklist.", "now  please", "Run the checklist.\n\nnow  please");
        check("Run the checklist.", "", "Run the checklist.");
        check(r"Cost \$1", "5", "Cost $1\n\n5");
        check("$2", "only", "");
    }

    #[test]
    fn c_052_nothing_is_run_or_read() {
        check("!`rm -rf .` @file:a.ts $1", "x", "!`rm -rf .` @file:a.ts x");
    }

    #[test]
    fn an_expansion_does_not_grow_beyond_its_bound() {
        let raw = "x".repeat(100_000);
        let template = "$@".repeat(100_000);
        let expansion = expand(&template, &raw, &split(&raw));
        assert!(expansion.cut);
        assert!(expansion.text.len() <= GROWTH_BYTES_MAX + template.len() + raw.len());
    }
}
