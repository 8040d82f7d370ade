//! Typing, moving, deleting, and bringing back.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use super::*;

fn type_in(editor: &mut Editor, text: &str) {
    for c in text.chars() {
        editor.key(&Key::Char(c));
    }
}

fn press(editor: &mut Editor, keys: &[Key]) {
    for key in keys {
        editor.key(key);
    }
}

/// The text with a bar where the cursor is.
fn draw(editor: &Editor) -> String {
    let (before, after) = editor.text.split_at(editor.cursor);
    format!("{before}|{after}")
}

#[test]
fn keys_edit_the_text() {
    use Key::{Alt, Backspace, Ctrl, Delete, End, Home, Left, Right, Undo, WordLeft, WordRight};
    for (typed, keys, expected) in [
        ("abc", &[Left, Backspace][..], "a|c"),
        ("abc", &[Home, Delete, Right], "b|c"),
        ("one two", &[WordLeft], "one |two"),
        ("one two", &[Home, WordRight], "one| two"),
        ("one two ", &[Ctrl('w')], "one |"),
        ("one two", &[WordLeft, Ctrl('k')], "one |"),
        ("one two", &[WordLeft, Ctrl('u'), End], "two|"),
        ("Grüße", &[Left, Left, Backspace], "Gr|ße"),
        ("a👩‍🚀b", &[Left, Backspace], "a|b"),
        ("ae\u{301}", &[Left], "a|e\u{301}"),
        ("", &[Left, Right, Backspace, Delete], "|"),
        ("ab", &[Home, Ctrl('d')], "|b"),
        ("🇩🇪🇫🇷", &[Left, Backspace], "|🇫🇷"),
        ("one two three", &[Ctrl('w'), Ctrl('w'), Ctrl('y')], "one two three|"),
        ("one two", &[Home, Alt('d'), End, Ctrl('y')], " twoone|"),
        ("one two", &[Undo], "one |"),
        ("one two", &[Undo, Undo, Undo, Undo], "|"),
        ("one two", &[Ctrl('u'), Undo], "one two|"),
    ] {
        let mut editor = Editor::default();
        type_in(&mut editor, typed);
        press(&mut editor, keys);
        assert_eq!(draw(&editor), expected, "{typed:?} {keys:?}");
    }
}

#[test]
fn a_backslash_or_a_modifier_makes_a_new_line() {
    let mut editor = Editor::default();
    type_in(&mut editor, "one\\");
    press(&mut editor, &[Key::Enter]);
    type_in(&mut editor, "two");
    press(&mut editor, &[Key::NewLine]);
    type_in(&mut editor, "three");
    press(&mut editor, &[Key::Up, Key::Home]);
    assert_eq!(draw(&editor), "one\n|two\nthree");
    press(&mut editor, &[Key::Down, Key::End, Key::Up]);
    assert_eq!(draw(&editor), "one\ntwo|\nthree");
    let entered = editor.key(&Key::Enter);
    assert_eq!(entered, EditorOutcome::Entered("one\ntwo\nthree".to_owned()));
    assert!(editor.is_empty());
}

#[test]
fn history_and_the_unfinished_line_can_be_recalled() {
    let mut editor = Editor::default();
    editor.remember("first");
    editor.remember("second");
    editor.remember("second");
    type_in(&mut editor, "half");
    press(&mut editor, &[Key::Up]);
    assert_eq!(draw(&editor), "second|");
    press(&mut editor, &[Key::Up]);
    assert_eq!(draw(&editor), "first|");
    assert_eq!(editor.key(&Key::Up), EditorOutcome::Unused);
    press(&mut editor, &[Key::Down, Key::Down]);
    assert_eq!(draw(&editor), "half|");
    assert_eq!(editor.key(&Key::Down), EditorOutcome::Unused);
}

#[test]
fn pasted_text_cannot_control_the_editor() {
    let mut editor = Editor::default();
    press(&mut editor, &[Key::Paste("a\nb\u{1b}[31m\u{7}".to_owned())]);
    assert_eq!(draw(&editor), "a\nb[31m|");
}

#[test]
fn a_long_paste_is_one_character_until_it_is_sent() {
    let mut editor = Editor::default();
    let page = "a line\n".repeat(40);
    type_in(&mut editor, "see ");
    press(&mut editor, &[Key::Paste(page.clone())]);
    let chip = editor.text().chars().last().unwrap();
    assert_eq!(editor.chip_label(chip), Some("[pasted 40 lines]"));
    press(&mut editor, &[Key::Backspace]);
    assert_eq!(draw(&editor), "see |");
    press(&mut editor, &[Key::Undo]);
    type_in(&mut editor, "!");
    let entered = editor.key(&Key::Enter);
    assert_eq!(entered, EditorOutcome::Entered(format!("see {page}!")));
}

#[test]
fn what_was_put_away_is_brought_back() {
    let mut editor = Editor::default();
    type_in(&mut editor, "half an answer");
    editor.put_away();
    assert!(editor.is_empty());
    press(&mut editor, &[Key::Ctrl('y')]);
    assert_eq!(draw(&editor), "half an answer|");
}
