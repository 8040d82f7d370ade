//! `doctor`: settings, models and ports.

use std::net::TcpListener;

use serde_json::Value;

use crate::Home;

fn findings(home: &Home) -> (Option<i32>, Vec<Value>) {
    let checked = home.run(&["doctor", "--json"]);
    (checked.code, serde_json::from_str(&checked.out).unwrap())
}

fn finding<'a>(findings: &'a [Value], check: &str) -> (&'a str, &'a str) {
    let found = findings
        .iter()
        .find(|finding| finding["check"] == check)
        .unwrap_or_else(|| panic!("{check}: {findings:?}"));
    (found["level"].as_str().unwrap(), found["message"].as_str().unwrap())
}

#[test]
fn wrong_settings_and_silent_models_are_failures_with_a_way_out() {
    let home = Home::create();
    home.settings("lisen = 1\n");
    let (code, found) = findings(&home);
    assert_eq!(code, Some(1));
    let (level, message) = finding(&found, "settings");
    assert_eq!(level, "fail");
    assert!(message.contains("`listen`") && message.contains("config edit"), "{message}");

    // Nobody listens on a port that was just given back.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    home.settings(&format!(
        "[[models]]\nid = \"m\"\nbase_url = \"http://{address}/v1\"\nkey_env = \"NO_SUCH_KEY\"\n"
    ));
    let (code, found) = findings(&home);
    assert_eq!(code, Some(1));
    assert_eq!(finding(&found, "settings").0, "ok");
    let (level, message) = finding(&found, "model");
    assert_eq!(level, "fail");
    assert!(
        message.starts_with("m does not answer") && message.contains("greenroom models"),
        "{message}"
    );

    home.settings("");
    let (code, found) = findings(&home);
    assert_eq!(code, Some(0), "{found:?}");
    assert_eq!(finding(&found, "model").0, "warn");
}

#[test]
fn its_own_port_is_fine_and_a_strangers_is_not() {
    let home = Home::create();
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = stranger.local_addr().unwrap().port();
    home.settings(&format!("listen = \"127.0.0.1:{port}\"\n"));
    let (code, found) = findings(&home);
    assert_eq!(code, Some(1));
    let (level, message) = finding(&found, "port");
    assert!(level == "fail" && message.contains("another program"), "{message}");
    drop(stranger);
    assert!(finding(&findings(&home).1, "port").1.contains("is free"));

    home.start_background();
    let (code, found) = findings(&home);
    assert_eq!(code, Some(0), "{found:?}");
    let (level, message) = finding(&found, "port");
    assert!(level == "ok" && message.contains("taken by our host"), "{message}");
}
