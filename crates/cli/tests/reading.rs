//! What is read in a real terminal: Markdown, colours, diffs, folded output, reasoning; and what a change of the window's size does to it.

use crate::running;

use serde_json::json;
use testkit::{Answer, Call, Gate, ModelServer};

use crate::running::Host;
use crate::terminal::resize::Lines;
use crate::terminal::{SIZES, ScreenSize, Terminal};

const CTRL_O: &str = "\x0f";
const CTRL_T: &str = "\x14";

const ANSWER: &str = "\
# A title\n\n\
Some *slanted* and **heavy** words, `code`, and [a link](https://example.org/path).\n\n\
1. first\n2. second\n   - inner\n     - [x] done\n     - [ ] open\n3. third\n\n\
> quoted\n\n\
| Name | Size |\n|------|-----:|\n| one | 1 |\n| three | 333 |\n\n\
```rust\nfn main() {\n    println!(\"hello\"); // greets\n}\n```\n\n\
---\n\n\
The end.\n";

/// A line of code that no screen holds.
fn long_line() -> String {
    let words: Vec<String> = (0..60).map(|number| format!("word{number:03}")).collect();
    format!("let long = \"{}\";", words.join(" "))
}

fn chat_with(host: &Host, size: ScreenSize, variables: &[(&str, &str)]) -> Terminal {
    let mut command = host.greenroom();
    command.arg("chat");
    // Of the terminal in which the tests run.
    for name in [
        "TMUX",
        "STY",
        "XTERM_VERSION",
        "VTE_VERSION",
        "TERM_PROGRAM",
        "KITTY_WINDOW_ID",
        "WEZTERM_PANE",
        "WT_SESSION",
        "KONSOLE_VERSION",
        "GHOSTTY_RESOURCES_DIR",
        "PAGER",
        "LESS",
    ] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    let terminal = Terminal::start_sized("ann", command, size);
    terminal.sees("\n›");
    terminal
}

fn chat(host: &Host, size: ScreenSize) -> Terminal {
    chat_with(host, size, &[])
}

#[test]
fn markdown_is_rendered_at_every_size() {
    let chunks: Vec<String> = ANSWER.split_inclusive(' ').map(str::to_owned).collect();
    let host = Host::scripted(&json!([{"steps": [{"say": chunks}]}]));
    for size in SIZES {
        let mut ann = chat(&host, size);
        ann.type_line("go");
        ann.sees("The end.");
        let lines = ann.lines();
        for line in [
            "A title",
            "1. first",
            "2. second",
            "   ◦ inner",
            "     ☑ done",
            "     ☐ open",
            "3. third",
            "│ quoted",
            "Name  │ Size",
            "one   │    1",
            "three │  333",
            "fn main() {",
            "    println!(\"hello\"); // greets",
            "}",
            "The end.",
        ] {
            let found = lines.iter().filter(|found| *found == line).count();
            assert_eq!(found, 1, "{line:?} at {size:?}: {lines:#?}");
        }
        for sequence in [
            "\u{1b}[1;4mA title\u{1b}[0m",
            "\u{1b}[3mslanted\u{1b}[0m",
            "\u{1b}[1mheavy\u{1b}[0m",
            "\u{1b}[36mcode\u{1b}[0m",
            "\u{1b}]8;;https://example.org/path\u{1b}\\",
            "\u{1b}[35mfn\u{1b}[0m",
            "\u{1b}[32m\"hello\"\u{1b}[0m",
            "\u{1b}[2m// greets\u{1b}[0m",
        ] {
            assert!(ann.wrote(sequence.as_bytes()), "{sequence:?} at {size:?}");
        }
        // The target is there to be read, too.
        assert!(
            lines.concat().replace(' ', "").contains("(https://example.org/path)"),
            "{lines:#?}"
        );
    }
}

#[test]
fn without_colours_the_marks_say_what_colours_would() {
    let host = Host::scripted(&json!([{"steps": [{"say": [ANSWER]}]}]));
    let mut ann = chat_with(&host, ScreenSize::new(100, 40), &[("NO_COLOR", "1")]);
    ann.type_line("go");
    let screen = ann.sees("The end.");
    for text in ["# A title", "*slanted* and **heavy** words, `code`", "fn main() {"] {
        assert!(screen.contains(text), "{text:?}: {screen}");
    }
    for sequence in ["\u{1b}[1m", "\u{1b}[2m", "\u{1b}[35m", "\u{1b}[36m", "\u{1b}]8"] {
        assert!(!ann.wrote(sequence.as_bytes()), "{sequence:?}");
    }
}

