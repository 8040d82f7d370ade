//! What settles, and what moves, of chats that go on.

use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use wire::reduce::reduce_chat;
use wire::{Action, ActionKind};

use super::*;
use crate::chat::line::Colors;
use crate::chat::tool::ReferencedContent;

struct Reader {
    chat: ChatState,
    transcript: Transcript,
    references: References,
    began: Instant,
    seconds: u64,
    width: usize,
    asked: Option<Object>,
}

impl Reader {
    fn new() -> Self {
        Self {
            chat: ChatState::new("ahp-chat:/c", "", 1, String::new()),
            transcript: Transcript::default(),
            references: References::default(),
            began: Instant::now(),
            seconds: 0,
            width: 30,
            asked: None,
        }
    }

    fn act(&mut self, name: &str, mut fields: Value) -> &mut Self {
        fields["turnId"] = json!("t");
        reduce_chat(&mut self.chat, &Action::host(ActionKind::from_name(name), fields));
        self
    }

    fn begin(&mut self, text: &str) -> &mut Self {
        let message = json!({"text": text, "origin": {"kind": "user"}});
        let fields = json!({"startedAt": "2026-11-15T08:00:00Z", "message": message});
        self.act("chat/turnStarted", fields)
    }

    fn part(&mut self, part: Value) -> &mut Self {
        self.act("chat/responsePart", json!({"part": part}))
    }

    fn delta(&mut self, text: &str) -> &mut Self {
        self.act("chat/delta", json!({"partId": "p", "content": text}))
    }

    fn end(&mut self) -> &mut Self {
        self.act("chat/turnComplete", json!({"duration": 1}))
    }

    /// Settled lines, then those that move behind a bar; dim ones in braces.
    fn check(&mut self, expected: Expect) -> &mut Self {
        let view = ChatView {
            page: Page::of_width(self.width),
            references: &self.references,
            now: self.began + Duration::from_secs(self.seconds),
        };
        let settled = self.transcript.settle(&self.chat, &view);
        let asked = self.asked.as_ref();
        let moving = self.transcript.moving(&self.chat, asked, &view);
        let mut text_so_far = String::new();
        for (bar, lines) in [("", &settled), ("| ", &moving)] {
            for line in lines {
                let encoded = line.encode(Colors::On);
                let text = line.text();
                let dim = encoded.contains("\u{1b}[2m");
                let text = if dim { format!("{{{text}}}") } else { text };
                text_so_far.push_str(format!("{bar}{text}").trim_end());
                text_so_far.push('\n');
            }
        }
        expected.assert_eq(&text_so_far);
        self
    }
}

