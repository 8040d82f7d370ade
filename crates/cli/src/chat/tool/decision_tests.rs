//! What is shown of a call before it is decided on.

use serde_json::json;

use super::*;

/// A call that waits, with edits of files whose contents are named by number.
fn edits_call(count: usize, input: Value) -> Object {
    let side = |path: usize, content: usize| {
        let uri = format!("file:///w/{path}.txt");
        json!({"uri": uri, "content": {"uri": format!("c:{content}")}})
    };
    let items: Vec<Value> = (0..count)
        .map(|n| json!({"before": side(n, 2 * n), "after": side(n, 2 * n + 1)}))
        .collect();
    let call = json!({"status": "pending-confirmation", "toolName": "write", "displayName": "Write",
        "toolInput": input.to_string(), "edits": {"items": items}});
    call.as_object().unwrap().clone()
}

fn texts(call: &Object, detail: Detail, references: &References) -> Vec<String> {
    tool_lines_with(call, Page::of_width(60), detail, references).iter().map(Line::text).collect()
}

fn here(bytes: &[u8]) -> ReferencedContent {
    ReferencedContent::Here(bytes.into())
}

#[test]
fn an_input_is_hidden_only_by_a_diff_that_shows_all_of_it() {
    let call = edits_call(1, json!({"path": "0.txt", "content": "evil"}));
    let shows_input = |call: &Object, references: &References| {
        let lines = texts(call, Detail::Brief, references);
        assert!(lines.len() > 2, "{lines:?}");
        lines.iter().any(|line| line.ends_with("path: 0.txt"))
    };
    let with = |after: ReferencedContent| {
        let mut references = References::default();
        references.set("c:0", here(b"old\n"));
        references.set("c:1", after);
        references
    };
    assert!(!shows_input(&call, &with(here(b"evil"))), "the diff has it");
    for after in [
        here(b"harmless"),
        here(b"\0"),
        here(&vec![b'x'; markup::diff::BYTES_MAX + 1]),
        here(&b"x\n".repeat(markup::diff::ROWS_MAX + 1)),
        ReferencedContent::Coming,
        ReferencedContent::Missing("gone".to_owned()),
    ] {
        let references = with(after.clone());
        assert!(shows_input(&call, &references));
    }
    assert!(shows_input(&call, &References::default()), "nothing is known");
    // A diff of another file says nothing about this one.
    let mut other = call.clone();
    other["edits"]["items"][0]["after"]["uri"] = json!("file:///w/10.txt");
    assert!(shows_input(&other, &with(here(b"evil"))));
    // Nor do several.
    let two = edits_call(2, json!({"path": "0.txt", "content": "evil"}));
    assert!(shows_input(&two, &with(here(b"evil"))));
}

#[test]
fn what_a_diff_cannot_show_of_an_input_is_shown_as_it_is() {
    for (input, expected) in [
        (json!({"path": "a", "content": "x\0y"}), "content: x\\x00y"),
        (json!({"path": "a", "content": ""}), "content: "),
    ] {
        let call = json!({"status": "pending-confirmation", "toolName": "write", "toolInput": input.to_string()});
        let lines = texts(call.as_object().unwrap(), Detail::Brief, &References::default());
        assert_eq!(lines[2].trim_start(), expected, "{lines:?}");
    }
    // A newline that goes is a change.
    let edits = json!([{"old_text": "// off\n", "new_text": "// off"}]);
    let input = json!({"path": "a", "edits": edits}).to_string();
    let call = json!({"status": "pending-confirmation", "toolName": "edit", "toolInput": input});
    let lines = texts(call.as_object().unwrap(), Detail::Brief, &References::default());
    assert!(lines.contains(&"  + // off (no newline at the end)".to_owned()), "{lines:?}");
}

