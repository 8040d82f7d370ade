//! Driving `greenroom chat` in a real terminal: lists to choose from, the popup, the status line, earlier turns, commands.

use crate::running;

use std::path::Path;

use serde_json::Value;
use testkit::{Answer, ModelServer};

use crate::running::{Host, lines};
use crate::terminal::{CTRL_D, DOWN, ENTER, ESCAPE, SIZES, ScreenSize, TAB, Terminal};

const BACK_TAB: &str = "\x1b[Z";
/// What is asked about before everything is permitted.
const FULL_ACCESS: &str = "Full access: Edits and runs without asking.";
const PAGE_UP: &str = "\x1b[5~";
const PAGE_DOWN: &str = "\x1b[6~";
const HOME: &str = "\x1b[H";
const CTRL_R: &str = "\x12";
const CTRL_T: &str = "\x14";
const CTRL_U: &str = "\x15";
const CTRL_X: &str = "\x18";
const FOCUS_LOST: &str = "\x1b[O";
const FOCUS_GAINED: &str = "\x1b[I";

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn chat_sized(host: &Host, size: ScreenSize, arguments: &[&str]) -> Terminal {
    let mut command = host.greenroom();
    command.arg("chat").args(arguments);
    let terminal = Terminal::start_sized("ann", command, size);
    terminal.sees("›");
    terminal
}

fn chat(host: &Host, arguments: &[&str]) -> Terminal {
    chat_sized(host, ScreenSize::new(80, 24), arguments)
}

/// A session with one turn, under a title.
fn session(host: &Host, title: &str) -> String {
    let session = host.new_session("hello");
    let mut ann = chat(host, &["--session", &session]);
    ann.type_line(&format!("/rename {title}"));
    ann.sees(&format!("Renamed to {title}"));
    ann.press(CTRL_D);
    assert_eq!(ann.ends(), Some(0));
    session
}

/// The row with the cursor's line of input, and what is below it.
fn below_prompt(screen: &str) -> &str {
    &screen[screen.rfind('›').expect("there is a prompt")..]
}

fn is_spinning(status: &str) -> bool {
    let first = status.chars().next();
    first.is_some_and(|first| ('⠀'..='⣿').contains(&first))
}

/// Nothing that is drawn again and again is broken by the terminal. What is printed once may be.
fn fits(screen: &str, columns: u16) {
    for line in below_prompt(screen).lines() {
        assert!(line.chars().count() <= usize::from(columns), "{line:?}");
    }
}

#[test]
fn sessions_are_found_by_typing_and_opened() {
    let host = Host::start();
    let first = session(&host, "Alpha parser");
    session(&host, "Beta lexer");
    for size in SIZES {
        let mut ann = chat_sized(&host, size, &[]);
        ann.type_line("/sessions");
        let screen = ann.wait_until(|screen| {
            below_prompt(screen).contains("Alpha parser")
                && below_prompt(screen).contains("Beta lexer")
        });
        fits(&screen, size.columns);
        assert!(screen.contains("sessions ›"), "{screen}");
        // The newest is first, and selected.
        assert!(below_prompt(&screen).contains("❯ Beta lexer"), "{screen}");
        ann.press("PARS");
        let screen = ann.wait_until(|screen| !below_prompt(screen).contains("Beta lexer"));
        assert!(below_prompt(&screen).contains("❯ Alpha parser"), "{screen}");
        assert!(screen.contains("idle"), "{screen}");
        ann.press(ENTER);
        ann.sees("for more.");
        ann.type_line("/status");
        ann.wait_until(|screen| screen.replace('\n', "").contains(&first));
        ann.press(CTRL_D);
        assert_eq!(ann.ends(), Some(0));
    }
}

#[test]
fn resume_begins_with_the_list_and_escape_stays_in_a_new_session() {
    let host = Host::start();
    session(&host, "Alpha parser");
    let mut ann = chat(&host, &["--resume"]);
    ann.sees("❯ Alpha parser");
    ann.press(ENTER);
    ann.sees("for more.");
    let mut bob = chat(&host, &["--resume"]);
    bob.sees("❯ Alpha parser");
    bob.press(ESCAPE);
    bob.wait_until(|screen| !screen.contains("Alpha parser"));
    bob.type_line("hello");
    bob.sees("for more.");
}

