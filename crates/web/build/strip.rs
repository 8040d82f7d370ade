//! What browsers do not need is left out of scripts and styles: comments, indentation, space between signs, the last semicolon of a block, the
//! last comma of a list.
//!
//! Promises: strings, templates and regular expressions stay as they are, and a line ends where its end could end a statement, so a
//! script compiles to the same code (`tests/stripped.rs` compares it for every module). No name is changed: what is sent can
//! still be read. Must not know: files.

/// After these a `/` begins a regular expression, not a division.
const WORDS_BEFORE_REGEX: [&str; 10] =
    ["return", "typeof", "case", "in", "of", "delete", "void", "throw", "await", "yield"];

/// A script without what is for its readers.
pub(crate) fn strip_script(text: &str) -> String {
    let mut script = Script {
        rest: text,
        out: String::with_capacity(text.len()),
        braces: Vec::new(),
        gap: Gap::None,
    };
    while let Some(next) = script.rest.chars().next() {
        script.take(next);
    }
    script.out.push('\n');
    script.out
}

/// What stood between the last thing written and the next one.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Gap {
    None,
    Space,
    Line,
}

struct Script<'a> {
    rest: &'a str,
    out: String,
    /// For each `${` that is open: how many braces are open in it.
    braces: Vec<usize>,
    gap: Gap,
}

impl<'a> Script<'a> {
    fn take(&mut self, next: char) {
        if self.rest.starts_with("//") {
            self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
            self.widen(Gap::Space);
        } else if self.rest.starts_with("/*") {
            let end = self.rest.find("*/").map_or(self.rest.len(), |at| at + 2);
            let comment = self.skip(end);
            self.widen(if comment.contains('\n') { Gap::Line } else { Gap::Space });
        } else if next.is_whitespace() {
            self.skip(next.len_utf8());
            self.widen(if next == '\n' { Gap::Line } else { Gap::Space });
        } else if matches!(next, '\'' | '"') {
            let length = quoted_length(self.rest, next);
            self.write(length);
        } else if next == '`' || (next == '}' && self.braces.last() == Some(&0)) {
            self.write_template(next);
        } else if next == '/' && self.expects_regex() {
            let length = regex_length(self.rest);
            self.write(length);
        } else if is_word(next) {
            let end = self.rest.find(|it| !is_word(it));
            self.write(end.unwrap_or(self.rest.len()));
        } else {
            self.count_brace(next);
            self.write(next.len_utf8());
        }
    }

    fn skip(&mut self, length: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at(length);
        self.rest = rest;
        skipped
    }

    fn widen(&mut self, gap: Gap) {
        if gap > self.gap {
            self.gap = gap;
        }
    }

    fn count_brace(&mut self, sign: char) {
        if let Some(open) = self.braces.last_mut() {
            match sign {
                '{' => *open += 1,
                '}' => *open -= 1,
                _ => {}
            }
        }
    }

    /// From the backtick, or from the brace that ends what is filled in, to the next backtick or `${`.
    fn write_template(&mut self, next: char) {
        if next == '}' {
            self.braces.pop();
        }
        let mut is_escaped = false;
        let mut before = ' ';
        let mut length = self.rest.len();
        for (at, sign) in self.rest.char_indices().skip(1) {
            if !is_escaped && sign == '`' {
                length = at + 1;
                break;
            }
            if !is_escaped && before == '$' && sign == '{' {
                length = at + 1;
                self.braces.push(0);
                break;
            }
            before = if is_escaped { ' ' } else { sign };
            is_escaped = sign == '\\' && !is_escaped;
        }
        self.write(length);
    }

    fn expects_regex(&self) -> bool {
        let word_at = self
            .out
            .rfind(|it| !is_word(it))
            .map_or(0, |at| at + self.out[at..].chars().next().map_or(0, char::len_utf8));
        let word = &self.out[word_at..];
        match self.out.chars().next_back() {
            Some(last) if is_word(last) => WORDS_BEFORE_REGEX.contains(&word),
            Some(last) => !matches!(last, ')' | ']' | '}' | '\'' | '"' | '`'),
            None => true,
        }
    }

    /// Writes so much of the rest, after as little space as keeps it apart from what is there.
    fn write(&mut self, length: usize) {
        let written = self.skip(length);
        let (Some(last), Some(first)) = (self.out.chars().next_back(), written.chars().next())
        else {
            self.out.push_str(written);
            self.gap = Gap::None;
            return; // there is nothing to keep apart
        };
        // Behind an open bracket, a comma or a semicolon nothing can end, and before a closing bracket it ends by itself.
        let cannot_end =
            matches!(last, '{' | '(' | '[' | ',' | ';') || matches!(first, '}' | ')' | ']');
        let would_join = (is_word(last) && is_word(first))
            || (last == first && matches!(first, '+' | '-' | '/'))
            || (last.is_ascii_digit() && first == '.');
        match self.gap {
            Gap::Line if !cannot_end => self.out.push('\n'),
            Gap::Line | Gap::Space if would_join => self.out.push(' '),
            Gap::None | Gap::Space | Gap::Line => {}
        }
        // A statement ends with its block, and a list with its bracket.
        if (first == '}' && last == ';') || (last == ',' && matches!(first, '}' | ')' | ']')) {
            self.out.pop();
        }
        self.out.push_str(written);
        self.gap = Gap::None;
    }
}

fn is_word(sign: char) -> bool {
    sign.is_alphanumeric() || matches!(sign, '_' | '$' | '#')
}

/// How long the string is that `text` begins with.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, sign) in text.char_indices().skip(1) {
        if sign == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = sign == '\\' && !is_escaped;
    }
    text.len()
}

/// How long the regular expression is, without its flags. A `/` in a class does not end it.
fn regex_length(text: &str) -> usize {
    let (mut is_escaped, mut is_class) = (false, false);
    for (at, sign) in text.char_indices().skip(1) {
        match sign {
            _ if is_escaped => {}
            '[' => is_class = true,
            ']' => is_class = false,
            '/' if !is_class => return at + 1,
            _ => {}
        }
        is_escaped = sign == '\\' && !is_escaped;
    }
    text.len()
}

/// Styles without what is for their readers.
pub(crate) fn strip_style(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut has_gap = false;
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '\'' | '"' => quoted_length(rest, next),
            _ => next.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        rest = behind;
        if token.starts_with("/*") || next.is_whitespace() {
            has_gap = true;
            continue;
        }
        let last = out.chars().next_back();
        let is_apart = matches!(last, None | Some('{' | '}' | ';' | ',' | ':'))
            || matches!(next, '{' | '}' | ';' | ',' | '>' | '!')
            || last == Some('>');
        if has_gap && !is_apart {
            out.push(' ');
        }
        if next == '}' && last == Some(';') {
            out.pop();
        }
        out.push_str(token);
        has_gap = false;
    }
    out
}
