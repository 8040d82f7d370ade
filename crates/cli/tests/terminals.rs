//! `!command`, `/terminals` and `greenroom terminals` in a real terminal, with a real host.

use serde_json::{Value, json};

use crate::running::{Host, text};
use crate::terminal::{ENTER, ScreenSize, Terminal};

const LEAVE: &str = "\x1d";

fn host() -> Host {
    let data = tempfile::tempdir().unwrap();
    let script = json!({"scenes": [{"steps": [{"say": ["noted"]}]}]});
    std::fs::write(data.path().join("script.json"), script.to_string()).unwrap();
    Host::start_with(data, &["--script", "script.json"])
}

fn chat(host: &Host) -> Terminal {
    let mut command = host.greenroom();
    command.arg("chat").env("PS1", "ready> ");
    let terminal = Terminal::start_sized("ann", command, ScreenSize::new(90, 24));
    terminal.sees("\n›");
    terminal
}

/// The terminals in the root's list.
fn listed(host: &Host) -> Vec<Value> {
    let root = host.state("ahp-root://");
    root["terminals"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_command_of_the_user_runs_and_its_output_is_shown() {
    let host = host();
    let mut ann = chat(&host);
    ann.type_line("!echo from the $((40 + 2))nd shell; tty | sed 's/[0-9]*$/N/'");
    ann.sees("from the 42nd shell");
    ann.sees("/dev/pts/N");
    ann.type_line("!exit 3");
    ann.sees("exit code 3");
    ann.type_line("and a message");
    let screen = ann.sees("noted");
    assert!(!screen.contains("approve") && !screen.contains("Approve"), "{screen}");
}

#[test]
fn a_terminal_is_opened_left_listed_and_ended_from_the_chat() {
    let host = host();
    let mut ann = chat(&host);
    ann.type_line("/terminals");
    ann.sees("/terminals new starts a shell");
    ann.type_line("/terminals new");
    ann.wait_for_status(|status| status.contains("Ctrl-] leaves"));
    ann.press("stty size; echo inside-$((20 + 3))");
    ann.press(ENTER);
    let screen = ann.sees("inside-23");
    assert!(screen.contains("23 90"), "{screen}");
    ann.press("printf '\\033]52;c;aGk=\\007\\033[?1049h\\033[Hfull screen'; sleep 1000");
    ann.press(ENTER);
    ann.sees("full screen");
    assert!(!ann.wrote(b"\x1b]52;"), "it cannot reach the clipboard");
    ann.press(LEAVE);
    let is_back = |screen: &str| screen.contains("it goes on") && screen.contains("\n›");
    ann.wait_until(is_back);
    ann.type_line("/terminals");
    ann.sees("/terminals NUMBER opens one");
    assert_eq!(listed(&host)[0]["lifecycle"]["status"], "running");
    ann.type_line("/terminals 1");
    ann.sees("full screen");
    ann.press(LEAVE);
    let is_back = |screen: &str| {
        screen.matches("it goes on").count() == 2 && screen.trim_end().ends_with('›')
    };
    ann.wait_until(is_back);
    ann.type_line("/terminals kill 7");
    // The prompt is back below it.
    ann.wait_until(|screen| {
        let behind = screen.split_once("there is no terminal 7");
        behind.is_some_and(|(_, behind)| behind.contains('›'))
    });
    ann.type_line("/terminals kill 1");
    ann.sees("Ended terminal 1");
    assert!(listed(&host).is_empty());
    // A number is that of the list, and there is another list now.
    ann.type_line("/terminals kill 1");
    ann.sees("terminal 1 is gone; /terminals lists the others");
}

#[test]
fn one_who_only_looks_sees_the_screen_as_it_is() {
    let host = host();
    let attach = |name, arguments: &[&str], size| {
        let mut command = host.greenroom();
        command.arg("terminals").args(arguments);
        command.env("PS1", "ready> ");
        Terminal::start_sized(name, command, size)
    };
    let mut ann = attach("ann", &["new"], ScreenSize::new(60, 12));
    ann.wait_for_status(|status| status.contains("Ctrl-] leaves"));
    ann.press("printf '\\033[2J\\033[H%070d\\033[9;50H%s' 0 ri''ght; head -1; echo go''ne");
    ann.press(ENTER);
    ann.sees("right");
    let mut bob = attach("bob", &["attach", "1"], ScreenSize::new(100, 30));
    let mut eve = attach("eve", &["attach", "1"], ScreenSize::new(40, 8));
    let looks = |status: &str| status.contains("only to look at");
    bob.wait_for_status(looks);
    let screen = bob.sees("right");
    let rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
    assert_eq!((rows[0].len(), rows[1].len()), (60, 10), "{screen}");
    assert_eq!(rows[8].find("right"), Some(49), "{screen}");
    // Who has less room sees what is left, around the cursor.
    eve.wait_for_status(looks);
    // What they type goes nowhere.
    bob.press("stolen");
    eve.press("stolen");
    ann.press(ENTER);
    for watcher in [&ann, &bob, &eve] {
        let screen = watcher.sees("gone");
        assert!(!screen.contains("stolen"), "{screen}");
    }
    // The one who types has another size: so has everybody's screen.
    bob.press(LEAVE);
    assert_eq!(bob.ends(), Some(0));
    eve.press(LEAVE);
    assert_eq!(eve.ends(), Some(0));
}

#[test]
fn the_last_screen_of_a_terminal_outlives_a_host_that_is_killed() {
    let host = host();
    let mut command = host.greenroom();
    command.args(["terminals", "new"]);
    let mut ann = Terminal::start_sized("ann", command, ScreenSize::new(60, 12));
    ann.wait_for_status(|status| status.contains("Ctrl-] leaves"));
    ann.press(
        "printf '\\033[?1049h\\033[2J\\033[3;5Hin %s\\033[9;1Hbelow' 'the middle'; sleep 1000",
    );
    ann.press(ENTER);
    ann.sees("in the middle");
    let uri = listed(&host)[0]["resource"].as_str().unwrap().to_owned();
    let shown = |state: &Value| {
        let parts = state["content"].as_array().unwrap().iter();
        let texts = parts.map(|part| part["value"].as_str().or(part["output"].as_str()).unwrap());
        let text: String = texts.collect();
        let size = |field: &str| {
            u16::try_from(state[field].as_i64().unwrap()).unwrap().try_into().unwrap()
        };
        let mut parser = vt100::Parser::new(size("rows"), size("cols"), 0);
        parser.process(text.as_bytes());
        parser.screen().contents()
    };
    let before = shown(&host.state(&uri));
    assert!(before.contains("in the middle"), "{before}");
    let data = host.kill();
    let host = Host::start_with(data, &["--script", "script.json"]);
    let state = host.state(&uri);
    assert_eq!(state["lifecycle"], json!({"status": "exited"}));
    let after = shown(&state);
    assert!(
        after.contains("in the middle") && after.contains("the host was restarted"),
        "{after}\n{}",
        state["content"]
    );
    let list = text(&host.run(&["terminals"]).stdout);
    assert!(list.contains("ended"), "{list}");
    // It is read in the size that it had.
    let mut command = host.greenroom();
    command.args(["terminals", "attach", "1"]);
    let mut bob = Terminal::start_sized("bob", command, ScreenSize::new(100, 30));
    bob.wait_for_status(|status| status.contains("has ended · q or Ctrl-] leaves"));
    let screen = bob.sees("the host was restarted");
    let row_of = |text: &str| screen.lines().position(|line| line.trim_end() == text);
    let middle = row_of("    in the middle");
    assert_eq!(middle.map(|row| row + 6), row_of("below"), "{screen}");
    assert!(middle.is_some(), "{screen}");
    bob.press("x");
    bob.press("q");
    assert_eq!(bob.ends(), Some(0));
    let killed = host.run(&["terminals", "kill", "1"]);
    assert!(killed.status.success(), "{}", text(&killed.stderr));
    assert!(listed(&host).is_empty());
}
