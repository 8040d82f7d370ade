//! What is consented to is what is read: control characters are shown, in a real terminal and through a pipe, and none of
//! them reaches a terminal by any verb.

use std::process::Output;

use serde_json::{Value, json};
use testkit::{Answer, Call, ModelServer};

use crate::running::{Host, lines, text};
use crate::terminal::{ScreenSize, Terminal, chat};

/// A terminal that obeys it shows `echo hi` and nothing else.
const COMMAND: &str = "echo hi \u{1b}] x; touch PWNED";
const SHOWN: &str = "echo hi \\x1b] x; touch PWNED";
/// Clears the screen, reorders, and is a command of one byte in some terminals.
const TITLE: &str = "T\u{1b}[2Jt \u{202e}exe\u{9b}31m";

/// An agent whose call, question and words all try to control the terminal.
fn hostile_agent() -> Host {
    let tool = json!({
        "name": "bash", "display": "Run\u{1b}[8m", "title": "Run\u{9b}8m it", "confirm": "ask",
        "input": {"command": COMMAND},
        "options": [
            {"id": "a", "label": "Yes\u{1b}]0;x\u{7}", "kind": "approve"},
            {"id": "d", "label": "No\u{202e}", "kind": "deny"},
        ],
        "result": {"success": false, "message": "Ran\u{1b}c", "error": {"message": "bad\u{1b}[2J"}},
    });
    let long = json!({
        "name": "bash", "title": "Run all", "confirm": "ask",
        "input": {"command": "true\n".repeat(40) + "touch PWNED"},
    });
    let ask = json!({"message": "Who\u{1b}[2J?", "questions": [
        {"id": "q", "kind": "single-select", "message": "Which\u{9b}2J?", "options": [
            {"id": "o", "label": "One\u{1b}[8m", "description": "it\u{202e}"},
        ]},
    ]});
    Host::scripted(&json!([
        {"when": "^tool", "steps": [{"title": TITLE}, {"tool": tool}, {"say": ["said\u{1b}", "]0;x\u{7}."]}]},
        {"when": "^long", "steps": [{"tool": long}, {"say": ["done"]}]},
        {"when": "^ask", "steps": [{"ask": ask}, {"say": ["done"]}]},
    ]))
}

/// Sequences that only somebody else can have written: our own are none of these.
fn assert_obeyed_nothing(terminal: &Terminal) {
    for sequence in ["\u{1b}]", "\u{1b}[2J", "\u{1b}[8m", "\u{1b}c", "\u{9b}", "\u{202e}", "\u{7}"]
    {
        assert!(!terminal.wrote_besides_titles(sequence.as_bytes()), "{sequence:?} was written");
    }
}

#[test]
fn a_question_in_a_terminal_shows_every_character() {
    let host = hostile_agent();
    let mut ann = chat(&host);
    ann.type_line("tool");
    let screen = ann.sees("3 Deny and say why");
    assert!(screen.contains(SHOWN), "{screen}");
    assert!(screen.contains("Run\\u{9b}8m it"), "{screen}");
    assert!(screen.contains("1 Approve: Yes\\x1b]0;x\\x07"), "{screen}");
    assert!(screen.contains("2 Deny: No\\u{202e}"), "{screen}");
    ann.decide('2');
    ann.sees("said\\x1b]0;x\\x07.");
    ann.type_line("ask");
    let screen = ann.sees("One\\x1b[8m: it\\u{202e}");
    assert!(screen.contains("Which\\u{9b}2J?"), "{screen}");
    assert_obeyed_nothing(&ann);
}

#[test]
fn a_question_that_does_not_fit_can_be_read_whole_above() {
    let host = hostile_agent();
    let mut ann = chat(&host);
    ann.type_line("long");
    let screen = ann.sees("more lines");
    assert!(screen.contains("1 Approve"), "{screen}");
    assert!(ann.wrote(b"    touch PWNED"), "{screen}");
}

/// Sizes of screens, the smallest that people have included.
const SCREENS: [ScreenSize; 4] = [
    ScreenSize::new(80, 24),
    ScreenSize::new(40, 10),
    ScreenSize::new(200, 50),
    ScreenSize::new(72, 24),
];

