//! `greenroom export` from outside: beside a running host, and after it is gone.

use serde_json::Value;

use crate::running::{Host, greenroom, lines, text};

fn kinds(lines: &[Value]) -> Vec<String> {
    let kind = |line: &Value| match line["type"].as_str() {
        Some("message") => format!("message {}", line["data"]["role"]),
        Some("part") => format!("part {}", line["data"]["type"]),
        other => other.unwrap_or("").to_owned(),
    };
    lines.iter().map(|line| kind(line).replace('"', "")).collect()
}

#[test]
fn a_session_is_exported_beside_a_running_host_and_after_its_death() {
    let host = Host::start();
    let session = host.new_session("think");
    let exported = host.run(&["export", &session]);
    assert_eq!(exported.status.code(), Some(0), "{}", text(&exported.stderr));
    let rows = lines(&exported.stdout);
    assert_eq!(
        kinds(&rows),
        [
            "session",
            "message user",
            "part text",
            "message assistant",
            "part reasoning",
            "part markdown",
        ]
    );
    assert_eq!(rows[0]["data"]["resource"], session.as_str());
    assert_eq!(rows[2]["data"]["data"]["text"], "think");
    assert_eq!(rows[3]["data"]["state"], "complete");
    let answer = &rows[5]["data"]["data"]["content"];
    assert!(answer.as_str().unwrap().contains("42"), "{answer}");

    let chat = rows[1]["data"]["chat"].as_str().unwrap();
    assert_eq!(lines(&host.run(&["export", chat]).stdout), rows);

    let data = host.kill();
    let after = greenroom(data.path()).args(["export", &session]).output().unwrap();
    assert_eq!(lines(&after.stdout), rows);
}

#[test]
fn an_export_that_fails_is_reported() {
    let host = Host::start();
    let missing = host.run(&["export", "scripted:/none"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("holds no session or chat scripted:/none"));
    let elsewhere = host.run(&["export", "scripted:/none", "--data", "nowhere"]);
    assert_eq!(elsewhere.status.code(), Some(1));
    assert!(text(&elsewhere.stderr).contains("no SQLite journal in nowhere"));
}
