//! Reads a command as bash would, as far as it is made of simple commands.
//!
//! Promises: [`split`] accepts only words and quotes, and `&&`, `||`, `;`, `|` between commands; of what it accepts bash runs
//! these commands and no other. Everything else is refused, not guessed at: substitutions, redirections, assignments,
//! background jobs, newlines, comments, groups, control flow ([ADR 0063](../../../../docs/adr/0063-permission-rules.md)).
//! [`may_run`] is the opposite: it finds a command wherever it could be meant.
//! Must not know: rules, tools.

/// A word of a command, without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// Bash may make other words of it: it holds a pattern or a tilde.
    pub(crate) expands: bool,
}

/// A program and its arguments.
pub(crate) type SimpleCommand = Vec<Word>;

/// Words that begin something else than a simple command, unless they are quoted.
const RESERVED: &[&str] = &[
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while", "{", "}",
];

/// The simple commands of a text; none if there is anything else in it.
pub(crate) fn split(text: &str) -> Option<Vec<SimpleCommand>> {
    let mut commands = Vec::new();
    let mut words: SimpleCommand = Vec::new();
    let mut rest = text.chars().peekable();
    let mut may_end = true;
    loop {
        match rest.peek() {
            Some(' ' | '\t') => {
                rest.next();
            }
            Some(';' | '|' | '&') => {
                let sign = rest.next()?;
                let is_double = rest.next_if_eq(&sign).is_some();
                match (sign, is_double) {
                    (';', true) | ('&', false) => return None,
                    (_, _) => {}
                }
                may_end = sign == ';';
                commands.push(finish(&mut words)?);
            }
            Some(_) => words.push(read_word(&mut rest, words.is_empty())?),
            None if words.is_empty() && may_end && !commands.is_empty() => return Some(commands),
            None => {
                commands.push(finish(&mut words)?);
                return Some(commands);
            }
        }
    }
}

/// A command is over: it must be one.
fn finish(words: &mut SimpleCommand) -> Option<SimpleCommand> {
    let words = std::mem::take(words);
    (!words.is_empty()).then_some(words)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Reads a word to its end.
fn read_word(rest: &mut Chars<'_>, is_first: bool) -> Option<Word> {
    let (mut text, mut expands, mut quoted) = (String::new(), false, false);
    while let Some(next) = rest.peek().copied() {
        match next {
            ' ' | '\t' | ';' | '|' | '&' => break,
            '\'' => {
                quoted = true;
                rest.next();
                read_single_quoted(rest, &mut text)?;
            }
            '"' => {
                quoted = true;
                rest.next();
                read_double_quoted(rest, &mut text)?;
            }
            '\\' => {
                quoted = true;
                rest.next();
                text.push(rest.next().filter(char::is_ascii_punctuation)?);
            }
            '*' | '?' | '[' | ']' | '~' => {
                expands = true;
                text.push(rest.next()?);
            }
            // An assignment before a command changes what the command does.
            '=' if is_first => return None,
            _ if is_plain(next) => text.push(rest.next()?),
            _ => return None,
        }
    }
    let is_reserved = is_first && !quoted && RESERVED.contains(&text.as_str());
    (!is_reserved).then_some(Word { text, expands })
}

/// Characters that mean themselves outside of quotes, wherever they stand.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '+' | '@' | '%' | '=' | '^')
}

fn read_single_quoted(rest: &mut Chars<'_>, text: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            '\'' => return Some(()),
            c if c.is_control() => return None,
            c => text.push(c),
        }
    }
}

fn read_double_quoted(rest: &mut Chars<'_>, text: &mut String) -> Option<()> {
    loop {
        match rest.next()? {
            '"' => return Some(()),
            '$' | '`' => return None,
            '\\' => match rest.next()? {
                escaped @ ('"' | '\\' | '$' | '`') => text.push(escaped),
                c if c.is_control() => return None,
                c => text.extend(['\\', c]),
            },
            c if c.is_control() => return None,
            c => text.push(c),
        }
    }
}

/// Words that run what stands behind them.
const WRAPPERS: &[&str] = &[
    "!", "[[", "bash", "builtin", "busybox", "case", "chroot", "command", "coproc", "dash", "do",
    "doas", "elif", "else", "env", "eval", "exec", "fd", "find", "fish", "flock", "if", "ionice",
    "ksh", "nice", "nohup", "parallel", "pkexec", "runuser", "script", "setsid", "sh", "ssh",
    "stdbuf", "strace", "su", "sudo", "then", "time", "timeout", "trap", "unshare", "until",
    "watch", "while", "xargs", "zsh", "{",
];

