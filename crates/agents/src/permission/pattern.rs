//! One rule as people write it: `bash(cargo test:*)`, `edit(src/**)`, `web_fetch(domain:example.com)`, `grep`.
//!
//! Promises: what a pattern allows is never more than it says; what it forbids is never less. A text that could be meant in
//! two ways is an error that says how to write it.
//! Must not know: where rules are stored, who asks.

use std::fmt;
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;

use super::options;
use super::protected::is_protected;
use super::shell::{self, Word};
use super::subject::{ArgumentKind, CallSubject, FileSubject, PathInDirectory, SubjectDetail};

/// Longer patterns are refused: people could not read them before they agree.
pub(crate) const PATTERN_BYTES_MAX: usize = 512;

/// The tools that commands, paths and hosts are matched for.
pub(crate) const BASH: &str = "bash";
pub(crate) const EDIT: &str = "edit";
const WRITE: &str = "write";
const READ: &str = "read";
const WEB_FETCH: &str = "web_fetch";

/// Tool names as other agents write them.
const OTHER_SPELLINGS: &[(&str, &str)] = &[
    ("Bash", BASH),
    ("Edit", EDIT),
    ("Read", READ),
    ("Write", WRITE),
    ("WebFetch", WEB_FETCH),
    ("Grep", "grep"),
    ("Glob", "glob"),
    ("LS", "list"),
];

/// A rule's pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    tool: String,
    matcher: Matcher,
}

#[derive(Debug, Clone)]
enum Matcher {
    /// Every call of the tool.
    All,
    /// This very command; of a simple one its words, too.
    Command { text: String, words: Option<Vec<String>> },
    /// Simple commands that begin with these words.
    CommandPrefix(Vec<String>),
    /// Files whose path, relative to the directory of the rule, is like this.
    Path(Box<PathMatcher>),
    /// Pages of this host and of those below it.
    Domain(String),
    /// This very input, however it is written.
    Input(Value),
}

#[derive(Debug, Clone)]
struct PathMatcher {
    exact_case: GlobMatcher,
    any_case: GlobMatcher,
    /// The pattern itself names a protected file or directory.
    names_protected: bool,
}

impl PathMatcher {
    fn covers(&self, path: &FileSubject, directory: Option<&Path>) -> bool {
        match path.relative_to(directory) {
            PathInDirectory::Text(relative) => {
                self.exact_case.is_match(relative)
                    && (self.names_protected || !is_protected(&path.relative))
            }
            PathInDirectory::Elsewhere | PathInDirectory::NoText => false,
        }
    }

    fn touches(&self, path: &FileSubject, directory: Option<&Path>) -> bool {
        match path.relative_to(directory) {
            PathInDirectory::Text(relative) => self.any_case.is_match(relative),
            PathInDirectory::Elsewhere => false,
            PathInDirectory::NoText => true,
        }
    }
}

