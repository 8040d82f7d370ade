//! `grep`: lines that match a pattern, found by ripgrep's libraries in files opened one by one beneath their root.

mod matches;

use std::fs::File;
use std::io::{self, Read};

use async_trait::async_trait;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::format::{format_count, shorten};
use super::input::Texts;
use super::stop::{Stop, off_thread};
use super::workspace::{Kind, Place, Wanted, Workspace};
use super::{Nature, Outcome, Plan, Tool, ToolError, input};
use matches::{FileMatches, SearchMatches, Style};

/// Larger files are skipped, and the result says so.
const FILE_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// What the searcher may hold of one file, long lines included.
const HEAP_BYTES_MAX: usize = 16 * 1_024 * 1_024;

const CONTEXT_LINES_MAX: usize = 10;

/// Characters of a pattern in a summary.
const PATTERN_CHARS_MAX: usize = 60;

pub(super) struct Grep;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    pattern: String,
    path: Option<String>,
    #[serde(default)]
    globs: Texts,
    ignore_case: Option<bool>,
    literal: Option<bool>,
    context: Option<usize>,
    files_only: Option<bool>,
    include_ignored: Option<bool>,
}

#[async_trait]
impl Tool for Grep {
    fn name(&self) -> &'static str {
        "grep"
    }

    fn display_name(&self) -> &'static str {
        "Search"
    }

    fn description(&self) -> &'static str {
        "Searches files for lines that match a regular expression (Rust syntax, one line at a time), at most 200 lines. \
         Binary files and files that `.gitignore` or `.ignore` exclude are passed over."
    }

    fn parameters(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string"},
                "path": {
                    "type": "string",
                    "description": "A directory or a file; relative to the first working directory, which is the \
                                    default, or absolute inside any of them.",
                },
                "globs": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Search only files that match one of these, such as `*.rs` or `src/**`; with `!` \
                                    in front, search none that match.",
                },
                "ignore_case": {"type": "boolean"},
                "literal": {"type": "boolean", "description": "The pattern is plain text."},
                "context": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": CONTEXT_LINES_MAX,
                    "description": "Lines to show before and after each match.",
                },
                "files_only": {"type": "boolean", "description": "Show only which files have a match."},
                "include_ignored": {"type": "boolean", "description": "Also search what is excluded."},
            },
            "required": ["pattern"],
            "additionalProperties": false,
        })
    }

    fn nature(&self) -> Nature {
        Nature::Reads
    }

    async fn plan(&self, input: &Value, workspace: &Workspace) -> Result<Plan, ToolError> {
        let input: Input = input::parse(input)?;
        matcher(&input)?;
        let place = workspace.place(input.path.as_deref().unwrap_or("."))?;
        let pattern = shorten(&input.pattern, PATTERN_CHARS_MAX);
        Ok(Plan {
            summary: format!("Search {} for {pattern}", workspace.shown(&place)),
            consent_key: self.name().to_owned(),
            ..Plan::default()
        })
    }

    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<Outcome, ToolError> {
        let (input, workspace) = (input::parse::<Input>(input)?, workspace.clone());
        off_thread(move |stop| grep(&input, &workspace, stop)).await
    }
}

fn grep(input: &Input, workspace: &Workspace, stop: &Stop) -> Result<Outcome, ToolError> {
    let place = workspace.place(input.path.as_deref().unwrap_or("."))?;
    let mut search = Search {
        workspace,
        stop,
        matcher: matcher(input)?,
        searcher: searcher(input),
        globs: globs(input, workspace, &place)?,
        matches: SearchMatches::new(match input.files_only {
            Some(true) => Style::Files,
            Some(false) | None => Style::Lines,
        }),
    };
    search.start(&place, input)?;
    let matches = search.matches;
    let lines = format_count(matches.lines(), "line", "lines");
    let files = format_count(matches.files(), "file", "files");
    let pattern = shorten(&input.pattern, PATTERN_CHARS_MAX);
    Ok(Outcome {
        summary: match matches.files() {
            0 => format!("Found no match for {pattern}"),
            _ if input.files_only == Some(true) => format!("Found {pattern} in {files}"),
            _ => format!("Found {lines} in {files} for {pattern}"),
        },
        text: matches.into_text(),
        success: true,
        ..Outcome::default()
    })
}

struct Search<'a> {
    workspace: &'a Workspace,
    stop: &'a Stop,
    matcher: RegexMatcher,
    searcher: Searcher,
    globs: Override,
    matches: SearchMatches,
}