#[test]
fn content_that_cannot_be_shown_is_said() {
    let mut references = References::default();
    references.set("c:0", ReferencedContent::Missing("no\u{1b}".to_owned()));
    references.set("c:1", here(b"new\n"));
    references.set("c:3", ReferencedContent::Missing("gone".to_owned()));
    let call = edits_call(3, json!({}));
    let lines = texts(&call, Detail::Brief, &references);
    assert_eq!(
        lines[1..],
        [
            "  edits /w/0.txt",
            "  what it replaces cannot be shown: no\\x1b; afterwards",
            "    there is:",
            "  1 + new",
            "  edits /w/1.txt",
            "  its content cannot be shown: gone",
            "  edits /w/2.txt",
            "  its content cannot be shown: it was not read",
        ]
    );
}

#[test]
fn of_many_edits_some_are_shown_the_others_counted_and_all_can_be_had() {
    let call = edits_call(500, json!({}));
    let mut references = References::default();
    for uri in content_uris(&call) {
        let content = format!("{uri}\n");
        references.set(&uri, here(content.as_bytes()));
    }
    let brief = texts(&call, Detail::Brief, &references);
    assert_eq!(brief.last().unwrap(), "  … 492 more changes (Ctrl-O)");
    assert!(brief.contains(&"  500 changes:".to_owned()), "{brief:?}");
    for detail in [Detail::Whole, Detail::Unfolded] {
        let all = texts(&call, detail, &references);
        for n in [0, 250, 499] {
            assert!(all.contains(&format!("  edits /w/{n}.txt")));
            assert!(all.contains(&format!("  1 + c:{}", 2 * n + 1)));
        }
    }
    // Where they are printed there is an end, which is said.
    let content = "x\n".repeat(700);
    for n in 0..500 {
        references.set(&format!("c:{}", 2 * n + 1), here(content.as_bytes()));
    }
    let whole = texts(&call, Detail::Whole, &references);
    assert!(whole.len() < 2 * WHOLE_LINES_MAX);
    assert_eq!(whole.last().unwrap(), "  … 497 more changes (Ctrl-O)");
    assert!(texts(&call, Detail::Unfolded, &references).len() > 350_000);
}

