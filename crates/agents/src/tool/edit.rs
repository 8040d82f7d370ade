//! `edit`: exact replacements in a file, several in one call, all or none.

use serde::Deserialize;
use serde_json::{Value, json};
use workspace::{
    Extent, FileError, LineEndings, NearMiss, Replacement, ReplacementError, is_binary,
};

use super::ToolError;
use super::change::{Change, ChangeTool, NewContent};
use super::file_tool::PATH_DESCRIPTION;
use super::format::{count, group_digits, list_some};
use super::input::ToolInput;

/// Replacements of one call.
const REPLACEMENTS_MAX: usize = 200;

/// Line numbers in an error.
const LINES_LISTED_MAX: usize = 10;

pub(super) type EditTool = ChangeTool<EditInput>;

#[derive(Debug, Deserialize)]
pub(super) struct EditInput {
    path: String,
    #[serde(default)]
    edits: Vec<ReplacementInput>,
    /// A single replacement, as models write it that know other tools.
    #[serde(flatten)]
    single: SingleReplacement,
}

#[derive(Debug, Deserialize)]
struct SingleReplacement {
    #[serde(default, alias = "old", alias = "old_string")]
    old_text: Option<String>,
    #[serde(default, alias = "new", alias = "new_string")]
    new_text: Option<String>,
    #[serde(default, alias = "replace_all")]
    all: bool,
}

/// Its fields also go by the names that other agents gave them.
#[derive(Debug, Deserialize)]
struct ReplacementInput {
    #[serde(alias = "old", alias = "old_string")]
    old_text: String,
    #[serde(alias = "new", alias = "new_string")]
    new_text: String,
    #[serde(default, alias = "replace_all")]
    all: bool,
}

impl EditInput {
    /// What is to be replaced, in order.
    fn replacements(&self) -> Result<Vec<Replacement<'_>>, ToolError> {
        let example = Self::EXAMPLE;
        let wrong = |what: String| Err(ToolError(format!("{what}. For example: {example}")));
        let single = &self.single;
        match (&self.edits[..], &single.old_text, &single.new_text) {
            ([], Some(old), Some(new)) => Ok(vec![Replacement { old, new, all: single.all }]),
            ([], Some(_), None) => wrong("`new_text` is missing".to_owned()),
            ([], None, Some(_)) => wrong("`old_text` is missing".to_owned()),
            ([], None, None) => wrong("`edits` is empty; say what to replace".to_owned()),
            (edits, None, None) if edits.len() > REPLACEMENTS_MAX => Err(ToolError(format!(
                "`edits` has more than {REPLACEMENTS_MAX} replacements; make several calls"
            ))),
            (edits, None, None) => Ok(edits.iter().map(ReplacementInput::to_replacement).collect()),
            // Whichever were made, the other would be missing without a word.
            (_, Some(_), _) | (_, _, Some(_)) => wrong(
                "give either `old_text` and `new_text` or `edits`, not both; nothing was changed"
                    .to_owned(),
            ),
        }
    }
}

impl ReplacementInput {
    fn to_replacement(&self) -> Replacement<'_> {
        Replacement { old: &self.old_text, new: &self.new_text, all: self.all }
    }
}

impl ToolInput for EditInput {
    const EXAMPLE: &'static str = r#"{"path": "src/main.rs", "edits": [{"old_text": "let x = 1;", "new_text": "let x = 2;"}]}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": PATH_DESCRIPTION},
                "edits": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "properties": {
                            "old_text": {"type": "string", "description": "What is there now."},
                            "new_text": {"type": "string", "description": "What comes in its place."},
                            "all": {"type": "boolean", "description": "Replace every occurrence."},
                        },
                        "required": ["old_text", "new_text"],
                        "additionalProperties": false,
                    },
                },
            },
            "required": ["path", "edits"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        vec![("path", &self.path)]
    }
}

impl Change for EditInput {
    const NAME: &'static str = "edit";
    const DISPLAY_NAME: &'static str = "Edit";
    const DESCRIPTION: &'static str = "Changes parts of a file by exact replacement. The edits are applied in order, each to what the ones before \
         it made; all of them or none. `old_text` must be in the file exactly once, white space included and without \
         the line numbers that `read` shows: give as many lines around as make it unique, or set `all`.";

    fn path(&self) -> &str {
        &self.path
    }

    fn extent(&self) -> Extent {
        Extent::Parts
    }

