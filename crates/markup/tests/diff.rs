//! Rows of a diff: numbers, folds, line ends, what is not text, bounds; and that rows and folds make both sides again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on ends")]

use markup::MarkupTooLarge;
use markup::diff::{self, CONTEXT, Diff, DiffBody, DiffLine, DiffRow, LineEnd};
use proptest::prelude::*;
use serde_json::{Value, json};

fn compare(before: &str, after: &str) -> Diff {
    diff::compare(before.as_bytes(), after.as_bytes(), "src/a.rs", CONTEXT).unwrap()
}

fn rows(before: &str, after: &str) -> Value {
    serde_json::to_value(compare(before, after)).unwrap()["rows"].clone()
}

fn lines(range: std::ops::RangeInclusive<u32>) -> String {
    range.map(|number| format!("line {number}\n")).collect()
}

#[test]
fn a_change_has_its_numbers_and_its_context() {
    let before = lines(1..=20);
    let after = before.replace("line 10\n", "new\nnewer\n");
    let diff = compare(&before, &after);
    assert_eq!((diff.added, diff.removed), (2, 1));
    assert_eq!(
        rows(&before, &after),
        json!([
            ["fold", 1, 1, 6],
            [" ", 7, 7, "line 7"],
            [" ", 8, 8, "line 8"],
            [" ", 9, 9, "line 9"],
            ["-", 10, null, "line 10"],
            ["+", null, 10, "new"],
            ["+", null, 11, "newer"],
            [" ", 11, 12, "line 11"],
            [" ", 12, 13, "line 12"],
            [" ", 13, 14, "line 13"],
            ["fold", 14, 15, 7],
        ])
    );
    let json = serde_json::to_value(&diff).unwrap();
    assert_eq!(json["path"], "src/a.rs");
    assert_eq!(json["language"], "rust");
}

#[test]
fn near_changes_share_their_context_and_a_single_line_is_not_folded() {
    let before = lines(1..=9);
    let after = before.replace("line 1\n", "a\n").replace("line 9\n", "b\n");
    assert!(!rows(&before, &after).to_string().contains("fold"));
    let before = lines(1..=10);
    let after = before.replace("line 1\n", "a\n").replace("line 10\n", "b\n");
    assert_eq!(rows(&before, &after)[5], json!(["fold", 5, 5, 2]));
}

#[test]
fn a_new_file_is_all_added_and_the_same_file_has_no_rows() {
    assert_eq!(rows("", "a\nb\n"), json!([["+", null, 1, "a"], ["+", null, 2, "b"]]));
    assert_eq!(rows("a\n", ""), json!([["-", 1, null, "a"]]));
    assert_eq!(rows("a\nb\n", "a\nb\n"), json!([]));
    assert_eq!(rows("", ""), json!([]));
}

#[test]
fn line_ends_are_seen_where_they_are_not_newlines() {
    assert_eq!(
        rows("a\r\nb\r\n", "a\r\nc\r\n"),
        json!(
            [[" ", 1, 1, "a", "crlf"], ["-", 2, null, "b", "crlf"], ["+", null, 2, "c", "crlf"],]
        )
    );
    assert_eq!(rows("a\r\n", "a\n"), json!([["-", 1, null, "a", "crlf"], ["+", null, 1, "a"]]));
    assert_eq!(rows("a", "a\n"), json!([["-", 1, null, "a", "none"], ["+", null, 1, "a"]]));
    assert_eq!(rows("a\rb\n", ""), json!([["-", 1, null, "a\\rb"]]));
}

#[test]
fn hidden_characters_and_wrong_bytes_are_seen() {
    let diff =
        diff::compare(b"", b"\x1b[2J\xff\t\xe2\x80\xae\n", "a\u{202e}\n.rs", CONTEXT).unwrap();
    assert_eq!(diff.path, "a\\u{202e}\\n.rs");
    let DiffBody::Rows(rows) = &diff.body else {
        panic!("{diff:?}");
    };
    let line = DiffLine { text: "\\x1b[2J\\xff\t\\u{202e}".to_owned(), end: LineEnd::Newline };
    assert_eq!(rows, &[DiffRow::Added { new: 1, line }]);
}