/// Whether a text may run a command that begins with these words: also inside of substitutions, behind other commands and
/// behind programs that run others, by its path or in quotes. Says so rather too often.
pub(crate) fn may_run(text: &str, prefix: &[String]) -> bool {
    let Some((program, arguments)) = prefix.split_first() else {
        return true; // it names every command
    };
    let is_between =
        |c: char| matches!(c, ';' | '&' | '|' | '(' | ')' | '`' | '\n' | '\r' | '{' | '}' | ',');
    // A line that goes on is one line, also in the middle of a word.
    let text = text.replace("\\\n", "");
    text.split(is_between).any(|segment| {
        let words: Vec<String> = segment.split_whitespace().map(unquote).collect();
        let first = words.iter().position(|word| !is_prelude(word)).unwrap_or(0);
        // What stands before a command may be in quotes and hold blanks: then any word may be the command.
        let mut is_wrapped = first > 0;
        words.iter().enumerate().skip(first).any(|(at, word)| {
            let is_command = at == first || is_wrapped;
            is_wrapped = is_wrapped || (is_command && WRAPPERS.contains(&base_name(word)));
            let is_program =
                word == program || (!program.contains('/') && base_name(word) == program);
            // Options may stand between a program and its command.
            let mut behind = words.iter().skip(at + 1);
            let mut names_all = || arguments.iter().all(|word| behind.any(|other| other == word));
            is_command && is_program && names_all()
        })
    })
}

/// An assignment or a redirection before a command.
fn is_prelude(word: &str) -> bool {
    word.contains('=') || word.contains('<') || word.contains('>') || word.is_empty()
}

fn unquote(word: &str) -> String {
    word.replace(['\'', '"', '\\', '$'], "")
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Option<Vec<Vec<String>>> {
        let commands = split(text)?;
        let texts = |command: SimpleCommand| command.into_iter().map(|word| word.text).collect();
        Some(commands.into_iter().map(texts).collect())
    }

    #[test]
    fn simple_commands_are_read_as_bash_reads_them() {
        for (text, expected) in [
            ("cargo test", &[&["cargo", "test"][..]][..]),
            ("  cargo\ttest  ", &[&["cargo", "test"]]),
            ("cargo test;", &[&["cargo", "test"]]),
            ("a && b || c; d | e", &[&["a"], &["b"], &["c"], &["d"], &["e"]]),
            ("git commit -m 'a; b $(c)'", &[&["git", "commit", "-m", "a; b $(c)"]]),
            (r#"echo "a \"b\" \$c é""#, &[&["echo", "a \"b\" $c é"]]),
            (r"find . -name \*.rs \;", &[&["find", ".", "-name", "*.rs", ";"]]),
            ("'if' x", &[&["if", "x"]]),
            ("echo if a=b", &[&["echo", "if", "a=b"]]),
            ("ls *.rs ~/x", &[&["ls", "*.rs", "~/x"]]),
            ("echo ''", &[&["echo", ""]]),
        ] {
            let expected: Vec<Vec<String>> = expected
                .iter()
                .map(|command| command.iter().map(|word| (*word).to_owned()).collect())
                .collect();
            assert_eq!(words(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            " ",
            ";",
            "a;;b",
            "a &",
            "a & b",
            "a |& b",
            "a &&",
            "| a",
            "a > b",
            "a < b",
            "a 2>&1",
            "a <<E",
            "a\nb",
            "a\\\nb",
            "a $b",
            "a $(b)",
            "a `b`",
            "a \"$(b)\"",
            "a \"`b`\"",
            "a <(b)",
            "(a)",
            "{ a; }",
            "X=1 a",
            "X+=1 a",
            "x[0]=1",
            "if a; then b; fi",
            "! a",
            "time a",
            "a # b",
            "#",
            "a 'b",
            "a \"b",
            "a \\",
            "a\u{a0}b",
            "a {b,c}",
            "f() a",
            "a $'b'",
            "for x in y",
            "[[ a ]]",
            "a \"b\nc\"",
            "a 'b\nc'",
            "a\rb",
        ] {
            assert_eq!(words(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_command_is_found_wherever_it_could_be_meant() {
        let prefix = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        for text in [
            "rm x",
            "a; rm x",
            "a && rm x",
            "a | rm",
            "$(rm x)",
            "`rm x`",
            "(rm x)",
            "{ rm x; }",
            "a\nrm x",
            "X=1 rm x",
            "/bin/rm x",
            "sudo rm x",
            "xargs -n1 rm",
            "env -i X=1 rm x",
            "'rm' x",
            "\"rm\" x",
            "r\\m x",
            "sh -c 'rm x'",
            "if rm x; then y; fi",
            ">y rm x",
            "timeout 5 rm x",
        ] {
            assert!(may_run(text, &prefix("rm")), "{text}");
        }
        for text in ["echo rm", "grep rm file", "rmdir x", "a --rm", "git rm x"] {
            assert!(!may_run(text, &prefix("rm")), "{text}");
        }
        assert!(may_run("a; git push -f", &prefix("git push")));
        assert!(!may_run("git pull", &prefix("git push")));
    }
}
