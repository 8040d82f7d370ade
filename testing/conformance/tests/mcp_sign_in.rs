//! Signing in to an MCP server: its state says what is wanted, a client gets a token by itself and brings it (MC-14).

use std::path::Path;
use std::process::{Child, Command};

use agents::mcp::{McpEntry, OAuthEntry};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use conformance::native::{NativeHarness, SESSION, calls_of, ends};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::{Answer, Call};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SERVER: &str = env!("CARGO_BIN_EXE_mcp-test-server");

/// A server that is killed with its test.
struct RunningServer(Child);

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn serve(directory: &Path) -> (RunningServer, String) {
    let file = directory.join("url");
    let mut command = Command::new(SERVER);
    command.arg("--http").arg(&file).arg("--oauth");
    let running = RunningServer(command.spawn().unwrap());
    conformance::acp::until(|| file.exists()).await;
    (running, std::fs::read_to_string(&file).unwrap())
}

fn published(session: &Value) -> Value {
    let customizations = session["customizations"].as_array();
    let mut servers = customizations.into_iter().flatten();
    let server = servers.find(|entry| entry["type"] == "mcpServer");
    server.cloned().unwrap_or_default()
}

/// A request of plain HTTP; the head of the answer, and its body.
async fn http(method: &str, url: &str, body: &str) -> (String, String) {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// What a client does with the state of a server: it finds the authorisation server, asks for a code and redeems it.
async fn sign_in(state: &Value) -> String {
    let issuer = state["resource"]["authorization_servers"][0].as_str().unwrap();
    let metadata = format!("{issuer}/.well-known/oauth-authorization-server");
    let (_, metadata) = http("GET", &metadata, "").await;
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let verifier = "a-verifier-that-nobody-else-knows-0123456789-abcdef";
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    let ask = format!(
        "{}?response_type=code&client_id=c&redirect_uri=http%3A%2F%2F127.0.0.1%2Fback&state=s1&code_challenge={challenge}&code_challenge_method=S256",
        metadata["authorization_endpoint"].as_str().unwrap()
    );
    let (head, _) = http("GET", &ask, "").await;
    let mut lines = head.lines();
    let back = lines.find_map(|line| line.strip_prefix("location: ")).unwrap();
    let (_, query) = back.split_once('?').unwrap();
    let code = query.split('&').find_map(|field| field.strip_prefix("code=")).unwrap();
    let redeem = |verifier: &str| {
        format!(
            "grant_type=authorization_code&code={code}&code_verifier={verifier}&client_id=c&redirect_uri=http%3A%2F%2F127.0.0.1%2Fback"
        )
    };
    let address = metadata["token_endpoint"].as_str().unwrap();
    let (_, answer) = http("POST", address, &redeem(verifier)).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["access_token"].as_str().unwrap().to_owned()
}

async fn authenticate(
    harness: &NativeHarness,
    resource: &Value,
    token: &str,
) -> Result<Value, String> {
    let params = json!({"channel": "ahp-root://", "resource": resource, "token": token});
    let answered = harness.ann.connection.request("authenticate", params).await;
    answered.map_err(|error| format!("{error:?}"))
}

/// The call that waits for a token.
async fn waiting_call(harness: &mut NativeHarness) -> Value {
    let waits = |call: &Value| call["status"] == "auth-required";
    let chat = harness
        .ann
        .until("a call wants a token", |chat| calls_of(&chat["activeTurn"]).iter().any(waits))
        .await;
    let mut calls = calls_of(&chat["activeTurn"]).into_iter();
    calls.find(waits).unwrap()
}

/// Whether a text is anywhere in the files of a host.
fn is_stored(directory: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.flatten().any(|entry| {
        if entry.path().is_dir() {
            is_stored(&entry.path(), text)
        } else {
            std::fs::read(entry.path()).is_ok_and(|bytes| {
                let mut windows = bytes.windows(text.len());
                windows.any(|window| window == text.as_bytes())
            })
        }
    })
}

#[tokio::test]
async fn a_server_that_wants_a_token_says_so_and_starts_when_a_client_brings_one() {
    let directory = tempfile::tempdir().unwrap();
    let (_running, url) = serve(directory.path()).await;
    let entry = McpEntry { name: "test".to_owned(), url: Some(url.clone()), ..McpEntry::default() };
    let settings = move |host: &mut host::Config| host.mcp = vec![entry.clone()];
    let config = json!({"approvals": "full-access"});
    let mut harness = NativeHarness::start_with_settings(config, |_| {}, settings).await;
    harness.talk("one", [ends()]).await;
    let is =
        |kind: &'static str| move |session: &Value| published(session)["state"]["kind"] == kind;
    let session = harness.ann.until_session(SESSION, is("authRequired")).await;
    let state = published(&session)["state"].clone();
    assert_eq!(state["reason"], "required", "{state:#}");
    assert_eq!(state["resource"]["resource"], json!(url));
    assert_eq!(state["requiredScopes"], json!(["read"]));

    let resource = &state["resource"]["resource"];
    let other = authenticate(&harness, &json!("https://other.example"), "x").await;
    assert!(other.unwrap_err().contains("-32602"));
    let token = sign_in(&state).await;
    authenticate(&harness, resource, &token).await.unwrap();
    harness.ann.until_session(SESSION, is("ready")).await;
    let echo = |text: &str| {
        let call = Call::new("call_mcp", "mcp__test__echo", &json!({"text": text}));
        [Answer::calls([call]), ends()]
    };
    harness.talk("two", echo("in")).await;
    assert_eq!(harness.last_results().last().unwrap(), "in");

    // One that is not taken any more is wanted anew, in the middle of a call, which waits for it and is made once more.
    let revoke = url.replace("/mcp", "/revoke");
    http("GET", &revoke, "").await;
    harness.model.answers(echo("out"));
    harness.ann.sends_message("three").await;
    let call = waiting_call(&mut harness).await;
    assert_eq!(call["auth"]["reason"], "expired", "{call:#}");
    assert_eq!(&call["auth"]["resource"]["resource"], resource);
    let is_needed = |session: &Value| {
        let is_listed = session["inputNeeded"][0]["kind"] == "toolAuthentication";
        is_listed && published(session)["state"]["kind"] == "authRequired"
    };
    let session = harness.ann.until_session(SESSION, is_needed).await;
    let state = published(&session)["state"].clone();
    authenticate(&harness, resource, "a-wrong-one").await.unwrap();
    let newer = sign_in(&state).await;
    authenticate(&harness, resource, &newer).await.unwrap();
    let turn = harness.ann.turn_over().await;
    assert_eq!(harness.last_results().last().unwrap(), "out");
    assert_eq!(calls_of(&turn)[0]["status"], "completed");
    harness.ann.until_session(SESSION, is("ready")).await;
    harness.talk("four", echo("again")).await;
    assert_eq!(harness.last_results().last().unwrap(), "again");

    // Somebody may give the call up instead: the model is told, and the turn goes on.
    http("GET", &revoke, "").await;
    harness.model.answers(echo("never"));
    harness.ann.sends_message("five").await;
    let call = waiting_call(&mut harness).await;
    let turn = harness.ann.sees()["activeTurn"]["id"].clone();
    let result = json!({"success": false, "pastTenseMessage": "Not signed in", "error": {"message": "not signed in"}});
    harness
        .ann
        .does(json!({
            "type": "chat/toolCallComplete", "turnId": turn, "toolCallId": call["toolCallId"], "result": result,
        }))
        .await;
    let turn = harness.ann.turn_over().await;
    assert_eq!(calls_of(&turn)[0]["success"], false);
    let told = harness.last_results().pop().unwrap();
    assert!(told.contains("given up"), "{told}");

    for token in [&token, &newer] {
        assert!(!harness.ann.sees_session(SESSION).to_string().contains(token.as_str()));
        assert!(!is_stored(&harness.data(), token), "no token is on the disk");
    }
}

// MC-15
#[tokio::test]
async fn a_registered_client_is_published_and_its_secret_only_where_it_is_shared() {
    let directory = tempfile::tempdir().unwrap();
    let (_running, url) = serve(directory.path()).await;
    let secret = directory.path().join("secret");
    std::fs::write(&secret, "hush\n").unwrap();
    for (file, published_client) in [
        (None, json!({"clientId": "me"})),
        (Some(secret), json!({"clientId": "me", "clientSecret": "hush"})),
    ] {
        let oauth = OAuthEntry {
            client_id: "me".to_owned(),
            share_secret: file.is_some(),
            // It is its own authorisation server.
            issuer: file.is_some().then(|| url.replace("/mcp", "")),
            client_secret_file: file,
        };
        let entry = McpEntry {
            name: "test".to_owned(),
            url: Some(url.clone()),
            oauth: Some(oauth),
            ..McpEntry::default()
        };
        let settings = move |host: &mut host::Config| host.mcp = vec![entry.clone()];
        let mut harness = NativeHarness::start_with_settings(json!({}), |_| {}, settings).await;
        harness.talk("one", [ends()]).await;
        let wants = |session: &Value| published(session)["state"]["kind"] == "authRequired";
        let session = harness.ann.until_session(SESSION, wants).await;
        assert_eq!(published(&session)["state"]["oauthClient"], published_client);
    }
}
