//! What a call looks like in each of its states.

use expect_test::{Expect, expect};
use serde_json::json;

use super::input::INPUT_LINES_MAX;
use super::*;

fn drawn(call: &Value, detail: Detail) -> Vec<Line> {
    let call = call.as_object().unwrap();
    tool_lines_with(call, Page::of_width(40), detail, &References::default())
}

fn check(call: Value, expected: Expect) {
    let lines = drawn(&call, Detail::Brief);
    assert!(lines.iter().all(|line| line.width() <= 40), "{lines:?}");
    let text: String = lines.iter().map(|line| line.text() + "\n").collect();
    expected.assert_eq(&text);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_call_is_rendered_in_every_state() {
    check(
        json!({"status": "streaming", "displayName": "Run", "partialInput": "{\"comm"}),
        expect![[r#"
            ○ Run
              {"comm
        "#]],
    );
    check(
        json!({
            "status": "pending-confirmation", "displayName": "Run",
            "confirmationTitle": "Run in terminal", "invocationMessage": "Run a command",
            "toolInput": "{\"command\":\"rm -rf target\",\"timeout\":5}",
            "riskAssessment": {"kind": "judge", "status": "complete", "reason": "deletes", "safety": 0.25},
            "edits": {"items": [
                {"after": {"uri": "file:///a.txt"}, "diff": {"added": 3}},
                {"before": {"uri": "file:///b"}, "after": {"uri": "file:///c"}},
            ]},
        }),
        expect![[r#"
            ? Run in terminal
              Run a command
              safety 25 %: deletes
              command: rm -rf target
              timeout: 5
              writes /a.txt (+3 -0)
              its content cannot be shown: the
                agent sent none
              moves /b to /c
              its content cannot be shown: the
                agent sent none
        "#]],
    );
    check(
        json!({"status": "running", "displayName": "Run", "invocationMessage": {"markdown": "Running `ls`"},
            "content": [{"type": "text", "text": "1\n2\n3\n4\n5\n"}]}),
        expect![[r#"
            ● Running `ls`
              2
              3
              4
              5
        "#]],
    );
    check(
        json!({"status": "completed", "success": true, "pastTenseMessage": "Ran ls",
            "content": [{"type": "text", "text": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"}]}),
        expect![[r#"
            ✓ Ran ls
              1
              2
              3
              4
              5
              6
              7
              8
              9
        "#]],
    );
    check(
        json!({"status": "completed", "success": false, "pastTenseMessage": "Tried", "error": {"message": "no"}}),
        expect![[r#"
            ✗ Tried
              no
        "#]],
    );
    check(
        json!({"status": "cancelled", "displayName": "Run", "reason": "denied",
            "userSuggestion": {"text": "use cargo clean"}}),
        expect![[r#"
            ⊘ Run: denied
              instead: use cargo clean
        "#]],
    );
    check(
        json!({"status": "something-new", "toolName": "x"}),
        expect![[r#"
            ○ x
        "#]],
    );
}

#[test]
fn every_kind_of_output_has_a_text() {
    check(
        json!({"status": "completed", "success": true, "pastTenseMessage": "Did", "content": [
            {"type": "subagent", "title": "Helper", "resource": "ahp-chat:/w"},
            {"type": "resource", "uri": "ahp-content:/x", "contentType": "text/plain", "sizeHint": 5000},
            {"type": "embeddedResource", "data": "QUJD", "contentType": "image/png"},
            {"type": "fileEdit", "before": {"uri": "file:///gone"}},
            {"type": "terminal", "title": "sh", "result": {"exitCode": 1, "preview": "bad"}},
            {"type": "new"},
        ]}),
        expect![[r#"
            ✓ Did
              → Helper: ahp-chat:/w
              [text/plain, 4 KiB: ahp-content:/x]
              [image/png, 3 bytes]
              sh (exit code 1)
              bad
              [new]
              deletes /gone
        "#]],
    );
}

#[test]
fn every_character_of_a_question_is_shown() {
    let command = "echo hi \u{1b}] x; touch PWNED\u{202e}\ncommand: ls";
    let input = json!({"command": command, "name\u{7}": [1, "\u{9b}"]}).to_string();
    check(
        json!({"status": "pending-confirmation", "displayName": "Run", "invocationMessage": "Run it",
            "toolInput": input,
            "edits": {"items": [{"after": {"uri": "file:///a\u{1b}[2K"}}]}}),
        expect![[r#"
            ? Run it
              command: echo hi \x1b] x; touch PWNE
              ↳ D\u{202e}
                command: ls
              name\x07: [1,"\u009b"]
              writes /a\x1b[2K
              its content cannot be shown: the
                agent sent none
        "#]],
    );
}

#[test]
fn a_long_question_is_cut_only_where_it_is_drawn_again() {
    let command = "x\n".repeat(40) + "touch PWNED";
    let call = json!({"status": "pending-confirmation", "displayName": "Run",
        "toolInput": json!({"command": command}).to_string()});
    let lines = |detail| drawn(&call, detail);
    let (brief, whole) = (lines(Detail::Brief), lines(Detail::Whole));
    assert_eq!(brief.len(), 1 + INPUT_LINES_MAX);
    assert_eq!(brief.last().unwrap().text(), "  … 30 more lines (Ctrl-O)");
    assert_eq!(whole.len(), 1 + 41);
    assert_eq!(whole.last().unwrap().text(), "    touch PWNED");
}

#[test]
fn nothing_in_a_call_can_control_the_terminal() {
    check(
        json!({"status": "completed", "success": false, "pastTenseMessage": "Tried",
            "error": {"message": "no\u{1b}[2J"}}),
        expect![[r#"
            ✗ Tried
              no\x1b[2J
        "#]],
    );
    check(
        json!({"status": "completed", "success": true, "pastTenseMessage": "a\u{1b}[2Jb\nc",
            "content": [{"type": "text", "text": "x\u{1b}]0;t\u{7}y\rz"}]}),
        expect![[r#"
            ✓ a\x1b[2Jb\nc
              x\x1b]0;t\x07y\rz
        "#]],
    );
}

#[test]
fn an_edit_without_its_contents_is_a_diff_of_what_it_says() {
    let input = json!({"path": "src/a\u{1b}.rs", "edits": [
        {"old_text": "let a = 1;\nlet b = 2;", "new_text": "let a = 3;\nlet b = 2;"},
        {"old_text": "x\n", "new_text": "", "all": true},
    ]});
    check(
        json!({"status": "pending-confirmation", "toolName": "edit", "confirmationTitle": "Edit it",
            "toolInput": input.to_string()}),
        expect![[r#"
            ? Edit it
              path: src/a\x1b.rs
              - let a = 1;
              + let a = 3;
                let b = 2;
              ⋯
              wherever it occurs:
              - x
        "#]],
    );
    let content = (1..=60).map(|line| format!("line {line}\n")).collect::<String>();
    let input = json!({"path": "new.txt", "content": content});
    let call = json!({"status": "pending-confirmation", "toolName": "write", "toolInput": input.to_string()});
    let lines = |detail| drawn(&call, detail);
    let brief = lines(Detail::Brief);
    assert_eq!(brief.last().unwrap().text(), "  … 22 more lines (Ctrl-O)");
    assert_eq!(lines(Detail::Whole).last().unwrap().text(), "  + line 60");
    // What is not understood whole is shown as it is.
    let input = json!({"path": "a", "content": "b", "mode": 7});
    check(
        json!({"status": "pending-confirmation", "toolName": "write", "toolInput": input.to_string()}),
        expect![[r#"
            ? write
              path: a
              content: b
              mode: 7
        "#]],
    );
}

#[test]
fn long_output_ends_with_its_end() {
    let output = (1..=30).map(|line| format!("line {line}\n")).collect::<String>();
    check(
        json!({"status": "completed", "success": false, "pastTenseMessage": "Ran make (exit code 2)",
            "content": [{"type": "text", "text": output + "[exit code 2]"}],
            "error": {"message": "Ran make (exit code 2)"}}),
        expect![[r#"
            ✗ Ran make (exit code 2)
              … 22 lines above (Ctrl-O)
              line 23
              line 24
              line 25
              line 26
              line 27
              line 28
              line 29
              line 30
              [exit code 2]
        "#]],
    );
}

#[test]
fn a_worker_is_one_line_with_its_state() {
    let call = json!({"status": "running", "displayName": "Look around", "invocationMessage": "Look around",
        "content": [{"type": "subagent", "title": "Look around", "resource": "ahp-chat:/w"}]});
    let call = call.as_object().unwrap();
    let mut references = References::default();
    let line = |references: &References, width| {
        let lines = tool_lines_with(call, Page::of_width(width), Detail::Brief, references);
        assert_eq!(lines.len(), 1);
        lines[0].text()
    };
    assert_eq!(line(&references, 80), "◐ Look around · /open ahp-chat:/w");
    let mut set = |status, activity: Option<&str>| {
        let worker = WorkerState { status, activity: activity.map(str::to_owned), seconds: 75 };
        references.set_workers([("ahp-chat:/w".to_owned(), worker)].into());
        line(&references, 80)
    };
    assert_eq!(
        set(8, Some("reading\u{1b}[2J files")),
        "◐ Look around · reading\\x1b[2J files · 1 min · /open ahp-chat:/w"
    );
    assert_eq!(set(24, None), "◐ Look around · needs you · 1 min · /open ahp-chat:/w");
    assert_eq!(line(&references, 20), "◐ Look around · nee…");
}
