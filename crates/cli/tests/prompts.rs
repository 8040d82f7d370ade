//! Prompts in a real terminal are decided by two deliberate keys, and by nothing else that is typed or pasted (G-64).

use std::collections::BTreeMap;

use serde_json::{Value, json};
use testkit::{Answer, Call, ModelServer};

use crate::running::{Host, greenroom, text};
use crate::terminal::{BACKSPACE, DOWN, ENTER, ESCAPE, SIZES, ScreenSize, TAB, Terminal, UP};

/// What people type when they did not mean to decide.
const SENTENCES: [&str; 4] = ["hmm, actually no", "maybe", "yes please", "1 or 2?"];
/// Shown at every prompt while nothing is chosen.
const HINT: &str = "Enter confirms";

/// Every kind of prompt by the message that brings it up: the step, what waits in the chat's state, and a digit that decides.
#[allow(clippy::too_many_lines, reason = "a table")]
fn kinds() -> BTreeMap<&'static str, (Value, &'static str, char)> {
    let question =
        |question: Value| json!({"ask": {"message": "Tell me", "questions": [question]}});
    let options =
        json!([{"id": "r", "label": "Red"}, {"id": "b", "label": "Blue", "recommended": true}]);
    let call = json!({"name": "x", "display": "Dig", "input": {"depth": 3}, "confirm": "ask", "editable": true});
    let offered = json!({"name": "x", "display": "Dig", "confirm": "ask", "options": [
        {"id": "o", "label": "Allow once", "kind": "approve"},
        {"id": "a", "label": "Allow always", "kind": "approve"},
        {"id": "n", "label": "Never", "kind": "deny"},
    ]});
    let result = json!({"name": "x", "display": "Dig", "confirm_result": true,
        "result": {"message": "Dug", "content": [{"type": "text", "text": "a bone"}]}});
    let worker = json!({"title": "Digger", "steps": [{"tool": {"name": "y", "display": "Shovel", "confirm": "ask"}}]});
    BTreeMap::from([
        ("call", (json!({"tool": call}), "pending-confirmation", '2')),
        ("options", (json!({"tool": offered}), "pending-confirmation", '5')),
        ("result", (json!({"tool": result}), "pending-result-confirmation", '1')),
        ("worker", (json!({"spawn": worker}), "running", '1')),
        (
            "url",
            (
                json!({"ask": {"message": "Sign in", "url": "https://example.org"}}),
                "inputRequest",
                '2',
            ),
        ),
        (
            "text",
            (
                question(json!({"id": "q", "kind": "text", "message": "Name?", "required": true})),
                "inputRequest",
                '9',
            ),
        ),
        (
            "number",
            (
                question(json!({"id": "q", "kind": "number", "message": "How many?"})),
                "inputRequest",
                '7',
            ),
        ),
        (
            "boolean",
            (
                question(json!({"id": "q", "kind": "boolean", "message": "Sure?"})),
                "inputRequest",
                '2',
            ),
        ),
        (
            "single",
            (
                question(
                    json!({"id": "q", "kind": "single-select", "message": "Which?", "options": options}),
                ),
                "inputRequest",
                '1',
            ),
        ),
        (
            "many",
            (
                question(
                    json!({"id": "q", "kind": "multi-select", "message": "Which ones?", "options": options}),
                ),
                "inputRequest",
                '7',
            ),
        ),
    ])
}

fn host_of_kinds() -> Host {
    let mut scenes: Vec<Value> = kinds()
        .into_iter()
        .map(|(kind, (step, _, _))| {
            json!({"when": format!("^ask {kind} "), "steps": [step, {"say": ["told {{last}}"]}]})
        })
        .collect();
    scenes.push(json!({"steps": [{"say": ["noted"]}]}));
    Host::scripted(&json!(scenes))
}

fn chat(host: &Host, size: ScreenSize) -> Terminal {
    let mut command = host.greenroom();
    command.arg("chat");
    let terminal = Terminal::start_sized("ann", command, size);
    terminal.sees("\n›");
    terminal
}