#[test]
fn an_input_that_is_stored_elsewhere_is_shown() {
    let call = json!({"status": "pending-confirmation", "toolName": "x", "displayName": "X",
        "toolInput": {"uri": "c:in", "contentType": "application/json", "sizeHint": 9}});
    let call = call.as_object().unwrap();
    let mut references = References::default();
    let lines = texts(call, Detail::Brief, &references);
    assert_eq!(lines[1], "  its input cannot be shown: it was not read");
    references.set("c:in", here(br#"{"command":"ls"}"#));
    let lines = texts(call, Detail::Brief, &references);
    assert_eq!(lines[1..], ["  command: ls"]);
}

#[test]
fn a_result_that_is_decided_on_is_never_left_out() {
    let call = |status: &str, text: &str| {
        let call = json!({"status": status, "success": true, "pastTenseMessage": "Read a",
            "_meta": {"toolKind": "read"}, "content": [{"type": "text", "text": text}]});
        texts(call.as_object().unwrap(), Detail::Brief, &References::default()).len()
    };
    for text in ["Read a", "Read a and the key is 1234", "x"] {
        assert_eq!(call("pending-result-confirmation", text), 2, "{text}");
        assert_eq!(call("completed", text), 1, "{text}");
    }
    // What merely begins like the title says more than it.
    let more = json!({"status": "completed", "success": true, "pastTenseMessage": "Ran ls",
        "content": [{"type": "text", "text": "Ran ls and more"}, {"type": "text", "text": "Ran ls."}]});
    let lines = texts(more.as_object().unwrap(), Detail::Brief, &References::default());
    assert_eq!(lines, ["✓ Ran ls", "  Ran ls and more"]);
}

#[test]
fn replacements_are_diffs_under_every_name_they_go_by() {
    for input in [
        json!({"path": "a", "old_string": "x", "new_string": "y", "replace_all": false}),
        json!({"path": "a", "edits": [{"old": "x", "new": "y"}]}),
    ] {
        let call = json!({"status": "pending-confirmation", "toolName": "edit", "toolInput": input.to_string()});
        let lines = texts(call.as_object().unwrap(), Detail::Brief, &References::default());
        assert_eq!(lines[1..], ["  path: a", "  - x", "  + y"]);
    }
    for input in [
        json!({"path": "a", "old": "x", "old_text": "z", "new": "y"}),
        json!({"path": "a", "old": "x", "new": "y", "mode": 1}),
        json!({"path": "a", "edits": [{"old": "x", "new": "y"}], "old": "x", "new": "y"}),
    ] {
        let call = json!({"status": "pending-confirmation", "toolName": "edit", "toolInput": input.to_string()});
        let lines = texts(call.as_object().unwrap(), Detail::Brief, &References::default());
        let fields = input.as_object().unwrap().len();
        assert_eq!(lines.len(), 1 + fields, "all of it: {lines:?}");
    }
}

#[test]
fn an_edit_that_is_not_what_its_input_says_does_not_hide_the_input() {
    let shows_input = |input: Value, before: &[u8], after: &[u8]| {
        let mut call = edits_call(1, input);
        call["toolName"] = json!("edit");
        let mut references = References::default();
        references.set("c:0", here(before));
        references.set("c:1", here(after));
        texts(&call, Detail::Brief, &references).iter().any(|line| line.ends_with("path: 0.txt"))
    };
    let replace =
        |old: &str, new: &str, all: bool| json!({"old_text": old, "new_text": new, "all": all});
    let input = |edits: &[Value]| json!({"path": "0.txt", "edits": edits});
    let one = input(&[replace("b", "x", false)]);
    assert!(!shows_input(one.clone(), b"a\nb\n", b"a\nx\n"));
    assert!(shows_input(one.clone(), b"a\nb\n", b"a\ny\n"), "another");
    assert!(shows_input(one.clone(), b"a\nb\n", b"x\nx\n"), "more than it says");
    assert!(shows_input(one, b"b\nb\n", b"x\nb\n"), "which of them");
    let all = input(&[replace("b", "x", true)]);
    assert!(!shows_input(all.clone(), b"b\nb\n", b"x\nx\n"));
    assert!(shows_input(all, b"b\nb\n", b"x\nb\n"));
    let two = input(&[replace("a", "b", false), replace("b\n", "c\n", false)]);
    assert!(!shows_input(two.clone(), b"a\n", b"c\n"), "one after the other");
    assert!(shows_input(two, b"a\n", b"b\n"), "the second is not there");
    let beside = json!({"path": "0.txt", "old": "b\nc", "new": "x"});
    assert!(!shows_input(beside, b"b\r\nc\r\n", b"x\r\n"), "CRLF");
    // What would grow without bound is not tried.
    let growing: Vec<Value> = (0..40).map(|_| replace("b", "bb", true)).collect();
    assert!(shows_input(input(&growing), b"b\n", b"x\n"));
}

#[test]
fn an_edit_with_neither_side_does_not_say_that_nothing_changes() {
    let call = json!({"status": "pending-confirmation", "toolName": "x", "displayName": "X",
        "edits": {"items": [{"before": null, "after": null}, {}]}});
    let lines = texts(call.as_object().unwrap(), Detail::Brief, &References::default());
    let edit = ["  edits a file", "  its content cannot be shown: the agent sent none"];
    assert_eq!(lines[1..], [edit, edit].concat());
}

#[test]
fn only_a_plan_stands_for_its_own_input() {
    let texts_of = |tool: &str| {
        let call = json!({"status": "pending-confirmation", "toolName": tool, "displayName": "X",
            "confirmationTitle": "Go?", "invocationMessage": {"markdown": "rm -rf precious"},
            "toolInput": json!({"plan": "rm -rf precious"}).to_string()});
        let references = References::default();
        texts(call.as_object().unwrap(), Detail::Brief, &references)
    };
    assert_eq!(texts_of("exit_plan"), ["? Go?", "  rm -rf precious"]);
    assert_eq!(texts_of("bash"), ["? Go?", "  rm -rf precious", "  plan: rm -rf precious"]);
}
