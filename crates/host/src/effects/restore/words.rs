//! Texts about restored files: for people, and for the model afterwards.
//!
//! Promises: bounded; a path cannot pretend to be anything but a path. What somebody else changed is named first, and is only
//! overwritten by an answer to a question that names every file.

use workspace::DiffStats;

use super::RestoreDecision;
use super::apply::RestoreResult;
use super::plan::{PlannedFile, RestoreAction, RestorePlan};
use super::turns::{FileTurn, RestoreCommand};

/// Files that are named one by one.
const FILES_NAMED_MAX: usize = 100;

pub(super) const NO_TURNS: &str = "There is nothing to take back yet.";
pub(super) const NOT_REWOUND: &str = "Nothing was taken back.";
pub(super) const REWIND_MESSAGE: &str = "The message you choose and all that came after it are taken back. Then you are asked about the files.";
pub(super) const REWIND_QUESTION: &str = "Take back from which message on?";
pub(super) const REWIND_KEEP: &str = "Take nothing back";

/// A turn that may be gone back to.
pub(super) fn rewind_label(turns: usize, name: &str) -> String {
    let name = match name {
        "" => "(no text)".to_owned(),
        name => display_text(name),
    };
    match turns {
        1 => format!("{name} (1 turn)"),
        turns => format!("{name} ({turns} turns)"),
    }
}

/// What is said if there is nothing to do. A rewind asks only if there is.
pub(super) fn nothing_to_do(command: RestoreCommand) -> Option<&'static str> {
    match command {
        RestoreCommand::Undo => Some(
            "There is nothing to undo: no turn of this chat changed a file that is not undone.",
        ),
        RestoreCommand::Redo => Some("There is nothing to redo."),
        RestoreCommand::Rewind => None,
    }
}

/// What is said if none of the files can be restored.
pub(super) fn impossible(plan: &RestorePlan) -> String {
    let restored = RestoreResult { files: Vec::new(), problems: plan.problems.clone() };
    let mut text = "No file can be restored.".to_owned();
    add_lines(&mut text, result_lines(&restored));
    text
}

/// What is said if the user wants nothing changed.
pub(super) fn unchanged_text(command: RestoreCommand) -> &'static str {
    match command {
        RestoreCommand::Undo => "Nothing was undone; no file was changed.",
        RestoreCommand::Redo => "Nothing was redone; no file was changed.",
        RestoreCommand::Rewind => "The files were left as they are.",
    }
}

pub(super) fn question(command: RestoreCommand) -> &'static str {
    match command {
        RestoreCommand::Undo => "Undo these changes?",
        RestoreCommand::Redo => "Redo these changes?",
        RestoreCommand::Rewind => "Restore these files, too?",
    }
}

/// What would change, for the question.
pub(super) fn list(command: RestoreCommand, target: &FileTurn, plan: &RestorePlan) -> String {
    let name = name_of(target);
    let mut text = match command {
        RestoreCommand::Undo => format!("Undo the file changes of {name}:"),
        RestoreCommand::Redo => "Redo the file changes that were undone last:".to_owned(),
        RestoreCommand::Rewind => format!("The files as they were before {name}:"),
    };
    // Should there be more than can be named, those that somebody else changed are.
    let (foreign, own): (Vec<_>, Vec<_>) = plan.files.iter().partition(|file| file.is_foreign);
    let lines = foreign.into_iter().chain(own).map(|file| {
        let (path, change) = (code(&file.path), counts(file.stats));
        let fate = match file.fate() {
            RestoreAction::Restored => "will be restored",
            RestoreAction::Removed => "will be removed",
            RestoreAction::Recreated => "will be re-created",
        };
        if file.is_foreign {
            format!("{path} was changed after the agent's edit ({change} to restore it)")
        } else {
            format!("{path} {fate} ({change})")
        }
    });
    let problems = plan.problems.iter().map(|why| format!("cannot be restored: {}", prose(why)));
    add_lines(&mut text, lines.chain(problems).collect());
    if foreign_count(plan) > 0 && !names_all(plan) {
        text.push_str(
            "\n\nThese are too many to name. What was changed after the agent's edits is left alone: restore it by hand, or \
             with your version control.",
        );
    }
    text
}

/// Whether the question names every file of the plan.
fn names_all(plan: &RestorePlan) -> bool {
    plan.files.len() <= FILES_NAMED_MAX
}

fn foreign_count(plan: &RestorePlan) -> usize {
    plan.files.iter().filter(|file| file.is_foreign).count()
}

/// What can be answered.
pub(super) fn options(plan: &RestorePlan) -> Vec<(RestoreDecision, String)> {
    let all = plan.files.len();
    let foreign = foreign_count(plan);
    let own = all - foreign;
    let mut options = Vec::new();
    if own > 0 {
        let label = match foreign {
            0 => format!("Restore {}", files(own)),
            _ => format!("Restore {}; keep what was changed since", files(own)),
        };
        options.push((RestoreDecision::Restore, label));
    }
    if foreign > 0 && names_all(plan) {
        let label = format!("Restore {}; overwrite what was changed since", files(all));
        options.push((RestoreDecision::RestoreAll, label));
    }
    options.push((RestoreDecision::Keep, "Leave all files as they are".to_owned()));
    options
}

