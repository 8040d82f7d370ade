//! Signing in at an authorisation server that others make, for an MCP server that others make: found, registered at, asked with a
//! verifier, redeemed, renewed, and used. `cargo run -p xtask -- interop oauth` installs them and runs this (MC-14).

mod browser;

use std::path::Path;
use std::process::Stdio;

use agents::mcp::{McpEntry, RenewalError, SignInWanted, TokenGrant, begin_sign_in};
use conformance::native::{NativeHarness, SESSION, calls_of, ends};
use serde_json::{Value, json};
use testkit::{Answer, Call};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use crate::interop::{installed, note};
use browser::Browser;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real_oauth/server.mjs");

/// Both servers; they go with this.
struct RealServers {
    issuer: String,
    resource: String,
    _child: Child,
    _input: ChildStdin,
}

impl RealServers {
    async fn start(place: &Path) -> Self {
        // The one that `xtask interop` installed, where that of the machine is too old.
        let node = place.join("../node/node_modules/node/bin/node");
        let node = if node.exists() { node } else { "node".into() };
        let mut child = Command::new(node)
            .arg(SERVER)
            .arg(place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("node starts");
        let input = child.stdin.take().expect("a pipe");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = lines.next_line().await.expect("it prints").expect("it says where it listens");
        let said: Value = serde_json::from_str(&line).expect("JSON");
        let text = |name: &str| said[name].as_str().expect("an address").to_owned();
        Self { issuer: text("issuer"), resource: text("resource"), _child: child, _input: input }
    }
}

fn state_of(session: &Value) -> Value {
    let customizations = session["customizations"].as_array().into_iter().flatten();
    let mut servers = customizations.filter(|entry| entry["type"] == "mcpServer");
    servers.next().map(|server| server["state"].clone()).unwrap_or_default()
}

fn is(kind: &'static str) -> impl Fn(&Value) -> bool {
    move |session: &Value| state_of(session)["kind"] == kind
}

/// What our own client makes of the state of a server.
fn wanted(state: &Value) -> SignInWanted {
    let texts = |value: &Value| -> Vec<String> {
        let texts = value.as_array().into_iter().flatten();
        texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    SignInWanted {
        resource: state["resource"]["resource"].as_str().unwrap().to_owned(),
        authorization_servers: texts(&state["resource"]["authorization_servers"]),
        scopes: texts(&state["requiredScopes"]),
        client: None,
        is_host_here: true,
    }
}

/// Signs in as a person would; the token, the client that was registered, and the forms that were filled in.
async fn sign_in(state: &Value) -> (TokenGrant, String, Vec<String>) {
    let page = begin_sign_in(&wanted(state)).await.expect("a page to visit");
    let url = page.url().to_owned();
    let query = |name: &str| {
        let (_, query) = url.split_once('?').expect("a query");
        let mut fields = query.split('&');
        let value = fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_else(|| panic!("no `{name}` in {url}")).to_owned()
    };
    assert_eq!(query("code_challenge_method"), "S256");
    let client = query("client_id");
    let mut browser = Browser::default();
    let visited = async {
        let back = query("redirect_uri").replace("%3A", ":").replace("%2F", "/");
        let back = browser.sign_in(&url, &back).await;
        assert!(back.contains("code=") && back.contains("iss="), "{back}");
        browser::request("GET", &back, "", "").await
    };
    let (grant, shown) = tokio::join!(page.finish(), visited);
    assert_eq!(shown.status, 200, "{}", shown.body);
    (grant.expect("a token"), client, browser.forms)
}

async fn authenticate(harness: &NativeHarness, resource: &str, grant: &TokenGrant) {
    let params = json!({
        "channel": "ahp-root://", "resource": resource, "token": grant.token, "expiresIn": grant.expires_in_s,
    });
    let answered = harness.ann.connection.request("authenticate", params).await;
    answered.expect("the host takes the token");
}

fn call(greeting: &str) -> [Answer; 2] {
    let input = json!({"greeting": greeting});
    let call = Call::new("call_real", "mcp__guarded__whoami", &input);
    [Answer::calls([call]), ends()]
}

#[tokio::test]
async fn real_oauth() {
    let Some(place) = installed("oauth") else { return };
    let servers = RealServers::start(&place).await;
    let entry = McpEntry {
        name: "guarded".to_owned(),
        url: Some(servers.resource.clone()),
        ..McpEntry::default()
    };
    let settings = move |host: &mut host::Config| host.mcp = vec![entry.clone()];
    let config = json!({"approvals": "full-access"});
    let mut harness = NativeHarness::start_with_settings(config, |_| {}, settings).await;
    harness.talk("one", [ends()]).await;
    let session = harness.ann.until_session(SESSION, is("authRequired")).await;
    let state = state_of(&session);
    assert_eq!(state["resource"]["authorization_servers"], json!([servers.issuer]));
    assert_eq!(state["requiredScopes"], json!(["tools"]), "{state:#}");

    let (first, client, forms) = sign_in(&state).await;
    assert_eq!(forms, ["login", "consent"]);
    authenticate(&harness, &servers.resource, &first).await;
    harness.ann.until_session(SESSION, is("ready")).await;
    harness.talk("two", call("hello")).await;
    let result = harness.last_results().pop().unwrap();
    assert_eq!(result, format!("hello, client {client} with tools"));

    // The MCP server takes it no more: a call that meets that waits, the token is renewed without a page, and the call goes on.
    let address = servers.resource.replace("/mcp", "/forget");
    let forgotten = browser::request("POST", &address, "", &format!("token={}", first.token)).await;
    assert_eq!(forgotten.status, 204, "{}", forgotten.body);
    harness.model.answers(call("again"));
    harness.ann.sends_message("three").await;
    let waits = |chat: &Value| {
        let calls = calls_of(&chat["activeTurn"]);
        calls.iter().any(|call| call["status"] == "auth-required")
    };
    harness.ann.until("a call wants a token", waits).await;
    let renewal = first.renewal.expect("tokens of this server can be renewed");
    let second = renewal.renew().await.expect("another token");
    assert_ne!(second.token, first.token);
    authenticate(&harness, &servers.resource, &second).await;
    harness.ann.turn_over().await;
    let result = harness.last_results().pop().unwrap();
    assert!(result.starts_with("again, client"), "{result}");

    // What it was renewed with counts once here: the server's own word ends it.
    let ended = renewal.renew().await.unwrap_err();
    assert!(matches!(ended, RenewalError::Ended(_)), "{ended}");
    for token in [&first.token, &second.token] {
        let seen = harness.ann.sees_session(SESSION).to_string();
        assert!(!seen.contains(token.as_str()), "no token is in a state");
    }
    let worked = [
        ("found by", "RFC 9728 and 8414"),
        ("client", "registered"),
        ("code with PKCE", "yes"),
        ("call with the token", "`whoami`"),
        ("renewed in a call", "yes"),
    ]
    .map(|(what, how)| (what, how.to_owned()));
    note("oauth", &Value::Null, &worked);
}