    fn apply(&self, before: Option<&[u8]>, display_path: &str) -> Result<NewContent, ToolError> {
        let Some(before) = before else {
            return Err(ToolError(format!(
                "there is no {display_path}; `list` shows what is there, `write` creates a file"
            )));
        };
        if is_binary(before) {
            let path = display_path.to_owned();
            return Err(FileError::Binary { path }.into());
        }
        let replacements = self.replacements()?;
        let line_endings = LineEndings::of(before);
        let mut content = before.to_vec();
        let mut replaced = 0;
        for (at, replacement) in replacements.iter().enumerate() {
            let applied = replacement.apply(&mut content, line_endings);
            replaced += applied.map_err(|error| {
                let which = match replacements.len() {
                    1 => String::new(),
                    edits => format!("edit {} of {edits}: ", at + 1),
                };
                let reason = describe(&error);
                ToolError(format!("{which}{reason} Nothing was changed in {display_path}."))
            })?;
        }
        let note = format!(" {}.", count(replaced, "replacement", "replacements"));
        Ok(NewContent { content, note })
    }
}

/// Why a replacement cannot be made, and what the model can do about it.
fn describe(error: &ReplacementError) -> String {
    match error {
        ReplacementError::EmptyOld => {
            "`old_text` is empty; give the text that is to be replaced.".to_owned()
        }
        ReplacementError::SameText => "`old_text` and `new_text` are the same.".to_owned(),
        ReplacementError::TooLarge => "The file would become larger than a file may be.".to_owned(),
        ReplacementError::Ambiguous { occurrences, is_cut, lines } => {
            let occurrences = if *is_cut {
                format!("at least {}", group_digits(*occurrences as u64))
            } else {
                occurrences.to_string()
            };
            let lines = list_some(lines, LINES_LISTED_MAX);
            format!(
                "`old_text` is in the file {occurrences} times, at line {lines}. Give more of the lines around it so \
                 that it is unique, or set `all` to replace every one."
            )
        }
        ReplacementError::NotFound(near_miss) => {
            format!("`old_text` is not in the file. {}", describe_near_miss(near_miss))
        }
    }
}

fn describe_near_miss(near_miss: &NearMiss) -> String {
    match near_miss {
        NearMiss::None => "`read` or `grep` the file for what is there now.".to_owned(),
        NearMiss::LineNumbers => {
            "It seems to hold the line numbers that `read` shows: leave them out.".to_owned()
        }
        NearMiss::WhiteSpace(lines) => format!(
            "With other white space it is at line {}: copy it exactly as it is there.",
            list_some(lines, LINES_LISTED_MAX)
        ),
        NearMiss::FirstLine(lines) => format!(
            "Its first line is at line {}, but what follows differs: `read` that part again.",
            list_some(lines, LINES_LISTED_MAX)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_are_given_in_one_way_at_a_time() {
        let replace = |input: Value| {
            let input: EditInput = super::super::input::parse(&input).unwrap();
            let new = input.apply(Some(b"a b"), "f");
            new.map(|new| String::from_utf8(new.content).unwrap())
        };
        let edit = json!({"old_text": "a", "new_text": "c"});
        let edits = json!({"path": "f", "edits": [edit]});
        assert_eq!(replace(edits.clone()).unwrap(), "c b");
        let single = json!({"path": "f", "old_string": "b", "new_string": "d"});
        assert_eq!(replace(single).unwrap(), "a d");
        for (field, value) in [("old_text", "b"), ("new_string", "d")] {
            let mut both = edits.clone();
            both[field] = json!(value);
            let why = replace(both).unwrap_err().0;
            assert!(why.contains("or `edits`, not both"), "{why}");
        }
        let half = json!({"path": "f", "old_text": "a"});
        let why = replace(half).unwrap_err().0;
        assert!(why.contains("`new_text` is missing"), "{why}");
    }

    #[test]
    fn an_error_says_what_to_do() {
        let not_found = ReplacementError::NotFound;
        let ambiguous = |occurrences, is_cut| ReplacementError::Ambiguous {
            occurrences,
            is_cut,
            lines: (1..=12).collect(),
        };
        for (error, expected) in [
            (ReplacementError::EmptyOld, "`old_text` is empty"),
            (ReplacementError::SameText, "are the same"),
            (
                ambiguous(12, false),
                "in the file 12 times, at line 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more.",
            ),
            (ambiguous(1_000, true), "in the file at least 1,000 times"),
            (not_found(NearMiss::WhiteSpace(vec![1])), "With other white space it is at line 1:"),
            (not_found(NearMiss::FirstLine(vec![3, 6])), "Its first line is at line 3, 6, but"),
            (not_found(NearMiss::LineNumbers), "leave them out"),
            (not_found(NearMiss::None), "`read` or `grep` the file"),
        ] {
            let reason = describe(&error);
            assert!(reason.contains(expected), "{error:?}: {reason}");
        }
    }
}