impl Search<'_> {
    fn start(&mut self, place: &Place, input: &Input) -> Result<(), ToolError> {
        // A file that was named is searched whatever rules and globs say.
        if let Some((file, bytes)) = self.workspace.open_named(place)? {
            return self.search_file(place, file, bytes);
        }
        let wanted = match input.include_ignored {
            Some(true) => Wanted::All,
            Some(false) | None => Wanted::NotIgnored,
        };
        // What is searched next is at the end.
        let mut waiting = vec![Waiting::Folder(self.workspace.folder(place, wanted)?)];
        let mut is_first = true;
        while let Some(next) = waiting.pop() {
            self.stop.check()?;
            if self.matches.is_full() {
                return Ok(());
            }
            let folder = match next {
                Waiting::Folder(folder) => folder,
                Waiting::File(place) => {
                    if let Some((file, bytes)) = self.workspace.open_entry(&place) {
                        self.search_file(&place, file, bytes)?;
                    }
                    continue;
                }
            };
            let listing = match self.workspace.look_into(&folder) {
                Ok(listing) => listing,
                Err(error) if is_first => return Err(error),
                // It may have gone, or not be ours to look into.
                Err(_) => continue,
            };
            is_first = false;
            for entry in listing.entries.iter().rev() {
                let path = self.workspace.absolute(&entry.place);
                let is_directory = entry.kind == Kind::Directory;
                if self.globs.matched(&path, is_directory).is_ignore() {
                    continue;
                }
                if let Some(folder) = listing.folder(entry) {
                    waiting.push(Waiting::Folder(folder));
                } else if entry.kind == Kind::File {
                    waiting.push(Waiting::File(entry.place.clone()));
                }
            }
        }
        Ok(())
    }

    fn search_file(&mut self, place: &Place, file: File, bytes: u64) -> Result<(), ToolError> {
        if bytes > FILE_BYTES_MAX {
            self.matches.skip_file();
            return Ok(());
        }
        let source = Stoppable {
            file: file.take(FILE_BYTES_MAX),
            stop: self.stop,
        };
        let mut file_matches = FileMatches::new(&self.matches);
        let searched = self
            .searcher
            .search_reader(&self.matcher, source, &mut file_matches);
        self.stop.check()?;
        match searched {
            Ok(()) => self.matches.add(&self.workspace.shown(place), file_matches),
            // A line that is too long to hold, or a disk that fails: others can still be searched.
            Err(_) => self.matches.skip_file(),
        }
        Ok(())
    }
}

enum Waiting {
    Folder(super::workspace::Folder),
    File(Place),
}

/// A file that ends early when nobody waits for what is found in it.
struct Stoppable<'a> {
    file: io::Take<File>,
    stop: &'a Stop,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_set() {
            return Ok(0);
        }
        self.file.read(buffer)
    }
}

fn matcher(input: &Input) -> Result<RegexMatcher, ToolError> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .case_insensitive(input.ignore_case == Some(true))
        .fixed_strings(input.literal == Some(true));
    if input.pattern.is_empty() {
        return Err(ToolError("`pattern` is empty".to_owned()));
    }
    builder.build(&input.pattern).map_err(|error| {
        ToolError(format!(
            "the pattern cannot be used: {error}\nIt is matched against one line at a time; for plain text set `literal`"
        ))
    })
}

fn searcher(input: &Input) -> Searcher {
    let context = match input.files_only {
        Some(true) => 0,
        Some(false) | None => input.context.unwrap_or(0).min(CONTEXT_LINES_MAX),
    };
    SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .heap_limit(Some(HEAP_BYTES_MAX))
        .binary_detection(BinaryDetection::quit(0))
        .build()
}

/// Globs count from the working directory, as paths do.
fn globs(input: &Input, workspace: &Workspace, place: &Place) -> Result<Override, ToolError> {
    let unusable =
        |glob: &str, error| ToolError(format!("the glob {glob} cannot be used: {error}"));
    let mut builder = OverrideBuilder::new(workspace.root_path(place));
    for glob in &input.globs.0 {
        builder.add(glob).map_err(|error| unusable(glob, error))?;
    }
    builder.build().map_err(|error| unusable("list", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_ends_when_nobody_waits_for_it() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "word\n").unwrap();
        let uri = format!("file://{}", directory.path().display());
        let workspace = Workspace::open(&[uri]).unwrap();
        let stop = Stop::default();
        let search = |path| {
            let input = input::parse(&json!({"pattern": "word", "path": path}));
            grep(&input.unwrap(), &workspace, &stop)
        };
        assert_eq!(search(".").unwrap().text, "a\n1:word\n");
        stop.set();
        assert_eq!(search("."), Err(ToolError::stopped()));
        // In the middle of a file, too.
        assert_eq!(search("a"), Err(ToolError::stopped()));
    }
}