/// Why a text is no pattern, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {reason}")]
pub struct PatternError {
    text: String,
    reason: String,
}

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let bad = |reason: String| PatternError { text: text.chars().take(80).collect(), reason };
        if text.len() > PATTERN_BYTES_MAX {
            return Err(bad(format!("a rule has at most {PATTERN_BYTES_MAX} bytes")));
        }
        if text.chars().any(char::is_control) {
            return Err(bad("a rule is one line without control characters".to_owned()));
        }
        let text = text.trim();
        let (name, argument) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => {
                let argument =
                    rest.strip_suffix(')').ok_or_else(|| bad("it must end in `)`".to_owned()))?;
                (name, Some(argument))
            }
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || !name.chars().all(is_name) {
            let reason = "write the name of a tool, such as `grep`, or `bash(cargo test:*)`";
            return Err(bad(reason.to_owned()));
        }
        let spelling = OTHER_SPELLINGS.iter().find(|(other, _)| *other == name);
        let tool = spelling.map_or(name, |(_, tool)| *tool);
        let matcher = match argument.map(str::trim) {
            None | Some("*") => Matcher::All,
            Some("") => return Err(bad("there is nothing between the brackets".to_owned())),
            Some(argument) => match ArgumentKind::of_tool(tool) {
                ArgumentKind::Command => parse_command(argument).map_err(bad)?,
                ArgumentKind::File(_) => parse_path(argument).map_err(bad)?,
                ArgumentKind::Page => parse_domain(argument).map_err(bad)?,
                ArgumentKind::Input => parse_input(tool, argument).map_err(bad)?,
            },
        };
        let text = match &matcher {
            Matcher::All => tool.to_owned(),
            Matcher::CommandPrefix(_) => {
                let argument = argument.unwrap_or_default().trim();
                let words = argument.trim_end_matches('*').trim_end_matches(':').trim_end();
                format!("{tool}({words}:*)")
            }
            Matcher::Command { .. } | Matcher::Path(_) | Matcher::Domain(_) | Matcher::Input(_) => {
                format!("{tool}({})", argument.unwrap_or_default().trim())
            }
        };
        let tool = tool.to_owned();
        Ok(Self { text, tool, matcher })
    }

    /// As it is stored and shown.
    /// Whether it is about tools of MCP servers (MC-6).
    pub(crate) fn is_about_server(&self) -> bool {
        self.tool.starts_with("mcp__")
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it says that this call may be made: all of it.
    pub(crate) fn covers(&self, call: &CallSubject, directory: Option<&Path>) -> bool {
        if !self.is_about(call) {
            return false;
        }
        let detail = &call.detail;
        match &self.matcher {
            Matcher::All => match detail {
                SubjectDetail::Path(path) => !is_protected(&path.relative),
                // It may be a file that rules do not reach.
                SubjectDetail::Unknown => false,
                SubjectDetail::Command(_) | SubjectDetail::Host(_) | SubjectDetail::Input(_) => {
                    true
                }
            },
            Matcher::Command { text, .. } => {
                matches!(detail, SubjectDetail::Command(command) if text == command.trim())
            }
            // Of the simple commands in a text each is compared by itself.
            Matcher::CommandPrefix(_) => false,
            Matcher::Path(pattern) => {
                matches!(detail, SubjectDetail::Path(path) if pattern.covers(path, directory))
            }
            Matcher::Domain(domain) => {
                matches!(detail, SubjectDetail::Host(host) if is_below(host, domain))
            }
            Matcher::Input(input) => {
                matches!(detail, SubjectDetail::Input(given) if input == given)
            }
        }
    }

    /// Whether it says that this simple command may be run.
    pub(crate) fn covers_command(&self, command: &[Word]) -> bool {
        if self.tool != BASH {
            return false;
        }
        let begins_with = |words: &[String]| {
            let mut literal =
                command.iter().take(words.len()).map(|word| (!word.expands).then_some(&word.text));
            command.len() >= words.len()
                && words.iter().all(|word| literal.next() == Some(Some(word)))
        };
        match &self.matcher {
            Matcher::All => true,
            Matcher::CommandPrefix(words) => {
                begins_with(words) && !options::has_steering_option(command)
            }
            Matcher::Command { words, .. } => words
                .as_ref()
                .is_some_and(|words| words.len() == command.len() && begins_with(words)),
            Matcher::Path(_) | Matcher::Domain(_) | Matcher::Input(_) => false,
        }
    }

    /// Whether it is about this call, or about any part of it.
    pub(crate) fn touches(&self, call: &CallSubject, directory: Option<&Path>) -> bool {
        if !self.is_about(call) {
            return false;
        }
        // What cannot be compared may be what is meant.
        match (&self.matcher, &call.detail) {
            (Matcher::All, _) => true,
            (Matcher::Path(pattern), SubjectDetail::Path(path)) => pattern.touches(path, directory),
            (Matcher::CommandPrefix(words), SubjectDetail::Command(command)) => {
                shell::may_run(command, words)
            }
            (Matcher::Command { text, words }, SubjectDetail::Command(command)) => {
                let is_part = |words: &Vec<String>| shell::may_run(command, words);
                text == command.trim() || words.as_ref().is_some_and(is_part)
            }
            (Matcher::Domain(domain), SubjectDetail::Host(host)) => is_below(host, domain),
            (Matcher::Input(input), SubjectDetail::Input(given)) => input == given,
            (
                Matcher::Path(_)
                | Matcher::CommandPrefix(_)
                | Matcher::Command { .. }
                | Matcher::Domain(_)
                | Matcher::Input(_),
                SubjectDetail::Path(_)
                | SubjectDetail::Command(_)
                | SubjectDetail::Host(_)
                | SubjectDetail::Input(_)
                | SubjectDetail::Unknown,
            ) => true,
        }
    }

    /// Whether it is about files that some tool, or this one, shows.
    pub(crate) fn is_about_reading(&self, tool: &str) -> bool {
        self.tool == READ || self.tool == tool
    }

    /// Rules of `edit` are about every tool that changes files, those of `read` about every one that shows a file.
    fn is_about(&self, call: &CallSubject) -> bool {
        (self.tool == EDIT && call.is_edit)
            || (self.tool == READ && call.is_read)
            || self.tool == call.tool
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

fn parse_command(argument: &str) -> Result<Matcher, String> {
    let prefix = argument.strip_suffix(":*").or_else(|| argument.strip_suffix(" *"));
    let literal_words = |text: &str| {
        let mut commands = shell::split(text)?;
        let only = commands.pop().filter(|_| commands.is_empty())?;
        let words = only.into_iter().map(|word| (!word.expands).then_some(word.text));
        words.collect::<Option<Vec<String>>>()
    };
    match prefix {
        Some(prefix) => literal_words(prefix).map(Matcher::CommandPrefix).ok_or_else(|| {
            "before `:*` stand plain words of one command, such as `cargo test`".to_owned()
        }),
        None if argument.contains('*') => {
            Err("`*` can only stand at the end, as in `bash(cargo test:*)`".to_owned())
        }
        None => Ok(Matcher::Command { text: argument.to_owned(), words: literal_words(argument) }),
    }
}

fn parse_path(argument: &str) -> Result<Matcher, String> {
    let path = argument.strip_prefix("./").unwrap_or(argument);
    if path.starts_with('/') || path.starts_with('~') {
        return Err("paths are relative to the project directory, such as `src/**`".to_owned());
    }
    if Path::new(path).components().any(|part| part.as_os_str() == "..") {
        return Err("`..` cannot be in the path of a rule".to_owned());
    }
    let path = match path.strip_suffix('/') {
        Some(directory) => format!("{directory}/**"),
        None => path.to_owned(),
    };
    let matcher = |any_case: bool| {
        let glob =
            GlobBuilder::new(&path).literal_separator(true).case_insensitive(any_case).build();
        glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
    };
    Ok(Matcher::Path(Box::new(PathMatcher {
        exact_case: matcher(false)?,
        any_case: matcher(true)?,
        names_protected: is_protected(Path::new(&path)),
    })))
}

fn parse_domain(argument: &str) -> Result<Matcher, String> {
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let domain = argument.strip_prefix("domain:").map(str::trim);
    let is_domain = |domain: &&str| {
        domain.chars().all(is_host) && domain.split('.').all(|label| !label.is_empty())
    };
    match domain.filter(is_domain) {
        Some(domain) => Ok(Matcher::Domain(domain.to_ascii_lowercase())),
        None => Err("write it as `web_fetch(domain:example.com)`".to_owned()),
    }
}

fn parse_input(tool: &str, argument: &str) -> Result<Matcher, String> {
    match serde_json::from_str(argument) {
        Ok(input @ Value::Object(_)) => Ok(Matcher::Input(input)),
        Ok(_) | Err(_) => Err(format!(
            "between the brackets stands the whole input as JSON, such as `{tool}({{\"name\":\"x\"}})`; `{tool}` alone is every call"
        )),
    }
}

fn is_below(host: &str, domain: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let above = host.strip_suffix(domain);
    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}