fn chat_sized(host: &Host, size: ScreenSize) -> Terminal {
    let mut command = host.greenroom();
    command.arg("chat").env("PAGER", "cat");
    let terminal = Terminal::start_sized("ann", command, size);
    terminal.sees("\n›");
    terminal
}

/// An agent that stores contents and then asks for one call about them.
fn agent_with(contents: &[&str], tool: &Value) -> Host {
    let mut steps: Vec<Value> = contents
        .iter()
        .map(|text| json!({"content_ref": {"text": text, "type": "text/plain"}}))
        .collect();
    steps.push(json!({"tool": tool}));
    steps.push(json!({"say": ["done"]}));
    Host::scripted(&json!([{"steps": steps}]))
}

/// The side of an edit that has a content.
fn side(path: &str, content: &str) -> Value {
    use std::fmt::Write as _;
    let digest = <sha2::Sha256 as sha2::Digest>::digest(content);
    let hex = digest.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    let uri = format!("ahp-content:/sha256/{hex}");
    json!({"uri": path, "content": {"uri": uri, "sizeHint": content.len(), "contentType": "text/plain"}})
}

/// Everything that is asked about is on the screen, or the screen says that there is more and that was printed above it.
fn assert_can_be_seen(ann: &Terminal, wanted: &[&str], size: ScreenSize) {
    let screen = ann.sees("Enter confirms");
    let is_on_screen = wanted.iter().all(|text| screen.contains(text));
    if is_on_screen {
        return;
    }
    assert!(screen.contains("(Ctrl-O)"), "nothing says that there is more at {size:?}: {screen}");
    for text in wanted {
        ann.prints(text);
    }
}

#[test]
fn what_is_decided_on_stands_above_the_choices_whatever_else_waits() {
    let tool = |command: &str| {
        json!({"tool": {"name": "bash", "display": "Run", "title": command,
        "confirm": "ask", "input": {"command": command}}})
    };
    // A text that looks like a call that is asked about.
    let fake = "? Run ls\n  command: ls\n".repeat(30);
    let script = json!([{"steps": [{"say": [fake]}, tool("rm -rf precious"), {"say": ["done"]}]}]);
    for size in SCREENS {
        let host = Host::scripted(&script);
        let ann = chat_sized(&host, size);
        let mut ann = ann;
        ann.type_line("go");
        let screen = ann.sees("1 Approve");
        let (subject, _) = screen.split_once("1 Approve").unwrap();
        let last = subject.lines().rfind(|line| !line.trim().is_empty()).unwrap();
        let is_it = last.contains("command: rm -rf precious") || last.contains("(Ctrl-O)");
        assert!(is_it, "{size:?}: {screen}");
        assert_can_be_seen(&ann, &["command: rm -rf precious"], size);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_calls_that_wait_the_one_that_is_decided_on_stands_there() {
    let call = |name: &str| {
        let input = json!({"command": format!("touch {name}\n# 2\n# 3\n# 4\n# 5\n# 6\n# 7")});
        Call::new(name, "bash", &input)
    };
    for size in SCREENS {
        let server = ModelServer::start().await;
        server.answers([
            Answer::calls([call("one"), call("two"), call("three")]),
            Answer::streams(["So be it."]),
        ]);
        let model = format!("{}#echo", server.url());
        let host = Host::start_with(tempfile::tempdir().unwrap(), &["--model", &model]);
        let mut ann = chat_sized(&host, size);
        ann.type_line("go");
        for (name, left) in [("one", 3), ("two", 2), ("three", 1)] {
            let number = format!("1 of {left} that wait");
            let command = format!("command: touch {name}");
            let is_asked = |screen: &str| left == 1 || screen.contains(&number);
            let screen = ann.wait_until(|screen| {
                screen.contains("1 Approve") && is_asked(screen) && !screen.contains('❯')
            });
            let others = ["one", "two", "three"].into_iter().filter(|other| *other != name);
            let (above, _) = screen.split_once("1 Approve").unwrap();
            // The name of another may be there; its command never is where this one is decided on.
            let last = above.rfind("command: touch").map(|at| &above[at..]);
            for other in others {
                let is_other =
                    last.is_some_and(|last| last.starts_with(&format!("command: touch {other}")));
                assert!(!is_other || above.contains("(Ctrl-O)"), "{size:?}: {screen}");
            }
            ann.prints(&command);
            ann.decide('1');
        }
        ann.sees("So be it.");
    }
}

/// A text without what it was broken by: ends of rows, signs that a row goes on, how it looks.
fn joined(text: &str) -> String {
    let mut joined = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                let _ = chars.find(char::is_ascii_alphabetic);
            }
            '↳' => {}
            c if c.is_whitespace() => {}
            c => joined.push(c),
        }
    }
    joined
}