#[test]
fn what_is_not_text_is_binary() {
    let diff = diff::compare(b"a\n", b"a\0b", "a.png", CONTEXT).unwrap();
    assert_eq!(diff.body, DiffBody::Binary);
    assert_eq!(serde_json::to_value(&diff).unwrap()["binary"], true);
}

#[test]
fn input_and_rows_are_bounded() {
    let large = vec![b'a'; diff::BYTES_MAX + 1];
    let refused = diff::compare(b"", &large, "a", CONTEXT).unwrap_err();
    let max = diff::BYTES_MAX;
    assert_eq!(refused, MarkupTooLarge { bytes: max + 1, max });
    let many = "a\n".repeat(diff::ROWS_MAX + 5);
    let diff = compare("", &many);
    assert_eq!(diff.added as usize, diff::ROWS_MAX + 5);
    let DiffBody::Rows(rows) = &diff.body else {
        panic!("{:?}", diff.path);
    };
    assert_eq!(rows.len(), diff::ROWS_MAX + 1);
    assert_eq!(rows.last(), Some(&DiffRow::LeftOut { lines: 5 }));
}

#[test]
fn what_would_take_long_to_compare_is_replaced_as_a_whole() {
    let side = |odd: &str, even: &str| odd.repeat(15_000) + &even.repeat(15_000);
    let before = format!("first\n{}last\n", side("a\nb\n", "c\n"));
    let after = format!("first\n{}last\n", side("b\nc\n", "a\n"));
    let diff = compare(&before, &after);
    assert_eq!((diff.added, diff.removed), (45_000, 45_000));
    let DiffBody::Rows(rows) = &diff.body else {
        panic!("{:?}", diff.path);
    };
    assert!(matches!(&rows[0], DiffRow::Context { line, .. } if line.text == "first"));
    assert!(matches!(&rows[1], DiffRow::Removed { old: 2, .. }));
}

fn add_line(side: &mut String, line: &DiffLine) {
    side.push_str(&line.text);
    side.push_str(match line.end {
        LineEnd::Newline => "\n",
        LineEnd::CrLf => "\r\n",
        LineEnd::None => "",
    });
}

/// Makes both sides again from the rows; a fold is taken from the side before.
fn rebuild(rows: &[DiffRow], before: &str) -> (String, String) {
    let all: Vec<&str> = before.split_inclusive('\n').collect();
    let (mut old_side, mut new_side) = (String::new(), String::new());
    for row in rows {
        match row {
            DiffRow::Context { line, .. } => {
                add_line(&mut old_side, line);
                add_line(&mut new_side, line);
            }
            DiffRow::Removed { line, .. } => add_line(&mut old_side, line),
            DiffRow::Added { line, .. } => add_line(&mut new_side, line),
            DiffRow::Folded { old, lines, .. } => {
                let start = *old as usize - 1;
                let folded = all[start..start + *lines as usize].concat();
                old_side.push_str(&folded);
                new_side.push_str(&folded);
            }
            DiffRow::LeftOut { .. } => panic!("no row is left out of a small diff"),
        }
    }
    (old_side, new_side)
}

fn side() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["a\n", "b\n", "c\r\n", "\n", "d\n"]);
    let end = prop::sample::select(vec!["", "a", "e"]);
    (prop::collection::vec(line, 0..40), end).prop_map(|(lines, end)| lines.concat() + end)
}

proptest! {
    #[test]
    fn rows_make_both_sides_again(before in side(), after in side(), context in 0_u32..6) {
        let diff = diff::compare(before.as_bytes(), after.as_bytes(), "a", context).unwrap();
        let DiffBody::Rows(rows) = diff.body else { panic!("text") };
        let added = rows.iter().filter(|row| matches!(row, DiffRow::Added { .. })).count();
        let removed = rows.iter().filter(|row| matches!(row, DiffRow::Removed { .. })).count();
        prop_assert_eq!((added, removed), (diff.added as usize, diff.removed as usize));
        if before == after {
            prop_assert!(rows.is_empty());
        } else {
            prop_assert_eq!(rebuild(&rows, &before), (before.clone(), after));
        }
    }
}
