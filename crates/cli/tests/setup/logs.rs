//! `logs`, and what a host writes there.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};

use crate::Home;

/// A model server that refuses everything, and repeats what it was sent.
fn refusing_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 16_384]);
            let body = "{\"error\": {\"message\": \"you said the secret words\"}}";
            let _ = write!(
                socket,
                "HTTP/1.1 401 Unauthorized\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    address
}

#[test]
fn a_model_that_refuses_is_logged_by_kind_and_status_alone() {
    let home = Home::create();
    let address = refusing_server();
    home.settings(&format!("[[models]]\nid = \"m1\"\nbase_url = \"http://{address}/v1\"\n"));
    home.start_background();
    let sent = home.run(&["send", "the secret words"]);
    assert_eq!(sent.code, Some(1), "{sent:?}");
    let log = home.run(&["logs"]).out;
    assert!(log.contains("started agent=\"native\" model=\"m1\""), "{log}");
    let refused = log.lines().find(|line| line.contains("status=401"));
    assert!(refused.is_some_and(|line| line.contains("turn{session=")), "{log}");
    assert!(log.contains("failed kind=\"modelUnauthorized\""), "{log}");
    assert!(!log.contains("secret"), "{log}");
}

fn token(home: &Home) -> String {
    fs::read_to_string(home.data().join("token")).unwrap().trim().to_owned()
}

#[test]
fn turns_are_logged_with_their_end_and_without_what_was_said() {
    let home = Home::create();
    home.start_background();
    let sent = home.run(&["send", "hello"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let session = sent.err.trim().strip_prefix("session ").unwrap().to_owned();
    let short = &session[session.len() - 8..];
    assert_eq!(home.run(&["send", "fail"]).code, Some(1));
    assert_eq!(home.run(&["stop"]).code, Some(0));

    let shown = home.run(&["logs"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let turn = format!("turn{{session=\"{short}\" chat=\"default\"}}: ");
    let line = |words: &str| {
        let found = shown.out.lines().find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("{words} is not in:\n{}", shown.out)).to_owned()
    };
    assert!(line("started agent=\"scripted\"").contains(&turn), "{}", shown.out);
    assert!(line(": ended").contains(&turn) && line(": ended").contains("seconds="));
    let failed = line(": failed");
    assert!(
        failed.contains("WARN") && failed.contains("kind=\"") && failed.contains("resumable=true"),
        "{failed}"
    );
    line("ready");
    line("a client connected");
    line("a client disconnected");
    line("stopping signal=\"SIGTERM\"");
    line("stopped");
    assert!(!shown.out.contains("hello") && !shown.out.contains("Hello"), "{}", shown.out);
    assert!(!shown.out.contains(&token(&home)));
    assert!(!shown.out.contains('\u{1b}'));

    let last = home.run(&["logs", "-n", "1"]);
    assert_eq!(last.out.lines().count(), 1);
    let path = home.run(&["logs", "--path"]);
    assert_eq!(path.out.trim(), home.data().join("host.log").to_str().unwrap());
}

#[test]
fn a_followed_log_goes_on_when_it_is_rotated() {
    let home = Home::create();
    home.start_background();
    let mut command = home.greenroom();
    let mut following = command.args(["logs", "-f", "-n", "1"]).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    // The test is the one that moves the file away: the host makes another.
    fs::rename(home.data().join("host.log"), home.data().join("host.log.1")).unwrap();
    assert_eq!(home.run(&["send", "hello"]).code, Some(0));
    let found = lines.any(|line| line.unwrap().contains("started agent="));
    assert!(found);
    following.kill().unwrap();
    following.wait().unwrap();
    let log = fs::read_to_string(home.data().join("host.log")).unwrap();
    assert!(log.contains("started agent="), "{log}");
}

#[test]
fn a_full_log_makes_room() {
    let home = Home::create();
    fs::create_dir_all(home.data()).unwrap();
    let log = home.data().join("host.log");
    fs::write(&log, "old line\n".repeat(600_000)).unwrap();
    home.start_background();
    assert!(fs::metadata(&log).unwrap().len() < 100_000);
    let older = fs::read(home.data().join("host.log.1")).unwrap();
    assert!(older.starts_with(b"old line\n"));
    let shown = home.run(&["logs", "-n", "1000"]);
    assert_eq!(shown.out.lines().count(), 1_000, "from both files");
    assert!(shown.out.contains("ready"), "{}", shown.out);
}

#[test]
fn where_there_is_no_log_that_is_said() {
    let home = Home::create();
    let none = home.run(&["logs"]);
    assert_eq!(none.code, Some(1), "{none:?}");
    assert!(none.err.contains("there is no log at"), "{none:?}");
}