#[test]
fn a_long_or_wide_command_can_be_seen_whole_on_every_screen() {
    let women = "👩\u{200d}".repeat(300);
    let commands = [
        "true\n".repeat(40) + "touch PWNED",
        "x".repeat(3_000) + "; touch PWNED",
        "漢字".repeat(700) + "; touch PWNED",
        format!("echo {women}; touch PWNED"),
        "\t\t\t\t\t\t\t\t\t\t\ttouch PWNED".to_owned(),
        " ".repeat(2_000) + "touch PWNED",
        "a\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\u{309}; touch PWNED".to_owned(),
    ];
    for command in &commands {
        let tool = json!({"name": "bash", "title": "Run it", "confirm": "ask", "input": {"command": command}});
        let host = agent_with(&[], &tool);
        for size in SCREENS {
            let mut ann = chat_sized(&host, size);
            ann.type_line("go");
            let screen = ann.sees("1 Approve");
            let choices = screen.matches("1 Approve").count();
            assert_eq!(choices, 1, "{command:?} at {size:?}: {screen}");
            if !joined(&screen).contains("touchPWNED") {
                assert!(screen.contains("(Ctrl-O)"), "{command:?} at {size:?}: {screen}");
                let printed = joined(&ann.printed());
                assert!(printed.contains("touchPWNED"), "{command:?} at {size:?}: {screen}");
            }
        }
    }
}

#[test]
fn many_edits_are_counted_where_they_are_folded_and_all_can_be_had() {
    let contents: Vec<String> = (0..12).map(|n| format!("content {n}\n")).collect();
    let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
    let edits: Vec<Value> = (0..100)
        .map(|n| {
            // Most have what another has; one is changed twice, and one has a name of two lines.
            let path = match n {
                1 => "file:///w/0\n.txt".to_owned(),
                n => format!("file:///w/{}.txt", n.max(2) / 2 * 2),
            };
            json!({"before": side(&path, contents[n % 12]), "after": side(&path, contents[(n + 1) % 12])})
        })
        .collect();
    let tool = json!({"name": "patch", "display": "Patch", "confirm": "ask", "input": {"n": 100}, "edits": edits});
    let host = agent_with(&contents, &tool);
    for size in [ScreenSize::new(80, 24), ScreenSize::new(40, 10), ScreenSize::new(200, 50)] {
        let mut ann = chat_sized(&host, size);
        ann.type_line("go");
        ann.prints("100 changes:");
        ann.prints("/w/0\\n.txt");
        // All of them, the last one too.
        ann.prints("/w/98.txt");
        let screen = ann.sees("1 Approve");
        assert!(screen.contains("(Ctrl-O)"), "{size:?}: {screen}");
    }
}

#[test]
fn an_edit_that_cannot_be_shown_says_so_and_its_input_is_shown() {
    let missing = json!({"uri": "file:///w/a.txt", "content": {"uri": format!("ahp-content:/sha256/{}", "0".repeat(64))}});
    let binary = "\u{0}binary\n";
    let lines = "x\n".repeat(20_001);
    for (after, contents, says) in [
        (missing, vec![], "its content cannot be shown:"),
        (side("file:///w/a.txt", binary), vec![binary], "not a text: the change is not shown"),
        (side("file:///w/a.txt", &lines), vec![lines.as_str()], "1 line more"),
    ] {
        let tool = json!({"name": "write", "display": "Write", "title": "Write a.txt", "confirm": "ask",
            "input": {"path": "a.txt", "content": "evil words"}, "edits": [{"after": after}]});
        let host = agent_with(&contents, &tool);
        let mut ann = chat_sized(&host, ScreenSize::new(80, 24));
        ann.type_line("go");
        ann.sees("1 Approve");
        ann.prints("+ evil words");
        if says != "1 line more" {
            ann.prints(says);
        }
        // Through a pipe, too.
        let piped = host.run_with(&["chat", "--plain"], "go\n2\n");
        let err = text(&piped.stderr);
        assert!(err.contains(says) && err.contains("+ evil words"), "{err:.3000}");
    }
}