#[test]
fn an_answer_settles_line_by_line() {
    let mut page = Reader::new();
    page.begin("hello").check(expect![[r#"
        › hello
    "#]]);
    page.part(json!({"kind": "markdown", "id": "p", "content": ""}));
    page.delta("The first line of the ans").check(expect![[r#"
        |
        | The first line of the ans
    "#]]);
    page.delta("wer, and more").check(expect![[r#"
        |
        | The first line of the answer,
        | and more
    "#]]);
    page.delta("\n\n\u{1b}[2Jlast").check(expect![[r#"
        |
        | The first line of the answer,
        | and more
        |
        | \x1b[2Jlast
    "#]]);
    page.delta("\n\n").end().check(expect![[r#"

        The first line of the answer,
        and more

        \x1b[2Jlast
    "#]]);
    page.check(expect![""]);
}

#[test]
fn reasoning_is_one_line_that_says_how_long_it_took() {
    let mut page = Reader::new();
    page.begin("think").part(json!({"kind": "reasoning", "id": "r", "content": "hm\nwell"})).check(
        expect![[r#"
            › think
            |
            | {∴ thinking: well}
        "#]],
    );
    page.seconds = 12;
    page.check(expect![[r#"
        |
        | {∴ thinking 12 s: well}
    "#]]);
    page.part(json!({"kind": "markdown", "id": "p", "content": "42"})).end().check(expect![[r#"

            {∴ thought for 12 s (Ctrl-T)}

            42
        "#]]);
    let whole: Vec<String> =
        page.transcript.toggle_reasoning(Page::of_width(30)).iter().map(Line::text).collect();
    assert_eq!(whole, ["hm", "well"]);
}

#[test]
fn reasoning_that_is_not_folded_is_printed_dim() {
    let mut page = Reader::new();
    assert!(page.transcript.toggle_reasoning(Page::of_width(30)).is_empty());
    page.begin("think").part(json!({"kind": "reasoning", "id": "r", "content": "hm\nwell"})).check(
        expect![[r#"
            › think

            {hm}
            | {∴ thinking: well}
        "#]],
    );
    page.part(json!({"kind": "markdown", "id": "p", "content": "42"})).end().check(expect![[r#"
            {well}

            42
        "#]]);
}

#[test]
fn an_edit_waits_for_its_contents_and_is_a_diff_then() {
    let side = |uri: &str| json!({"uri": "file:///a.rs", "content": {"uri": uri}});
    let mut page = Reader::new();
    page.begin("go");
    let start = json!({"toolCallId": "c", "toolName": "edit", "displayName": "Edit"});
    page.act("chat/toolCallStart", start);
    let ready =
        json!({"toolCallId": "c", "invocationMessage": "Edit a.rs", "confirmed": "not-needed"});
    page.act("chat/toolCallReady", ready);
    let edit = json!({"type": "fileEdit", "before": side("c:1"), "after": side("c:2"), "diff": {"added": 1, "removed": 1}});
    let result = json!({"success": true, "pastTenseMessage": "Edited a.rs", "content": [edit]});
    page.act("chat/toolCallComplete", json!({"toolCallId": "c", "result": result}));
    page.part(json!({"kind": "markdown", "id": "p", "content": "done"})).end();
    page.check(expect![[r#"
        › go
        |
        | ✓ Edited a.rs
        |   edits /a.rs (+1 -1)
    "#]]);
    assert_eq!(page.transcript.needed_contents(None), ["c:1", "c:2"]);
    page.references.set("c:1", ReferencedContent::Here(Arc::from(&b"a\nb\n"[..])));
    page.references.set("c:2", ReferencedContent::Here(Arc::from(&b"a\nc\n"[..])));
    page.check(expect![[r#"

        ✓ Edited a.rs
        {  1   a}
        {  2 - b}
        {  2 + c}

        done
    "#]]);
}

#[test]
fn running_calls_are_redrawn_and_hold_back_later_parts() {
    let mut page = Reader::new();
    page.begin("go");
    let call = |more: Value| {
        let mut fields = json!({"toolCallId": "c"});
        for (key, value) in more.as_object().unwrap() {
            fields[key] = value.clone();
        }
        fields
    };
    page.act("chat/toolCallStart", call(json!({"toolName": "x", "displayName": "Run"})));
    page.act(
        "chat/toolCallReady",
        call(json!({"invocationMessage": "Running it", "confirmed": "not-needed"})),
    );
    page.part(json!({"kind": "markdown", "id": "p", "content": "meanwhile"}));
    page.check(expect![[r#"
        › go
        |
        | ● Running it
        |
        | meanwhile
    "#]]);
    let result = json!({"success": true, "pastTenseMessage": "Ran it"});
    page.act("chat/toolCallComplete", call(json!({"result": result})));
    page.check(expect![[r#"

        ✓ Ran it
        |
        | meanwhile
    "#]]);
    page.act("chat/turnCancelled", json!({"duration": 1})).check(expect![[r#"

            meanwhile

            ⊘ cancelled
        "#]]);
}

#[test]
fn a_change_of_width_affects_later_lines_only() {
    let mut page = Reader::new();
    page.begin("go").part(json!({"kind": "markdown", "id": "p", "content": "one two three four"}));
    page.width = 9;
    page.check(expect![[r#"
        › go
        |
        | one two
        | three
        | four
    "#]]);
    page.width = 30;
    page.delta(" five six").check(expect![[r#"
        |
        | one two three four five six
    "#]]);
}

#[test]
fn what_is_asked_is_not_hidden_by_what_waits_for_its_contents() {
    let side = |uri: &str| json!({"uri": "file:///a.rs", "content": {"uri": uri}});
    let mut page = Reader::new();
    page.begin("go");
    let call = |page: &mut Reader, id: &str, more: Value| {
        let start = json!({"toolCallId": id, "toolName": "x", "displayName": id});
        page.act("chat/toolCallStart", start);
        let mut ready =
            json!({"toolCallId": id, "invocationMessage": format!("Run {id}"), "toolInput": "ls"});
        for (key, value) in more.as_object().unwrap() {
            ready[key] = value.clone();
        }
        page.act("chat/toolCallReady", ready);
    };
    call(&mut page, "edit", json!({"confirmed": "not-needed"}));
    let edit = json!({"type": "fileEdit", "before": side("c:1"), "after": side("c:2")});
    let result = json!({"success": true, "pastTenseMessage": "Edited a.rs", "content": [edit]});
    page.act("chat/toolCallComplete", json!({"toolCallId": "edit", "result": result}));
    call(&mut page, "one", json!({}));
    call(&mut page, "two", json!({}));
    page.check(expect![[r#"
        › go
        |
        | ✓ Edited a.rs
        |   edits /a.rs
        |
        | ? Run one
        |   ls
        |
        | ? Run two
        |   ls
    "#]]);
    // What is asked stands where it is decided on, and of what is not asked there is the name.
    page.asked =
        json!({"kind": "toolCall", "toolCall": {"toolCallId": "one"}}).as_object().cloned();
    page.check(expect![[r#"
        |
        | ✓ Edited a.rs
        |   edits /a.rs
        |
        | ? Run two
    "#]]);
}

#[test]
fn only_the_newest_plan_is_drawn_and_it_is_printed_when_the_turn_ends() {
    let mut page = Reader::new();
    page.begin("go");
    let write = |page: &mut Reader, id: &str, statuses: [&str; 2]| {
        let start = json!({"toolCallId": id, "toolName": "todo", "displayName": "Plan"});
        page.act("chat/toolCallStart", start);
        let ready =
            json!({"toolCallId": id, "invocationMessage": "Plan", "confirmed": "not-needed"});
        page.act("chat/toolCallReady", ready);
        let items = [("Read", statuses[0]), ("Write", statuses[1])]
            .map(|(text, status)| json!({"text": text, "status": status}));
        let done = statuses.iter().filter(|status| **status == "completed").count();
        let result = json!({"success": true, "pastTenseMessage": format!("Plan: {done} of 2 done"),
            "content": [{"type": "text", "text": "- [ ] Read"}], "structuredContent": {"items": items}});
        page.act("chat/toolCallComplete", json!({"toolCallId": id, "result": result}));
    };
    write(&mut page, "a", ["in_progress", "pending"]);
    page.check(expect![[r#"
        › go

        {✓ Plan: 0 of 2 done · Read}
        |
        |   [>] Read
        |   [ ] Write
    "#]]);
    write(&mut page, "b", ["completed", "in_progress"]);
    page.check(expect![[r#"
        {✓ Plan: 1 of 2 done · Write}
        |
        | {  [x] Read}
        |   [>] Write
    "#]]);
    page.end().check(expect![[r#"

        {  [x] Read}
          [>] Write
    "#]]);
    page.check(expect![""]);
}

#[test]
fn of_another_call_that_waits_there_is_only_the_name() {
    let mut page = Reader::new();
    page.begin("go");
    let ready = |id: &str, more: Value| {
        let mut call = json!({"toolCallId": id, "toolName": "x", "displayName": "X"});
        for (key, value) in more.as_object().unwrap() {
            call[key] = value.clone();
        }
        call
    };
    for id in ["a", "b"] {
        page.act("chat/toolCallStart", ready(id, json!({})));
        let ready =
            ready(id, json!({"invocationMessage": format!("Call {id}"), "toolInput": "{\"n\":1}"}));
        page.act("chat/toolCallReady", ready);
    }
    // The first has run, and its result is to be decided on; the second is asked about.
    let confirmed = json!({"approved": true, "confirmed": "user-action"});
    page.act("chat/toolCallConfirmed", ready("a", confirmed));
    let result = json!({"success": true, "pastTenseMessage": "Called a",
        "content": [{"type": "text", "text": "command: ls"}]});
    page.act(
        "chat/toolCallComplete",
        ready("a", json!({"result": result, "requiresResultConfirmation": true})),
    );
    let asked = json!({"kind": "toolCall", "toolCall": {"toolCallId": "b"}});
    page.asked = asked.as_object().cloned();
    page.check(expect![[r#"
        › go
        |
        | ? Called a
    "#]]);
}