#[test]
fn sessions_are_renamed_put_away_and_deleted_in_the_list() {
    let host = Host::start();
    session(&host, "Alpha parser");
    session(&host, "Beta lexer");
    let mut ann = chat(&host, &[]);
    ann.type_line("/sessions");
    ann.sees("❯ Beta lexer");
    ann.press(CTRL_R);
    ann.sees("title › Beta lexer");
    ann.press(CTRL_U);
    ann.press("Gamma");
    ann.press(ENTER);
    ann.sees("❯ Gamma");
    ann.press(CTRL_T);
    // What is put away is last.
    ann.wait_until(|screen| {
        let list = below_prompt(screen);
        list.contains("archived") && list.find("Alpha") < list.find("Gamma")
    });
    ann.press("gamma");
    ann.sees("❯ Gamma");
    ann.press(CTRL_X);
    ann.sees("Delete \"Gamma\" for everyone?");
    // Letters decide nothing, and what is selected first deletes nothing.
    ann.press("yes delete");
    ann.press(ENTER);
    ann.sees("sessions ›");
    ann.sees("Gamma");
    ann.press("gamma");
    ann.wait_until(|screen| !below_prompt(screen).contains("Alpha"));
    ann.press(CTRL_X);
    ann.sees("for everyone?");
    ann.press(DOWN);
    ann.sees("❯ Delete it");
    ann.press(ENTER);
    ann.wait_until(|screen| screen.contains("❯ Alpha") && !below_prompt(screen).contains("Gamma"));
    let listed = host.run(&["sessions", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let titles: Vec<&str> =
        listed.as_array().unwrap().iter().filter_map(|session| session["title"].as_str()).collect();
    assert_eq!(titles, ["Alpha parser"]);
}

#[test]
fn the_open_session_is_renamed_archived_exported_and_deleted() {
    let host = Host::start();
    let mut ann = chat(&host, &[]);
    ann.type_line("hello");
    ann.sees("for more.");
    ann.type_line("/rename Alpha parser");
    ann.sees("Renamed to Alpha parser");
    ann.prints("\x1b]2;Alpha parser - greenroom\x07");
    ann.type_line("/export out.jsonl");
    ann.sees("Written to out.jsonl");
    let exported = std::fs::read(host.data.path().join("out.jsonl")).unwrap();
    assert_eq!(lines(&exported)[0]["data"]["title"], "Alpha parser");
    ann.type_line("/export out.jsonl");
    ann.sees("out.jsonl cannot be created");
    ann.type_line("/archive");
    ann.sees("Archived");
    ann.type_line("/archive");
    ann.sees("No longer archived");
    ann.type_line("/delete");
    ann.sees("Delete \"Alpha parser\" for everyone?");
    ann.press(DOWN);
    ann.sees("❯ Delete it");
    ann.press(ENTER);
    ann.sees("Deleted");
    // A new session is open.
    ann.type_line("hello");
    ann.wait_until(|screen| screen.matches("for more.").count() == 2);
    let listed = host.run(&["sessions", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    assert_ne!(listed[0]["title"], "Alpha parser");
}

#[test]
fn commands_are_proposed_while_they_are_typed() {
    let host = Host::start();
    let command = "---\ndescription: Reviews a file\nargument-hint: FILE\n---\nReview $1.";
    write(host.data.path(), ".greenroom/commands/review.md", command);
    for size in SIZES {
        let mut ann = chat_sized(&host, size, &[]);
        ann.press("/");
        let screen = ann.sees("❯ /help");
        fits(&screen, size.columns);
        // Eight lines, and the status line below them.
        let popup = below_prompt(&screen).lines().count() - 1;
        assert_eq!(popup, 8, "{screen}");
        assert!(screen.contains("1-7 of"), "{screen}");
        ann.press("revi");
        ann.sees("❯ /review");
        ann.press(TAB);
        ann.wait_until(|screen| screen.ends_with("› /review"));
        ann.press(CTRL_U);
        ann.press("/mod");
        ann.sees("❯ /model");
        ann.press(ESCAPE);
        ann.wait_until(|screen| screen.contains("› /mod") && !screen.contains("❯"));
        ann.press("e");
        ann.sees("› /mode");
        assert!(!ann.screen().contains("❯"), "{}", ann.screen());
        ann.press(CTRL_U);
        // Enter on a command that is whole runs it.
        ann.press("/stat");
        ann.sees("❯ /status");
        ann.press(ENTER);
        ann.sees("protocol");
    }
}

#[test]
fn files_are_proposed_and_go_along_with_the_message() {
    let host = Host::start();
    write(host.data.path(), "notes/alpha.md", "# Alpha\n");
    write(host.data.path(), "notes/beta.md", "# Beta\n");
    for size in SIZES {
        let mut ann = chat_sized(&host, size, &[]);
        ann.press("see @notes");
        ann.sees("❯ @file:notes");
        ann.press("/al");
        ann.sees("❯ @file:notes/alpha.md");
        ann.press(ENTER);
        ann.wait_until(|screen| {
            screen.contains("› see @file:notes/alpha.md") && !screen.contains("❯")
        });
        ann.press("now");
        ann.press(ENTER);
        ann.sees("I am the scripted agent");
        // A number sign is no file as long as nobody chooses one.
        ann.type_line("see #notes");
        ann.sees("› see #notes\n\nI am the scripted");
    }
}

#[test]
fn an_unknown_command_is_an_error_and_no_message() {
    let host = Host::start();
    for size in SIZES {
        let mut ann = chat_sized(&host, size, &[]);
        ann.press("/modle x");
        ann.press(ENTER);
        ann.sees("there is no command /modle");
        ann.sees("› /modle x");
        if size.columns >= 80 {
            ann.sees("did you mean /model");
        }
        ann.press(CTRL_U);
        ann.press("/new idea");
        ann.press(ENTER);
        ann.sees("/new takes no argument");
        ann.press(CTRL_U);
        // What the host knows is passed on, and a backslash sends anything.
        ann.type_line("/compact");
        ann.wait_until(|screen| screen.contains("› /compact"));
        ann.type_line("\\/modle x");
        ann.sees("I am the scripted agent");
        ann.press(CTRL_D);
        ann.ends();
    }
    let said = host.run_with(&["chat", "--plain"], "/modle x\n");
    assert_eq!(said.status.code(), Some(1));
    let said = running::text(&said.stderr);
    assert!(said.contains("there is no command /modle"), "{said}");
}

#[test]
fn the_status_line_fits_every_width_and_shows_where_one_is() {
    let host = Host::start();
    write(host.data.path(), ".git/HEAD", "ref: refs/heads/feature/driving\n");
    for size in SIZES {
        let mut ann = chat_sized(&host, size, &[]);
        let fits =
            |status: &str| assert!(status.chars().count() < usize::from(size.columns), "{status}");
        let name = host.data.path().file_name().unwrap().to_str().unwrap();
        ann.wait_for_status(|status| status.contains(name));
        if size.columns >= 80 {
            ann.wait_for_status(|status| status.contains("feature/drivi"));
        }
        fits(&ann.status());
        ann.type_line("hang");
        ann.wait_for_status(|status| status.contains("1s"));
        fits(&ann.status());
        // What moves is one sign.
        let frame = |status: &str| status.chars().next();
        let before = frame(&ann.status());
        ann.wait_for_status(|status| frame(status) != before);
        ann.press("\x03");
        ann.sees("cancelled");
        ann.wait_for_status(|status| !is_spinning(status));
    }
}

#[test]
fn nothing_is_drawn_while_nothing_changes() {
    let host = Host::start();
    let mut ann = chat(&host, &[]);
    ann.type_line("hello");
    ann.sees("for more.");
    ann.wait_until(|screen| !screen.contains("Esc interrupts"));
    ann.wait_for_status(|status| !is_spinning(status));
    ann.press("a");
    ann.wait_until(|screen| screen.ends_with("› a"));
    let before = ann.drawings();
    // Each of these is looked at, and changes nothing that is seen.
    for _ in 0..5 {
        ann.press(FOCUS_LOST);
        ann.press(FOCUS_GAINED);
    }
    ann.press("b");
    ann.wait_until(|screen| screen.ends_with("› ab"));
    assert_eq!(ann.drawings(), before + 1, "only the letter is drawn");
}

#[test]
fn sessions_that_wait_elsewhere_are_counted_and_called_out() {
    let host = Host::start();
    let mut ann = chat(&host, &[]);
    ann.type_line("hello");
    ann.sees("for more.");
    ann.wait_until(|screen| !screen.contains("Esc interrupts"));
    ann.press(FOCUS_LOST);
    let mut bob = chat(&host, &[]);
    bob.type_line("tool");
    ann.wait_for_status(|status| status.contains("1 session needs you"));
    ann.prints("\x07");
    let mut cid = chat_sized(&host, ScreenSize::new(40, 24), &[]);
    cid.wait_for_status(|status| status.contains("1 needs you"));
    cid.type_line("/sessions");
    let screen = cid.sees("❯ ");
    assert!(below_prompt(&screen).contains("needs you"), "{screen}");
    bob.press("\x03");
    bob.sees("cancelled");
    ann.wait_for_status(|status| !status.contains("need"));
}

#[test]
fn the_user_is_called_only_when_they_look_elsewhere() {
    let host = Host::start();
    let bell = |terminal: &Terminal| terminal.wrote(b"\x1b]9;greenroom: the agent is done\x07");
    let start = |arguments: &[&str]| {
        let mut command = host.greenroom();
        command.arg("chat").args(arguments).env("GREENROOM_NOTIFY", "desktop");
        let terminal = Terminal::start("ann", command);
        terminal.sees("›");
        terminal
    };
    let mut ann = start(&[]);
    assert!(ann.wrote(b"\x1b[?1004h"), "reports of the focus are on");
    ann.press(FOCUS_GAINED);
    ann.type_line("hello");
    ann.sees("for more.");
    ann.prints("\x1b]2;working: ");
    ann.wait_until(|screen| !screen.contains("Esc interrupts"));
    assert!(!bell(&ann), "looked at");
    ann.press(FOCUS_LOST);
    ann.type_line("hello");
    ann.prints("\x1b]9;greenroom: the agent is done\x07");
    ann.type_line("tool");
    ann.prints("\x1b]9;greenroom: the agent asks you something\x07");
    ann.prints("\x1b]2;needs you: ");
    ann.press(CTRL_D);
    ann.press("\x03\x03");
    ann.ends();
    assert!(ann.wrote(b"\x1b[?1004l") && ann.wrote(b"\x1b[23;2t"), "all is put back");
    let mut quiet = start(&["--no-notify"]);
    quiet.press(FOCUS_LOST);
    quiet.type_line("hello");
    quiet.sees("for more.");
    quiet.wait_until(|screen| !screen.contains("Esc interrupts"));
    quiet.press(CTRL_D);
    quiet.ends();
    assert!(!bell(&quiet));
}

#[test]
fn earlier_turns_are_read_and_loaded() {
    let host = Host::start();
    let session = host.new_session("hello");
    for n in 0..24 {
        let sent = host.run(&["send", "--session", &session, &format!("remember {n}.")]);
        assert!(sent.status.success(), "{sent:?}");
    }
    for size in SIZES {
        let mut ann = chat_sized(&host, size, &["--session", &session]);
        ann.sees("remember 23.");
        ann.press("x");
        ann.press(PAGE_UP);
        ann.press("\x7f");
        ann.wait_until(|screen| !screen.contains("› x"));
        assert!(!ann.wrote(b"\x1b[?1049h"), "a line that is typed keeps its keys");
        ann.press(PAGE_UP);
        ann.sees("q returns");
        ann.press(HOME);
        // Twenty turns were shown; the others are loaded, and what is looked at stays where it is.
        ann.wait_until(|screen| screen.contains("› remember 4.") && !screen.contains("lines 1-"));
        ann.press(HOME);
        let screen = ann.sees("› hello");
        fits(&screen, size.columns);
        ann.press(PAGE_DOWN);
        ann.wait_until(|screen| !screen.contains("› hello") && screen.contains("remember"));
        ann.press("q");
        let screen = ann
            .wait_until(|screen| screen.contains("remember 23.") && !screen.contains("q returns"));
        assert!(ann.wrote(b"\x1b[?1049l"), "{screen}");
        ann.type_line("/earlier");
        ann.sees("q returns");
        ann.press(ESCAPE);
        ann.wait_until(|screen| !screen.contains("q returns"));
    }
}

/// A host with a model and settings of it, and another model.
async fn host_with_models(server: &ModelServer) -> Host {
    let data = tempfile::tempdir().unwrap();
    let url = server.url();
    let config = format!(
        "[[models]]\nid = \"small\"\nname = \"Small Model\"\nbase_url = \"{url}\"\ncontext_tokens = 1000\n\
         prices = {{ input = 1000.0, output = 1000.0 }}\n\
         [[models]]\nid = \"large\"\nname = \"Large Model\"\nbase_url = \"{url}\"\n\
         [models.settings.reasoning_effort]\ntype = \"string\"\nenum = [\"low\", \"high\"]\ndefault = \"low\"\n"
    );
    write(data.path(), "models.toml", &config);
    let started =
        tokio::task::spawn_blocking(move || Host::start_with(data, &["--config", "models.toml"]));
    started.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_chosen_and_used_and_its_use_is_shown() {
    let server = ModelServer::start().await;
    let host = host_with_models(&server).await;
    for size in SIZES {
        server.answers([Answer::streams(["from small"]), Answer::streams(["from large"])]);
        let mut ann = chat_sized(&host, size, &[]);
        ann.wait_for_status(|status| status.contains("Small Model"));
        ann.type_line("hello");
        ann.sees("from small");
        // What was used, and what it cost, where there is room for it.
        ann.wait_for_status(|status| status.contains('%') && !is_spinning(status));
        if size.columns >= 80 {
            ann.wait_for_status(|status| status.contains("context") && status.contains('$'));
        }
        ann.type_line("/usage");
        let screen = ann.sees("This chat");
        fits(&screen, size.columns);
        for (row, what) in [("Context", " of 1.0k tokens"), ("Last turn", "$"), ("This chat", "$")]
        {
            let shown = screen.lines().find(|line| line.contains(row)).unwrap();
            assert!(shown.contains(what) || size.columns < 80, "{screen}");
        }
        ann.type_line("/model");
        let screen = ann.sees("Large Model");
        fits(&screen, size.columns);
        assert!(screen.contains("❯ Small Model"), "{screen}");
        ann.press("large");
        ann.sees("❯ Large Model");
        ann.press(ENTER);
        ann.sees("Reasoning effort of Large Model");
        ann.press(DOWN);
        ann.sees("❯ high");
        ann.press(ENTER);
        ann.wait_for_status(|status| status.contains("Large Model"));
        ann.type_line("hello");
        ann.sees("from large");
        let requests = server.requests();
        let last: Value = serde_json::from_slice(&requests.last().unwrap().body).unwrap();
        assert_eq!(last["model"], "large");
        assert_eq!(last["reasoning_effort"], "high");
        ann.press(CTRL_D);
        ann.ends();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_and_its_settings_are_completed_and_typed() {
    let server = ModelServer::start().await;
    let host = host_with_models(&server).await;
    for size in SIZES {
        server.answers([Answer::streams(["from large"])]);
        let mut ann = chat_sized(&host, size, &[]);
        ann.wait_for_status(|status| status.contains("Small Model"));
        ann.press("/model ");
        let screen =
            ann.wait_until(|screen| screen.contains("❯ small") && screen.contains("large"));
        fits(&screen, size.columns);
        ann.press("la");
        ann.sees("❯ large");
        ann.press(TAB);
        ann.wait_until(|screen| screen.ends_with("› /model large"));
        ann.press(" ");
        ann.sees("❯ reasoning_effort=low");
        ann.press("reasoning_effort=most");
        ann.press(ENTER);
        ann.sees("reasoning_effort is one of low, high");
        ann.sees("› /model large reasoning_effort=most");
        ann.press("\x15"); // Ctrl-U
        ann.press("/model large r");
        ann.sees("reasoning_effort=high");
        ann.press(DOWN);
        ann.sees("❯ reasoning_effort=high");
        ann.press(ENTER);
        ann.wait_until(|screen| screen.ends_with("› /model large reasoning_effort=high"));
        ann.press(ENTER);
        ann.sees("Later messages go to Large Model");
        ann.wait_for_status(|status| status.contains("Large Model"));
        if size.columns >= 80 {
            ann.wait_for_status(|status| status.contains("Large Model (high)"));
        }
        ann.type_line("hello");
        ann.sees("from large");
        let last: Value = serde_json::from_slice(&server.requests().last().unwrap().body).unwrap();
        assert_eq!(last["model"], "large");
        assert_eq!(last["reasoning_effort"], "high");
        // What was chosen stays chosen, and is what the list shows.
        ann.type_line("/model large");
        ann.sees("❯ high");
        ann.press(ESCAPE);
        ann.wait_until(|screen| !screen.contains("❯ high"));
        ann.press("/approvals pl");
        ann.sees("❯ plan");
        ann.press(TAB);
        ann.wait_until(|screen| screen.ends_with("› /approvals plan"));
        ann.press(ENTER);
        ann.wait_for_status(|status| status.contains("Plan"));
        ann.press(CTRL_D);
        ann.ends();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_shown_and_set() {
    let server = ModelServer::start().await;
    let host = host_with_models(&server).await;
    let mut ann = chat_sized(&host, SIZES[0], &[]);
    ann.wait_for_status(|status| status.contains("Ask"));
    ann.type_line("/budget");
    ann.sees("no limit of its own");
    ann.type_line("/budget much");
    ann.sees("such as 2.50");
    ann.type_line("/budget 2.5");
    ann.sees("may spend $2.50; at the limit");
    ann.type_line("/budget");
    ann.sees("may spend $2.50; /budget");
    ann.type_line("/budget off");
    ann.sees("of its own any more");
    ann.press(CTRL_D);
    ann.ends();
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_are_made_listed_resolved_and_sent() {
    let server = ModelServer::start().await;
    let host = host_with_models(&server).await;
    server.answers([Answer::streams(["I looked at it."])]);
    let mut ann = chat_sized(&host, SIZES[0], &[]);
    ann.wait_for_status(|status| status.contains("Ask"));
    ann.type_line("/annotations");
    ann.sees("No comments yet");
    ann.type_line("/annotations add src/main.rs:4-6 why is this so slow?");
    ann.sees(" 1 src/main.rs:4-6  why is this so slow?");
    ann.type_line("/annotations reply 1 it reads the file twice");
    ann.sees("   1.2 it reads the file twice");
    ann.type_line("/annotations edit 1.2 it reads the file thrice");
    ann.sees("   1.2 it reads the file thrice");
    ann.type_line("/annotations remove 1.3");
    ann.sees("there is no comment 1.3");
    ann.type_line("/annotations reply 1 forget it");
    ann.sees("   1.3 forget it");
    ann.type_line("/annotations remove 1.3");
    ann.wait_until(|screen| {
        let last = screen.rsplit("src/main.rs:4-6  why").next();
        last.is_some_and(|last| last.contains("1.2 it reads") && !last.contains("forget it"))
    });
    ann.type_line("/annotations resolve 9");
    ann.sees("there is no comment 9");
    ann.type_line("/annotations resolve 1");
    ann.sees(" 1 src/main.rs:4-6 (resolved)");
    ann.type_line("/annotations send");
    ann.sees("there is no open comment");
    ann.type_line("/annotations reopen 1");
    ann.wait_until(|screen| screen.trim_end().matches("src/main.rs:4-6  why").count() >= 3);
    ann.type_line("/annotations send please fix this");
    ann.sees("looked at it");
    let text = server.requests().last().unwrap().json().to_string();
    assert!(text.contains("src/main.rs") && text.contains("4-6"), "{text}");
    assert!(
        text.contains("why is this so slow?") && text.contains("reads the file thrice"),
        "{text}"
    );
    ann.press(CTRL_D);
    ann.ends();
}

#[tokio::test(flavor = "multi_thread")]
async fn permission_modes_are_cycled_chosen_and_asked_about() {
    let server = ModelServer::start().await;
    let host = host_with_models(&server).await;
    for size in SIZES {
        let mut ann = chat_sized(&host, size, &[]);
        ann.wait_for_status(|status| status.contains("Ask"));
        ann.press(BACK_TAB);
        ann.wait_for_status(|status| status.contains("Accept edits"));
        ann.press(BACK_TAB);
        ann.wait_for_status(|status| status.contains("Plan"));
        ann.press(BACK_TAB);
        // What gives much is asked about, and nothing is set before.
        let screen = ann.sees("❯ No");
        assert!(ann.status().contains("Plan"), "{screen}");
        fits(&screen, size.columns);
        // What is asked about is read whole, however narrow the screen is.
        let words: Vec<&str> = screen.split_whitespace().collect();
        assert!(words.join(" ").contains(FULL_ACCESS), "{screen}");
        ann.press(BACK_TAB);
        ann.wait_for_status(|status| status.contains("Ask"));
        ann.wait_until(|screen| !screen.contains("❯"));
        ann.type_line("/approvals");
        let screen = ann.sees("❯ Ask (now)");
        fits(&screen, size.columns);
        ann.press("full");
        ann.sees("❯ Full access");
        ann.press(ENTER);
        ann.sees("❯ No");
        // Both keys at once, as a script or a paste sends them, set nothing.
        ann.press("\x1b[B\r");
        ann.sees("Press Enter by itself");
        assert!(ann.status().contains("Ask"), "{}", ann.status());
        ann.press(ENTER);
        ann.wait_for_status(|status| status.contains("Full access"));
        ann.type_line("/approvals plan");
        ann.wait_for_status(|status| status.contains("Plan"));
        ann.type_line("/approvals nonsense");
        ann.sees("there is no mode nonsense");
        ann.press(CTRL_D);
        ann.ends();
    }
}