#[test]
fn the_edit_of_a_worker_is_a_diff_before_it_is_approved() {
    let (before, after) = ("one\ntwo\n", "one\nthree\n");
    let edits = json!([{"before": side("file:///w/a.txt", before), "after": side("file:///w/a.txt", after)}]);
    let tool = json!({"name": "patch", "display": "Patch", "confirm": "ask", "input": {"n": 1}, "edits": edits});
    let worker = json!({"title": "Mender", "steps": [{"tool": tool}]});
    let stored = |text: &str| json!({"content_ref": {"text": text, "type": "text/plain"}});
    let host = Host::scripted(&json!([
        {"steps": [stored(before), stored(after), {"spawn": worker}, {"say": ["done"]}]},
    ]));
    for size in [ScreenSize::new(80, 24), ScreenSize::new(40, 16)] {
        let mut ann = chat_sized(&host, size);
        ann.type_line("go");
        ann.sees("worker Mender");
        ann.sees("2 + three");
        ann.decide('2');
        ann.sees("done");
    }
    let mut command = host.greenroom();
    command.args(["send", "go"]);
    let sent = Terminal::start("bob", command);
    sent.sees("worker Mender");
    sent.sees("2 + three");
    let piped = host.run_with(&["chat", "--plain"], "go\n2\n");
    let err = text(&piped.stderr);
    assert!(err.contains("worker Mender\n") && err.contains("2 + three\n"), "{err}");
}

#[test]
fn an_edited_input_is_shown_whole_in_the_place_of_the_one_that_does_not_run() {
    let tool = json!({"name": "x", "display": "Run", "title": "Run it", "confirm": "ask", "editable": true,
        "input": {"command": "echo original"}});
    let host = agent_with(&[], &tool);
    let editor = host.data.path().join("editor.sh");
    let long = "# line\\n".repeat(60);
    let edited = format!("{{\"command\": \"{long}echo last words\"}}");
    std::fs::write(&editor, format!("cat > \"$1\" <<'END'\n{edited}\nEND\n")).unwrap();
    for size in SCREENS {
        let mut command = host.greenroom();
        command.arg("chat").env("EDITOR", format!("sh {}", editor.display()));
        let mut ann = Terminal::start_sized("ann", command, size);
        ann.sees("\n›");
        ann.type_line("go");
        ann.sees("1 Approve");
        ann.prints("echo original");
        ann.decide('4');
        ann.prints("with this input instead:");
        ann.prints("    echo last words");
        let screen = ann.wait_until(|screen| screen.contains("1 Approve") && !screen.contains('❯'));
        assert!(screen.contains("(Ctrl-O)"), "{size:?}: {screen}");
        let (above, _) = screen.split_once("1 Approve").unwrap();
        let live = above.rfind("? Run it").map_or("", |at| &above[at..]);
        assert!(!live.contains("echo original"), "it does not run: {screen}");
    }
}

#[test]
fn a_long_question_and_long_choices_can_be_read_whole() {
    let words = |name: &str| (1..=200).map(|n| format!("{name}{n} ")).collect::<String>();
    let ask = json!({"message": words("message"), "questions": [
        {"id": "q", "kind": "single-select", "message": words("question"), "options": [
            {"id": "o", "label": words("label"), "description": words("description")},
            {"id": "p", "label": "Two"},
        ]},
    ]});
    let host = Host::scripted(&json!([{"steps": [{"ask": ask}, {"say": ["done"]}]}]));
    for size in SCREENS {
        let mut ann = chat_sized(&host, size);
        ann.type_line("go");
        let screen = ann.sees("1 label1");
        assert!(screen.contains("(Ctrl-O)"), "{size:?}: {screen}");
        for name in ["message", "question", "label", "description"] {
            for n in [1, 100, 200] {
                ann.prints(&format!("{name}{n}"));
            }
        }
        ann.decide('2');
        ann.sees("done");
    }
}