#[test]
fn a_long_line_of_code_is_one_line_to_whoever_copies_it() {
    let long = long_line();
    let say = format!(
        "See:\n\n- in a list\n  ```rust\n  {long}\n  ```\n\nand\n\n```rust\n{long}\n\tindented\n```\n\nThat was it.\n"
    );
    let host = Host::scripted(&json!([{"steps": [{"say": [say]}]}]));
    for size in SIZES {
        let mut ann = chat(&host, size);
        ann.type_line("go");
        ann.sees("That was it.");
        let lines = ann.lines();
        let copied = lines.iter().filter(|line| **line == long).count();
        assert_eq!(copied, 2, "{size:?}: {lines:#?}");
        assert!(ann.wrote(b"\tindented"), "a tab stays a tab");
    }
}

/// How often each marker was printed.
fn assert_each_once(ann: &Terminal, markers: impl Iterator<Item = String>, when: &str) {
    let lines = ann.lines();
    for marker in markers {
        let found: usize = lines.iter().map(|line| line.matches(&marker).count()).sum();
        assert_eq!(found, 1, "{marker} {when}: {lines:#?}");
    }
}

fn markers(name: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{name}{number:03}"))
}

/// An answer of several kinds of blocks that stops within each of them.
fn answer_with_gates(gates: &[Gate]) -> (Answer, Vec<String>) {
    let words = |name: &str, count| markers(name, count).collect::<Vec<_>>().join(" ");
    let items: String = markers("item", 12).map(|item| format!("- {item} of a list\n")).collect();
    let code: String = markers("code", 12).map(|line| format!("let {line} = 1;\n")).collect();
    let pieces = [
        format!("{}\n\n{}", words("para", 40), words("open", 30)),
        format!(" {}\n\n{items}- last000 it", words("more", 10)),
        format!("em\n\n```rust\n{code}let half000"),
        " = 2;\n```\n\n| a | b |\n|---|---|\n| cell000 | cell001 |\n| cell002".to_owned(),
        " | x |\n\nThe end.\n".to_owned(),
    ];
    let mut answer = Answer::streams([pieces[0].as_str()]);
    for (gate, piece) in gates.iter().zip(&pieces[1..]) {
        answer = answer.waits(gate).then_streams([piece.as_str()]);
    }
    let counts = [
        ("para", 40),
        ("open", 30),
        ("more", 10),
        ("item", 12),
        ("last", 1),
        ("code", 12),
        ("half", 1),
        ("cell", 3),
    ];
    let all = counts.iter().flat_map(|(name, count)| markers(name, *count));
    (answer, all.collect())
}