/// The states of the default chats of all sessions.
fn chats(host: &Host) -> Vec<Value> {
    let listed = host.run(&["sessions", "--json"]);
    let sessions: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let chats = sessions.as_array().unwrap().iter().map(|session| {
        let session = host.state(session["resource"].as_str().unwrap());
        host.state(session["defaultChat"].as_str().unwrap())
    });
    chats.collect()
}

/// The chat in which a message is being answered: others may be newer.
fn chat_with(host: &Host, message: &str) -> String {
    let listed = host.run(&["sessions", "--json"]);
    let sessions: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let mut chats = sessions.as_array().unwrap().iter().map(|session| {
        let session = host.state(session["resource"].as_str().unwrap());
        session["defaultChat"].as_str().unwrap().to_owned()
    });
    let is_it = |chat: &String| host.state(chat)["activeTurn"]["message"]["text"] == message;
    chats.find(is_it).unwrap()
}

fn queued_texts(state: &Value) -> Vec<String> {
    let queued = state["queuedMessages"].as_array().into_iter().flatten();
    queued.map(|message| message["message"]["text"].as_str().unwrap().to_owned()).collect()
}

/// Types and pastes at one prompt, looks that nothing was decided and nothing lost, then decides by two keys.
fn try_kind(host: &Host, size: ScreenSize, kind: &str, waits: &str, digit: char) {
    let mut ann = chat(host, size);
    let message = format!("ask {kind} {}", size.columns);
    ann.type_line(&message);
    ann.sees(HINT);
    let page: String = (1..=30).map(|n| format!("{n} of a page\n")).collect();
    let mut typed: Vec<String> = SENTENCES.map(str::to_owned).to_vec();
    for sentence in SENTENCES {
        ann.type_line(sentence);
        ann.sees(&format!("queued: {sentence}"));
    }
    ann.paste(&page);
    ann.sees("[pasted 30 lines]");
    ann.press(ENTER);
    ann.sees("… 1 more");
    typed.push(page);
    ann.paste("1\n");
    ann.press(ENTER);
    ann.sees("… 2 more");
    typed.push("1\n".to_owned());
    let screen = ann.sees(HINT);
    assert!(!screen.contains('❯'), "{kind}: {screen}");
    let state = host.state(&chat_with(host, &message));
    assert_eq!(queued_texts(&state), typed, "{kind} at {size:?}");
    let turn = state["activeTurn"].to_string();
    assert!(turn.contains(waits), "{kind} at {size:?}: {turn}");
    assert!(!turn.contains("\"response\":\"") && !turn.contains("told"), "{kind}: {turn}");
    ann.decide(digit);
    ann.prints("told");
}

#[test]
fn what_is_typed_or_pasted_at_a_prompt_decides_nothing_and_is_not_lost() {
    let host = host_of_kinds();
    for size in SIZES {
        for (kind, (_, waits, digit)) in kinds() {
            try_kind(&host, size, kind, waits, digit);
        }
    }
}

#[test]
fn a_digit_or_an_arrow_chooses_and_enter_confirms() {
    for size in SIZES {
        let host = Host::start();
        let mut ann = chat(&host, size);
        ann.type_line("tool");
        ann.sees("1 Approve\n  2 Deny\n  3 Deny and say why\n");
        for key in ["y", "n", "a", "d", "e"] {
            ann.press(key);
            ann.sees(&format!("\n› {key}"));
            ann.press(BACKSPACE);
            ann.sees(HINT);
        }
        ann.press("1");
        ann.sees("❯ 1 Approve");
        ann.press(BACKSPACE);
        ann.wait_until(|screen| !screen.contains('❯'));
        ann.press("1");
        ann.sees("❯ 1 Approve");
        ann.press("x");
        ann.wait_until(|screen| screen.ends_with("\n› 1x") && !screen.contains('❯'));
        ann.press(BACKSPACE);
        ann.press(BACKSPACE);
        ann.press(DOWN);
        ann.press(DOWN);
        ann.sees("❯ 2 Deny");
        ann.press(ESCAPE);
        ann.wait_until(|screen| !screen.contains('❯'));
        ann.press(UP);
        ann.press(UP);
        ann.sees("Enter confirms: Deny");
        ann.press(ENTER);
        ann.sees("⊘ List files: denied");
        ann.wait_until(|screen| !screen.contains(HINT));
    }
}

