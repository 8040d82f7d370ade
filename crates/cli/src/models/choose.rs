//! Lets a person choose one of the models that a server has.
//!
//! Promises: however many there are, a screenful is shown; no name controls the terminal.

use std::fmt::Write as _;
use std::io::{BufRead, Write};

use crate::terminal::escape_line;

/// What fits on a small screen.
const SHOWN_MAX: usize = 15;

/// Asks until a name is chosen; `None` if the input ends or nothing is wanted.
pub(super) fn choose(
    names: &[String],
    mut input: impl BufRead,
    mut output: impl Write,
) -> std::io::Result<Option<String>> {
    let mut shown: Vec<&String> = names.iter().collect();
    loop {
        write!(output, "{}", list(&shown))?;
        write!(output, "Number, name, or part of a name (empty to leave): ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            writeln!(output)?;
            return Ok(None);
        }
        let line = line.trim();
        if line.is_empty() {
            return Ok(None);
        }
        if let Some(name) = names.iter().find(|name| *name == line) {
            return Ok(Some(name.clone()));
        }
        let number: Option<usize> = line.parse().ok();
        let index = number.and_then(|number| number.checked_sub(1));
        if let Some(name) = index.and_then(|index| shown.get(index)) {
            return Ok(Some((*name).clone()));
        }
        let part = line.to_lowercase();
        let found: Vec<&String> =
            names.iter().filter(|name| name.to_lowercase().contains(&part)).collect();
        if found.is_empty() {
            writeln!(output, "No model has `{}` in its name.", escape_line(line))?
        } else {
            shown = found
        }
    }
}

/// The first of them, numbered.
pub(super) fn list<T: AsRef<str>>(names: &[T]) -> String {
    let mut text = String::new();
    for (index, name) in names.iter().take(SHOWN_MAX).enumerate() {
        // Writing into a string does not fail.
        let _ = writeln!(text, "{:4}  {}", index + 1, escape_line(name.as_ref()));
    }
    if let more @ 1.. = names.len().saturating_sub(SHOWN_MAX) {
        let _ = writeln!(text, "      and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        let mut names: Vec<String> = (0..10_000).map(|n| format!("model-{n}")).collect();
        names.push("Odd\u{1b}[31m".to_owned());
        names
    }

    fn chosen(typed: &str) -> (Option<String>, String) {
        let mut output = Vec::new();
        let chosen = choose(&names(), typed.as_bytes(), &mut output).unwrap();
        (chosen, String::from_utf8(output).unwrap())
    }

    #[test]
    fn a_number_a_name_or_a_part_of_one_chooses() {
        assert_eq!(chosen("2\n").0.as_deref(), Some("model-1"));
        assert_eq!(chosen("model-77\n").0.as_deref(), Some("model-77"));
        assert_eq!(chosen("-998\n1\n").0.as_deref(), Some("model-998"));
        assert_eq!(chosen("nothing\n3\n").0.as_deref(), Some("model-2"));
        assert_eq!(chosen("\n").0, None);
        assert_eq!(chosen("").0, None);
        assert_eq!(chosen("99999\n").0, None, "no such number, no such name");
    }

    #[test]
    fn a_screenful_is_shown_and_nothing_controls_the_terminal() {
        let (_, screen) = chosen("odd\n\n");
        assert!(screen.lines().count() < 40 && screen.contains("and 9986 more"), "{screen}");
        assert!(screen.contains("Odd\\x1b[31m") && !screen.contains('\u{1b}'), "{screen}");
    }
}