#[test]
fn a_question_through_a_pipe_shows_every_character() {
    let host = hostile_agent();
    let answered = host.run_with(&["chat", "--plain"], "tool\n2\nlong\n1\n");
    let (out, err) = (text(&answered.stdout), text(&answered.stderr));
    assert!(err.contains(SHOWN), "{err}");
    assert!(err.contains("\n    touch PWNED\n"), "{err}");
    assert_eq!(out, "said\\x1b]0;x\\x07.\ndone\n");
    assert!(!has_unsafe(&out) && !has_unsafe(&err), "{out:?}{err:?}");
}

fn has_unsafe(text: &str) -> bool {
    let is_unsafe = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    text.contains(is_unsafe)
}

#[test]
fn no_verb_prints_a_control_character_and_json_still_says_it() {
    let host = hostile_agent();
    let answered = host.run_with(&["chat", "--plain"], "tool\n1\n");
    assert!(answered.status.success(), "{}", text(&answered.stderr));
    let listed = host.run(&["sessions", "--json"]);
    let sessions: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(sessions[0]["title"], TITLE);
    let session = sessions[0]["resource"].as_str().unwrap().to_owned();
    let exported = host.run(&["export", &session]);
    let rows = lines(&exported.stdout);
    assert_eq!(rows[0]["data"]["title"], TITLE);
    let parts = rows.iter().filter(|row| row["type"] == "part");
    let said = parts.map(|row| &row["data"]["data"]["content"]);
    assert!(said.into_iter().any(|content| content == "said\u{1b}]0;x\u{7}."));
    let sent = host.run(&["send", "--json", "--session", &session, "what\u{202e}"]);
    let inspected = host.run(&["inspect", &session]);
    let inspected_json = host.run(&["inspect", "--json", &session]);
    let table = host.run(&["sessions"]);
    assert!(text(&table.stdout).contains("T\\x1b[2Jt \\u{202e}exe\\u{9b}31m"));
    for Output { stdout, stderr, .. } in [listed, exported, sent, inspected, inspected_json, table]
    {
        let printed = text(&stdout) + &text(&stderr);
        assert!(!printed.is_empty() && !has_unsafe(&printed), "{printed:?}");
    }
}

/// A model that makes one call, and a chat in a terminal in which it does so.
fn chat_with_model(server: &ModelServer, call: Call) -> (Host, Terminal) {
    server.answers([Answer::calls([call]), Answer::streams(["So be it."])]);
    let model = format!("{}#echo", server.url());
    let host = Host::start_with(tempfile::tempdir().unwrap(), &["--model", &model]);
    let mut ann = chat(&host);
    ann.type_line("go");
    (host, ann)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_with_a_control_character_is_refused_and_nothing_runs() {
    let server = ModelServer::start().await;
    let call = Call::new("c", "bash", &json!({"command": COMMAND}));
    let (host, ann) = chat_with_model(&server, call);
    ann.sees("So be it.");
    assert!(!host.data.path().join("PWNED").exists());
    assert_obeyed_nothing(&ann);
    let request = server.requests().last().unwrap().json();
    let messages = request["messages"].as_array().unwrap();
    let answer = messages.last().unwrap()["content"].as_str().unwrap();
    assert!(answer.contains("`command` has the control character U+001B"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_a_tool_does_not_know_are_shown_and_ignored() {
    let server = ModelServer::start().await;
    let input = json!({"command": "touch made", "description": "says\u{1b}]0;x\u{7} hello"});
    let (host, mut ann) = chat_with_model(&server, Call::new("c", "bash", &input));
    let screen = ann.sees("1 Approve");
    assert!(screen.contains("command: touch made"), "{screen}");
    assert!(screen.contains("description: says\\x1b]0;x\\x07 hello"), "{screen}");
    ann.decide('1');
    ann.sees("So be it.");
    assert!(host.data.path().join("made").exists());
    assert_obeyed_nothing(&ann);
}