#[test]
fn denying_can_say_why_and_a_look_back_loses_nothing() {
    let host = Host::start();
    for size in SIZES {
        let mut ann = chat(&host, size);
        ann.type_line("tool");
        ann.sees("3 Deny and say why");
        ann.press("half a message");
        ann.sees("Tab puts it");
        ann.press(TAB);
        ann.sees("Your message is put");
        ann.decide('3');
        ann.sees("why ›");
        ann.press("1 look");
        ann.sees("why › 1 look");
        ann.press(ESCAPE);
        ann.sees("3 Deny and say why");
        ann.decide('3');
        ann.sees("why › 1 look");
        ann.press(" at the README");
        ann.press(ENTER);
        ann.sees("instead: 1 look at the README");
        ann.sees("› half a message");
    }
}

#[test]
fn an_edited_input_is_shown_before_it_is_approved() {
    let host = Host::start();
    let editor = host.data.path().join("editor.sh");
    std::fs::write(&editor, "sed -i s/poem.txt/ode.txt/ \"$1\"\n").unwrap();
    for size in SIZES {
        let mut command = greenroom(host.data.path());
        command.env("EDITOR", format!("sh {}", editor.display())).arg("chat");
        let mut ann = Terminal::start_sized("ann", command, size);
        ann.sees("\n›");
        ann.type_line("edit");
        ann.sees("4 Edit");
        ann.decide('4');
        let screen = ann.sees("with this input instead:\n  path: ode.txt");
        assert!(!screen.contains('❯'), "{screen}");
        ann.decide('1');
        ann.prints("{\"path\":\"ode.txt\"}");
    }
}

/// The keys of one write are read before anything is drawn between them.
#[test]
fn a_key_for_one_question_of_a_form_does_not_answer_the_next() {
    let yes_no = |id: &str, message: &str| json!({"id": id, "kind": "boolean", "message": message, "required": true});
    let text = json!({"id": "c", "kind": "text", "message": "Name?", "required": true});
    let questions = json!([text, yes_no("a", "Look?"), yes_no("b", "Delete?")]);
    let ask = json!({"ask": {"message": "Tell me", "questions": questions}});
    let host = Host::scripted(&json!([{"steps": [ask, {"say": ["told {{last}}"]}]}]));
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    ann.type_line("go");
    ann.sees("1 of 3");
    ann.decide('1');
    ann.sees("answer ›");
    ann.press("Ann");
    ann.sees("answer › Ann");
    ann.press("\r1");
    let screen = ann.sees("before answering");
    assert!(screen.contains("2 of 3") && !screen.contains('❯'), "{screen}");
    ann.choose('1');
    ann.press("\r1");
    let screen = ann.wait_until(|screen| screen.contains("3 of 3"));
    assert!(screen.contains("before answering") && !screen.contains('❯'), "{screen}");
    ann.decide('2');
    ann.prints("told");
}

#[test]
fn a_key_that_comes_with_the_edit_of_an_input_does_not_approve_it() {
    let host = Host::start();
    let editor = host.data.path().join("editor.sh");
    std::fs::write(&editor, "sed -i s/poem.txt/ode.txt/ \"$1\"\n").unwrap();
    let mut command = greenroom(host.data.path());
    command.env("EDITOR", format!("sh {}", editor.display())).arg("chat");
    let mut ann = Terminal::start_sized("ann", command, ScreenSize::new(80, 24));
    ann.sees("\n›");
    ann.type_line("edit");
    ann.sees("4 Edit");
    ann.choose('4');
    ann.press("\r1");
    let screen = ann.sees("with this input instead:\n  path: ode.txt");
    assert!(screen.contains("before answering") && !screen.contains('❯'), "{screen}");
    ann.decide('1');
    ann.prints("{\"path\":\"ode.txt\"}");
}