/// What the call is about to do.
pub(super) fn invocation(count: usize) -> String {
    format!("Restore {}", files(count))
}

/// What the call did.
pub(super) fn summary(command: RestoreCommand, restored: &RestoreResult) -> String {
    let count = files(restored.files.len());
    match command {
        RestoreCommand::Undo => format!("Undid the changes of {count}"),
        RestoreCommand::Redo => format!("Redid the changes of {count}"),
        RestoreCommand::Rewind => format!("Restored {count}"),
    }
}

/// The report for the user and, with the next message, for the model.
pub(super) fn report(
    command: RestoreCommand,
    target: &FileTurn,
    restored: &RestoreResult,
) -> String {
    let name = name_of(target);
    let mut text = match (command, restored.files.is_empty()) {
        (_, true) => "No file was restored.".to_owned(),
        (RestoreCommand::Undo, false) => format!(
            "The user undid the file changes of {name}: these files are as they were before it."
        ),
        (RestoreCommand::Redo, false) => {
            "The user redid file changes that had been undone: these files are as they were \
             before the undo."
                .to_owned()
        }
        (RestoreCommand::Rewind, false) => {
            format!(
                "The user restored these files as they were before {name}, which was taken back."
            )
        }
    };
    add_lines(&mut text, result_lines(restored));
    text
}

fn result_lines(restored: &RestoreResult) -> Vec<String> {
    let done = restored.files.iter().map(|file: &PlannedFile| {
        let fate = match file.fate() {
            RestoreAction::Restored => "restored",
            RestoreAction::Removed => "removed",
            RestoreAction::Recreated => "re-created",
        };
        format!("{} {fate} ({})", code(&file.path), counts(file.stats))
    });
    let problems = restored.problems.iter().map(|why| format!("not restored: {}", prose(why)));
    done.chain(problems).collect()
}

/// As a list: such texts are Markdown, in which single newlines are none.
fn add_lines(text: &mut String, lines: Vec<String>) {
    let more = lines.len().saturating_sub(FILES_NAMED_MAX);
    text.push('\n');
    for line in lines.into_iter().take(FILES_NAMED_MAX) {
        text.push_str("\n- ");
        text.push_str(&line);
    }
    if more > 0 {
        text.push_str(&format!("\n- and {more} more"));
    }
}

fn files(count: usize) -> String {
    match count {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    }
}

fn counts(DiffStats { added, removed }: DiffStats) -> String {
    format!("+{added} -{removed}")
}

/// Names a turn by the beginning of its message. A restoration is a command, which no model gets (G-74).
fn name_of(turn: &FileTurn) -> String {
    match (&turn.restores, turn.name.as_str()) {
        (Some(_), _) => "the last restoration".to_owned(),
        (None, "") => "a turn without a text".to_owned(),
        (None, name) => format!("“{}”", prose(name)),
    }
}

/// A path in Markdown: a span of code, in which nothing but its end means anything.
fn code(path: &str) -> String {
    let path = display_text(path);
    let runs = path.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or(0) + 1);
    // One space at both ends is taken off by who reads it: that keeps the path's own, and its backticks from the fence.
    let is_bare = |c: char| c == '`' || c == ' ';
    if path.starts_with(is_bare) || path.ends_with(is_bare) {
        format!("{fence} {path} {fence}")
    } else {
        format!("{fence}{path}{fence}")
    }
}

/// A text of others within a line of Markdown: as it is if nothing in it means anything there, else as code. Clients that
/// do not read Markdown show it in words all the same.
fn prose(text: &str) -> String {
    let text = display_text(text);
    let chars: Vec<char> = text.chars().collect();
    let is_inner = |at: usize| {
        let mut neighbours =
            [at.checked_sub(1), at.checked_add(1)].into_iter().map(|at| chars.get(at?));
        neighbours.all(|c| c.is_some_and(|c| c.is_alphanumeric()))
    };
    let means_something = |(at, c): (usize, &char)| match c {
        '_' => !is_inner(at), // within a word it is a letter
        c => "\\`*[]<>&~|$".contains(*c),
    };
    if text.contains("://") || chars.iter().enumerate().any(means_something) {
        code(&text)
    } else {
        text
    }
}

