//! Numbers, counts and texts as people and models read them.

/// `1,234,567`.
pub(super) fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 line`, `2 lines`.
pub(super) fn count(number: usize, one: &str, many: &str) -> String {
    let word = if number == 1 { one } else { many };
    format!("{} {word}", group_digits(number as u64))
}

/// The first line of a text, at most so many characters of it; `…` if there is more.
pub(super) fn shorten(text: &str, chars_max: usize) -> String {
    let text = text.trim();
    let mut short: String = text.lines().next().unwrap_or("").chars().take(chars_max).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// `3, 17, 40 and 5 more`.
pub(super) fn list_some(numbers: &[usize], max: usize) -> String {
    let first: Vec<String> = numbers.iter().take(max).map(ToString::to_string).collect();
    match numbers.len().saturating_sub(max) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// What is said of files that the user's rules keep from a call; nothing if there are none.
pub(super) fn describe_left_out(left_out: usize) -> String {
    match left_out {
        0 => String::new(),
        left_out => {
            let entries = count(left_out, "file or directory is", "files and directories are");
            format!("[{entries} left out by the user's rules; do not try to get around them]\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_formatted() {
        assert_eq!(group_digits(0), "0");
        assert_eq!(group_digits(999), "999");
        assert_eq!(group_digits(1_234_567), "1,234,567");
        assert_eq!(count(1, "line", "lines"), "1 line");
        assert_eq!(count(1_000, "line", "lines"), "1,000 lines");
        assert_eq!(shorten(" ls \n", 9), "ls");
        assert_eq!(shorten("ls\nrm", 9), "ls…");
        assert_eq!(shorten("écho", 2), "éc…");
        assert_eq!(list_some(&[1, 2], 2), "1, 2");
        assert_eq!(list_some(&[1, 2, 3], 2), "1, 2 and 1 more");
    }
}