#[test]
fn questions_are_answered_in_fields_that_are_opened_for_them() {
    let host = Host::start();
    for size in SIZES {
        let mut ann = chat(&host, size);
        ann.type_line("ask");
        ann.sees("1 of 5: What shall I call you?");
        ann.decide('1');
        ann.sees("answer ›");
        ann.type_line("Ann");
        ann.sees("2 of 5");
        ann.decide('1');
        ann.sees("answer ›");
        ann.type_line("13");
        ann.sees("at most 12");
        ann.press(BACKSPACE);
        ann.press(ENTER);
        ann.sees("3 of 5");
        ann.decide('8');
        ann.sees("Use the default: 1");
        ann.decide('7');
        ann.sees("3 of 5");
        ann.decide('3');
        ann.sees("4 of 5");
        ann.decide('1');
        ann.sees("[x] A skull");
        ann.decide('3');
        ann.sees("[x] A lamp");
        ann.decide('7');
        ann.sees("5 of 5");
        ann.decide('2');
        ann.prints("Props: A skull, A lamp");
        ann.prints("Encore: no");
        ann.type_line("ask");
        ann.sees("1 of 5");
        ann.decide('9');
        ann.sees("declined");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_prompts_are_gone_through_one_after_another() {
    let server = ModelServer::start().await;
    let call = |name: &str| {
        let input = json!({"command": format!("touch {name}")});
        Call::new(name, "bash", &input)
    };
    server.answers([
        Answer::calls([call("one"), call("two"), call("three")]),
        Answer::streams(["All is said."]),
    ]);
    let model = format!("{}#echo", server.url());
    let host = Host::start_with(tempfile::tempdir().unwrap(), &["--model", &model]);
    let mut ann = chat(&host, ScreenSize::new(80, 45));
    ann.type_line("go");
    ann.sees("1 of 3 that wait for you");
    ann.decide('1');
    ann.sees("1 of 2 that wait for you");
    ann.decide('2');
    ann.wait_until(|screen| screen.contains("1 Approve") && !screen.contains("that wait for you"));
    ann.decide('1');
    ann.sees("All is said.");
    let made = |name: &str| host.data.path().join(name).exists();
    assert_eq!([made("one"), made("two"), made("three")], [true, false, true]);
}

#[test]
fn a_paste_that_the_terminal_does_not_mark_decides_nothing() {
    let host = Host::start();
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    ann.type_line("tool");
    ann.sees("1 Approve");
    ann.press("1\rand more\r");
    ann.sees("queued: 1\\nand more");
    let state = host.state(&chat_with(&host, "tool"));
    assert_eq!(queued_texts(&state), ["1\nand more"]);
    ann.sees(HINT);
}

#[test]
fn a_choice_and_enter_that_come_at_once_decide_nothing() {
    let host = Host::start();
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    ann.type_line("tool");
    ann.sees("1 Approve");
    for keys in ["1\r", "\x1b[B\r"] {
        ann.press(keys);
        let screen = ann.sees("Press Enter by itself");
        assert!(screen.contains("❯ 1 Approve"), "{screen}");
        let turn = host.state(&chat_with(&host, "tool"))["activeTurn"].to_string();
        assert!(turn.contains("pending-confirmation"), "{turn}");
        ann.press(ESCAPE);
        ann.wait_until(|screen| !screen.contains('❯'));
    }
    ann.press("2\r");
    ann.sees("Press Enter by itself");
    ann.press(ENTER);
    ann.sees("⊘ List files: denied");
}

#[test]
fn words_of_ones_own_choose_no_option() {
    let options = json!([{"id": "r", "label": "Red"}, {"id": "b", "label": "Blue"}]);
    let question = json!({"id": "q", "kind": "single-select", "message": "Which?", "required": true,
        "options": options, "allowFreeformInput": true});
    let many = json!({"id": "q", "kind": "multi-select", "message": "Which ones?", "required": true,
        "options": options, "allowFreeformInput": true});
    let ask = |question: Value| json!({"ask": {"message": "Tell me", "questions": [question]}});
    let host = Host::scripted(&json!([
        {"when": "^one", "steps": [ask(question), {"say": ["told {{last}}"]}]},
        {"when": "^many", "steps": [ask(many), {"say": ["told {{last}}"]}]},
    ]));
    // What the turn's part says of the answer, once it is answered.
    let answer = |host: &Host, message: &str| {
        let mut chats = chats(host).into_iter();
        let state = chats.find(|state| state.to_string().contains(message));
        let turns = state.unwrap()["turns"].clone();
        let part = &turns.as_array().unwrap().last().unwrap()["responseParts"][0];
        part["request"]["answers"]["q"]["value"].clone()
    };
    for words in ["2", "Blue", "b"] {
        let message = format!("one {words}");
        let mut ann = chat(&host, ScreenSize::new(80, 24));
        ann.type_line(&message);
        ann.sees("3 Other…");
        ann.decide('3');
        ann.sees("answer ›");
        ann.type_line(words);
        ann.sees("told");
        ann.wait_until(|screen| !screen.contains("Esc interrupts"));
        let expected = json!({"kind": "selected", "value": "", "freeformValues": [words]});
        assert_eq!(answer(&host, &message), expected);
    }
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    ann.type_line("many");
    ann.sees("3 Other…");
    ann.decide('3');
    ann.sees("answer ›");
    ann.type_line("1, or green");
    ann.sees("3 Other…: 1, or green");
    ann.decide('2');
    ann.sees("[x] Blue");
    ann.decide('7');
    ann.sees("told");
    let expected =
        json!({"kind": "selected-many", "value": ["b"], "freeformValues": ["1, or green"]});
    ann.wait_until(|screen| !screen.contains("Esc interrupts"));
    assert_eq!(answer(&host, "many"), expected);
}

#[test]
fn a_question_that_another_client_answers_leaves_what_was_typed() {
    let host = Host::start();
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    ann.type_line("tool");
    ann.sees("1 Approve");
    let session = chat_with(&host, "tool");
    let mut command = host.greenroom();
    command.args(["chat", "--session", &session]);
    let mut bob = Terminal::start("bob", command);
    bob.sees("1 Approve");
    ann.decide('3');
    ann.sees("why ›");
    ann.press("use the other one");
    ann.sees("why › use the other one");
    bob.decide('1');
    ann.sees("This question was answered elsewhere or withdrawn");
    ann.press("\x19"); // Ctrl-Y
    ann.sees("\n› use the other one");
}

#[test]
fn through_a_pipe_only_an_exact_digit_or_word_decides() {
    let host = Host::start();
    let refused = "tool\ny\nyes\nhmm, actually no\n1 or 2?\napprove\n 1\n";
    let output = host.run_with(&["chat"], refused);
    let err = text(&output.stderr);
    assert_eq!(err.matches("Not an answer").count(), 6, "{err}");
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("the agent is waiting"), "{err}");

    let output = host.run_with(
        &["chat"],
        "tool\nApprove\ntool\n2\ntool\n3\n1 is wrong\nedit\n4\n{\"path\":\"ode.txt\"}\n1\n",
    );
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert_eq!(out.matches("\"approved\":true").count(), 2, "{out}");
    assert_eq!(out.matches("\"approved\":false").count(), 2, "{out}");
    assert!(out.contains("1 is wrong") && out.contains("ode.txt"), "{out}");
    let shown = err.find("with this input instead:").unwrap();
    assert!(err[shown..].contains("1 Approve"), "{err}");
}