/// A text of others without what is obeyed instead of shown.
fn display_text(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let is_obeyed =
            c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if is_obeyed { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use agent_api::FileContent;
    use expect_test::expect;
    use wire::Digest;

    use super::*;

    fn file(path: &str, seen: bool, wanted: bool, is_foreign: bool) -> PlannedFile {
        let digest = Digest::new([1; 32]);
        PlannedFile {
            uri: String::new(),
            path: path.to_owned(),
            wanted: wanted.then_some(FileContent { digest, mode: None }),
            sets_mode: false,
            may_be_link: false,
            directories: 0,
            seen: seen.then_some(digest),
            is_foreign,
            stats: DiffStats { added: 3, removed: 1 },
        }
    }

    fn target() -> FileTurn {
        FileTurn {
            id: "t".to_owned(),
            name: "fix it".to_owned(),
            edits: Vec::new(),
            restores: None,
        }
    }

    fn labels(plan: &RestorePlan) -> Vec<String> {
        options(plan).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn everything_that_would_change_is_named() {
        let plan = RestorePlan {
            files: vec![
                file("a.rs", true, true, false),
                file("new\u{1b}[2J.rs", true, false, false),
                file("b.rs", false, true, false),
                file("mine.rs", true, true, true),
            ],
            problems: vec!["c is a symbolic link by now; it is left alone".to_owned()],
        };
        expect![[r#"
            Undo the file changes of “fix it”:

            - `mine.rs` was changed after the agent's edit (+3 -1 to restore it)
            - `a.rs` will be restored (+3 -1)
            - `new\u{1b}[2J.rs` will be removed (+3 -1)
            - `b.rs` will be re-created (+3 -1)
            - cannot be restored: c is a symbolic link by now; it is left alone"#]]
        .assert_eq(&list(RestoreCommand::Undo, &target(), &plan));
        assert_eq!(
            labels(&plan),
            [
                "Restore 3 files; keep what was changed since",
                "Restore 4 files; overwrite what was changed since",
                "Leave all files as they are",
            ]
        );
        let own = plan.clone().without_foreign_changes();
        assert_eq!(labels(&own)[0], "Restore 3 files");
        let restored = RestoreResult { files: own.files, problems: own.problems };
        expect![[r#"
            The user undid the file changes of “fix it”: these files are as they were before it.

            - `a.rs` restored (+3 -1)
            - `new\u{1b}[2J.rs` removed (+3 -1)
            - `b.rs` re-created (+3 -1)
            - not restored: c is a symbolic link by now; it is left alone"#]]
        .assert_eq(&report(RestoreCommand::Undo, &target(), &restored));
    }

    #[test]
    fn what_only_others_changed_is_restored_by_an_answer_of_its_own() {
        let plan =
            RestorePlan { files: vec![file("mine.rs", true, true, true)], problems: Vec::new() };
        let decisions: Vec<RestoreDecision> =
            options(&plan).into_iter().map(|(it, _)| it).collect();
        assert_eq!(decisions, [RestoreDecision::RestoreAll, RestoreDecision::Keep]);
    }

    #[test]
    fn many_files_are_counted() {
        let plan = RestorePlan {
            files: (0..160).map(|n| file(&n.to_string(), true, true, false)).collect(),
            problems: Vec::new(),
        };
        let text = list(RestoreCommand::Rewind, &target(), &plan);
        assert!(text.ends_with("- `99` will be restored (+3 -1)\n- and 60 more"), "{text}");
        assert_eq!(labels(&plan), ["Restore 160 files", "Leave all files as they are"]);
    }

    #[test]
    fn what_others_changed_is_named_first_and_never_overwritten_unnamed() {
        let mut files: Vec<PlannedFile> =
            (0..FILES_NAMED_MAX).map(|n| file(&format!("own{n}"), true, true, false)).collect();
        files.pop();
        files.push(file("theirs", true, true, true));
        let mut plan = RestorePlan { files, problems: Vec::new() };
        let text = list(RestoreCommand::Undo, &target(), &plan);
        assert_eq!(
            text.lines().nth(2),
            Some("- `theirs` was changed after the agent's edit (+3 -1 to restore it)")
        );
        assert!(options(&plan).iter().any(|(it, _)| *it == RestoreDecision::RestoreAll));
        plan.files.push(file("one more", true, true, false));
        let text = list(RestoreCommand::Undo, &target(), &plan);
        assert!(text.contains("- `theirs` was changed"), "{text}");
        assert!(text.contains("is left alone"), "{text}");
        let decisions: Vec<RestoreDecision> =
            options(&plan).into_iter().map(|(it, _)| it).collect();
        assert_eq!(decisions, [RestoreDecision::Restore, RestoreDecision::Keep]);
    }

    #[test]
    fn a_path_is_shown_as_it_is() {
        for (path, expected) in [
            ("a_b*c*.rs", "`a_b*c*.rs`"),
            ("`**x**`", "`` `**x**` ``"),
            ("a``b", "```a``b```"),
            (" x", "`  x `"),
            ("a\n- b [x](y)", "`a\\u{a}- b [x](y)`"),
        ] {
            assert_eq!(code(path), expected);
            let plan = RestorePlan {
                files: vec![file(path, true, true, false)],
                problems: vec![format!("{path} is a symbolic link")],
            };
            let text = list(RestoreCommand::Undo, &target(), &plan);
            assert_eq!(text.lines().count(), 4, "{text}");
            assert!(text.contains(&format!("\n- {expected} will be")), "{text}");
        }
        for (text, expected) in [
            ("`**x**` <b>", "`` `**x**` <b> ``"),
            ("a_b.rs is a symbolic link", "a_b.rs is a symbolic link"),
            ("_a_ is gone", "`_a_ is gone`"),
            ("see http://h/", "`see http://h/`"),
        ] {
            assert_eq!(prose(text), expected);
        }
    }
}