async fn host_with(answers: Vec<Answer>) -> (ModelServer, Host) {
    let server = ModelServer::start().await;
    server.answers(answers);
    let model = format!("{}#echo", server.url());
    let start = move || Host::start_with(tempfile::tempdir().unwrap(), &["--model", &model]);
    let host = tokio::task::spawn_blocking(start).await.unwrap();
    (server, host)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_size_in_mid_answer_loses_and_doubles_nothing_where_lines_are_broken_anew() {
    let sizes = [(40, 24), (160, 45), (80, 24), (56, 30), (100, 24), (40, 40), (79, 24), (120, 30)];
    let gates: Vec<Gate> = (0..4).map(|_| Gate::new()).collect();
    let (answer, markers) = answer_with_gates(&gates);
    let (_server, host) = host_with(vec![answer]).await;
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    ann.type_line("go");
    for (at, gate) in gates.iter().enumerate() {
        gate.reached().await;
        ann.wait_until(|screen| {
            ["open029", "last000", "half000", "cell002"]
                .iter()
                .skip(at)
                .any(|seen| screen.contains(seen))
        });
        for (columns, rows) in &sizes[at * 2..at * 2 + 2] {
            ann.resize(ScreenSize::new(*columns, *rows), Lines::Break);
        }
        gate.open();
    }
    ann.sees("The end.");
    assert_each_once(&ann, markers.into_iter(), "after all changes");
    let prompts = ann.lines().iter().filter(|line| line.starts_with('›')).count();
    assert_eq!(prompts, 2, "the message, and where one types: {:#?}", ann.lines());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_size_in_mid_answer_loses_and_doubles_nothing_where_lines_are_cut() {
    let line = |name: &str| markers(name, 8).map(|item| format!("- {item}\n")).collect::<String>();
    let code: String = markers("code", 8).map(|line| format!("let {line} = 1;\n")).collect();
    let gates: Vec<Gate> = (0..2).map(|_| Gate::new()).collect();
    // What is at the right edge is gone with the window, so no marker is there.
    let wide = "and ".repeat(40);
    let answer = Answer::streams([format!("{}\n{wide}", line("item")).as_str()])
        .waits(&gates[0])
        .then_streams([format!("\n\n```rust\n{code}let half000").as_str()])
        .waits(&gates[1])
        .then_streams([" = 2;\n```\n\nThe end.\n"]);
    let (_server, host) = host_with(vec![answer]).await;
    let mut ann = chat_with(&host, ScreenSize::new(80, 24), &[("XTERM_VERSION", "XTerm(390)")]);
    ann.type_line("go");
    for (gate, sizes) in
        gates.iter().zip([[(40, 24), (120, 30), (60, 30)], [(160, 45), (40, 45), (80, 45)]])
    {
        gate.reached().await;
        ann.wait_until(|screen| screen.contains("and and") || screen.contains("half000"));
        for (columns, rows) in sizes {
            ann.resize(ScreenSize::new(columns, rows), Lines::Cut);
        }
        gate.open();
    }
    ann.sees("The end.");
    let all = markers("item", 8).chain(markers("code", 8)).chain(markers("half", 1));
    assert_each_once(&ann, all, "after all changes");
    let prompts = ann.lines().iter().filter(|line| line.starts_with('›')).count();
    assert_eq!(prompts, 2, "{:#?}", ann.lines());
}

/// What was printed, without how it looks.
fn plain_text(printed: &str) -> String {
    let mut pieces = printed.split("\x1b[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| {
        let end = piece.find(|c: char| c.is_ascii_alphabetic());
        text + end.map_or("", |end| &piece[end + 1..])
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_a_diff_before_it_is_approved_and_after() {
    let before: String = (1..=30).map(|line| format!("line {line}\n")).collect();
    let edit = json!({"path": "notes.txt", "edits": [{"old_text": "line 15\n", "new_text": "fifteen\nand more\n"}]});
    for size in SIZES {
        let read = Call::new("r", "read", &json!({"path": "notes.txt"}));
        let (_server, host) = host_with(vec![
            Answer::calls([read]),
            Answer::calls([Call::new("e", "edit", &edit)]),
            Answer::streams(["All done."]),
        ])
        .await;
        std::fs::write(host.data.path().join("notes.txt"), &before).unwrap();
        let mut ann = chat(&host, size);
        ann.type_line("go");
        // With its place in the file, once that was read.
        ann.prints("\u{1b}[2m16 \u{1b}[0m\u{1b}[32m+ and more");
        let screen = ann.sees("1 Approve");
        // Where it does not fit beside the choices it stands above them.
        for row in ["14   line 14", "15 - line 15", "15 + fifteen", "16 + and more", "17   line 16"]
        {
            let printed = |printed: &str| printed.contains(row);
            assert!(
                printed(&screen) || printed(&plain_text(&ann.printed())),
                "{row:?} at {size:?}: {screen}"
            );
        }
        assert!(!screen.contains("old_text"), "no JSON: {screen}");
        assert!(ann.wrote("\u{1b}[32m+ fifteen\u{1b}[0m".as_bytes()), "{size:?}");
        assert!(ann.wrote("\u{1b}[31m- line 15\u{1b}[0m".as_bytes()), "{size:?}");
        ann.decide('1');
        ann.sees("All done.");
        let lines = ann.lines();
        let done = lines.iter().position(|line| line.starts_with("✓ Edited notes.txt"));
        let after = &lines[done.unwrap()..];
        assert!(after.iter().any(|line| line.trim() == "15 + fifteen"), "{lines:#?}");
    }
}

#[test]
fn a_long_diff_is_folded_and_the_pager_has_all_of_it() {
    let content: String = (1..=150).map(|line| format!("line {line}\n")).collect();
    let tool = json!({"name": "write", "display": "Write", "title": "Write it", "confirm": "ask",
        "input": {"path": "a\u{1b}[2J.txt", "content": content}});
    let host = Host::scripted(&json!([{"steps": [{"tool": tool}, {"say": ["done"]}]}]));
    let pager = host.data.path().join("paged.txt");
    let command = format!("cat > {}", pager.display());
    let mut ann = chat_with(&host, ScreenSize::new(80, 24), &[("PAGER", &command)]);
    ann.type_line("go");
    ann.sees("Approve");
    // All of it stands above, where it can be scrolled to.
    assert_each_once(&ann, (41..=150).map(|line| format!("+ line {line}")), "printed whole");
    assert!(ann.wrote(b"more lines above (Ctrl-O)"));
    ann.press(CTRL_O);
    ann.wait_until(|_| std::fs::read_to_string(&pager).is_ok_and(|text| text.contains("line 150")));
    let paged = std::fs::read_to_string(&pager).unwrap();
    assert!(paged.contains("a\\x1b[2J.txt") && !paged.contains("\u{1b}[2J"), "{paged}");
    assert!(!ann.wrote(b"\x1b[2J"), "no name of a file clears the screen");
    ann.sees("Approve");
}

#[test]
fn the_end_of_long_output_is_shown_and_failures_are_red() {
    let output: String = (1..=40).map(|line| format!("row {line}\n")).collect();
    let tool = json!({"name": "bash", "display": "Run", "input": {"command": "make"},
        "result": {"success": false, "message": "Ran make (exit code 2)",
            "content": [{"type": "text", "text": output.clone() + "\u{1b}[31mbad\u{1b}[0m\n[exit code 2]"}],
            "error": {"message": "Ran make (exit code 2)"}}});
    let host = Host::scripted(&json!([{"steps": [{"tool": tool}, {"say": ["done"]}]}]));
    let mut ann = chat_with(&host, ScreenSize::new(80, 24), &[("PAGER", "cat")]);
    ann.type_line("go");
    let screen = ann.sees("done");
    assert!(screen.contains("✗ Ran make (exit code 2)"), "{screen}");
    assert!(screen.contains("lines above (Ctrl-O)") && screen.contains("  row 40"), "{screen}");
    assert!(screen.contains("\\x1b[31mbad") && screen.contains("[exit code 2]"), "{screen}");
    assert!(!screen.contains("row 20"), "{screen}");
    assert!(
        ann.wrote("\u{1b}[31m  row 40\u{1b}[0m".as_bytes())
            || ann.wrote("\u{1b}[31mrow 40\u{1b}[0m".as_bytes())
    );
    // Without a pager it is printed.
    ann.press(CTRL_O);
    ann.wait_until(|screen| screen.contains("row 38") && !screen.contains("lines above"));
    assert!(ann.lines().iter().any(|line| line.trim() == "row 20"), "{:#?}", ann.lines());
}

#[test]
fn reasoning_is_folded_and_can_be_opened() {
    let host = Host::scripted(&json!([
        {"steps": [{"think": ["First I look,\n", "then I leap.\u{1b}[2J"]}, {"say": ["Leapt."]}]},
    ]));
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    ann.type_line("go");
    ann.sees("Leapt.");
    let lines = ann.lines();
    assert!(lines.iter().any(|line| line.starts_with("∴ thought")), "{lines:#?}");
    assert!(!lines.iter().any(|line| line.contains("First I look")), "{lines:#?}");
    ann.press(CTRL_T);
    ann.sees("then I leap.\\x1b[2J");
    ann.type_line("again");
    ann.wait_until(|screen| screen.matches("Leapt.").count() == 2);
    let shown = ann.lines().iter().filter(|line| line.contains("First I look")).count();
    assert_eq!(shown, 2, "the folded one, and the one after it");
    assert!(!ann.wrote(b"\x1b[2J"));
}

#[test]
fn nothing_in_an_answer_controls_the_terminal() {
    let evil = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{202e}";
    let say = format!(
        "# T{evil}\n\n`{evil}` [l{evil}](https://e.x/{evil}) <https://e.x/\u{1b}[2J>\n\n```rust\nlet a = \"{evil}\";\n```\n\n| {evil} | b |\n|---|---|\n| c | {evil} |\n\n- {evil}\n\nThe end.\n"
    );
    let host = Host::scripted(&json!([{"steps": [{"say": [say]}]}]));
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    ann.type_line("go");
    ann.sees("The end.");
    for sequence in ["\u{1b}[2J", "\u{1b}]0;title", "title\u{7}", "\u{9b}", "\u{202e}"] {
        assert!(!ann.wrote(sequence.as_bytes()), "{sequence:?} was written");
    }
    let lines = ann.lines().join("\n");
    assert!(lines.matches("\\x1b[2J").count() >= 6, "{lines}");
}

#[test]
fn a_worker_is_one_live_line_and_a_turn_ends_with_what_it_used() {
    let worker =
        json!({"title": "Digger", "steps": [{"activity": "digging deep"}, {"wait_ms": 60_000}]});
    let usage = json!({"inputTokens": 12_400, "cacheReadTokens": 9_000, "outputTokens": 1_100});
    let host = Host::scripted(&json!([
        {"when": "^dig", "steps": [{"spawn": worker}]},
        {"steps": [{"say": ["Said."]}, {"usage": usage}]},
    ]));
    for size in SIZES {
        let mut ann = chat(&host, size);
        ann.type_line("talk");
        ann.sees("12.4k in (9.0k cached) · 1.1k out");
        ann.type_line("dig");
        let screen = ann.wait_until(|screen| screen.contains("◐ Digger · digging deep"));
        let live = screen.lines().filter(|line| line.contains("Digger")).count();
        assert_eq!(live, 1, "{screen}");
        assert!(size.columns < 80 || screen.contains("/open ahp-chat:/worker-"), "{screen}");
    }
}

/// A model that is silent is told of while one waits, and given up after the limit that the settings name.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_silent_model_is_told_how_long() {
    let server = ModelServer::start().await;
    let never = Gate::new();
    server.answers([Answer::streams([]).begins_after(&never)]);
    let data = tempfile::tempdir().unwrap();
    let directory = running::data_directory(data.path());
    std::fs::create_dir_all(&directory).unwrap();
    let url = server.url();
    let toml = format!("[[models]]\nid = \"echo\"\nbase_url = \"{url}\"\nstall_s = 15\n");
    std::fs::write(directory.join("greenroom.toml"), toml).unwrap();
    let start = move || Host::start_with(data, &[]);
    let host = tokio::task::spawn_blocking(start).await.unwrap();
    let mut ann = chat(&host, ScreenSize::new(120, 24));
    ann.type_line("go");
    ann.sees("waiting for the model, 10 s");
    let screen = ann.sees("did not begin to answer within 15 s");
    assert!(!screen.contains("waiting for the model"), "{screen}");
}

#[test]
fn a_plan_is_a_list_that_is_drawn_while_it_is_worked_on() {
    let todo = |read: &str, write: &str, done: u32| {
        let items = json!([{"text": "Read it\u{1b}[2J", "status": read}, {"text": "Write it", "status": write}]);
        json!({"tool": {"name": "todo", "display": "Plan", "input": {"items": items}, "result": {
            "message": format!("Plan: {done} of 2 done"), "structured": {"items": items},
            "content": [{"type": "text", "text": "- [ ] Read it\n- [ ] Write it\n"}]}}})
    };
    let ask = json!({"ask": {"message": "Go on?"}});
    let host = Host::scripted(&json!([{"steps": [
        todo("in_progress", "pending", 0), ask,
        todo("completed", "in_progress", 1), ask,
        todo("completed", "completed", 2), {"say": ["All done."]},
    ]}]));
    for size in SIZES {
        let mut ann = chat(&host, size);
        ann.type_line("go");
        let screen = ann.sees("1 Approve");
        assert!(screen.contains("[>] Read it\\x1b[2J\n  [ ] Write it"), "{screen}");
        ann.decide('1');
        let screen = ann.sees("[>] Write it");
        assert!(!screen.contains("[>] Read it"), "one list is drawn: {screen}");
        ann.sees("1 Approve");
        ann.decide('1');
        let screen = ann.sees("[x] Write it");
        assert!(screen.contains("✓ Plan: 2 of 2 done"), "{screen}");
        assert!(!ann.wrote(b"\x1b[2J"));
    }
    let piped = host.run_with(&["chat", "--plain"], "go\n1\n1\n");
    let err = String::from_utf8_lossy(&piped.stderr).into_owned();
    assert!(err.contains("✓ Plan: 1 of 2 done\n  [x] Read it\\x1b[2J\n  [>] Write it\n"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plan_of_a_model_stays_in_sight_while_it_works() {
    let items = json!([{"text": "Look around", "status": "completed"}, {"text": "Add a test", "status": "in_progress"}]);
    let (_server, host) = host_with(vec![
        Answer::calls([Call::new("t", "todo", &json!({"items": items}))]),
        Answer::calls([Call::new("b", "bash", &json!({"command": "true"}))]),
        Answer::streams(["All done."]),
    ])
    .await;
    let mut ann = chat(&host, ScreenSize::new(80, 24));
    ann.type_line("go");
    let screen = ann.sees("1 Approve");
    assert!(screen.contains("✓ Plan: 1 of 2 done · Add a test"), "{screen}");
    assert!(screen.contains("[x] Look around\n  [>] Add a test"), "{screen}");
    assert!(screen.contains("command: true"), "{screen}");
    assert!(!screen.contains("\"items\""), "no JSON: {screen}");
}
