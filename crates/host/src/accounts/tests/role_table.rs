//! What each role may ask, do and fetch, of everything that there is: over a real socket, with real tokens.

use std::collections::BTreeSet;

use wire::ActionKind;
use wire::action::ClientAction;
use wire::methods::Method;

use super::*;

const ROOT: &str = "ahp-root://";
const LEVEL: &str = "root/configChanged";

/// The least role that something takes.
type Needed = Role;

/// Everything that is named in the requests of one role, so that the roles do not meet.
struct RoleFixture {
    session: String,
    chat: Value,
    /// Sessions, chats and terminals that are to be made.
    new: String,
    directory: String,
    client_id: String,
}

impl RoleFixture {
    fn file(&self, name: &str) -> String {
        format!("file://{}/{name}", self.directory)
    }

    /// Every method with parameters that can be read, in an order in which each finds what it needs.
    fn requests(&self) -> Vec<(&'static str, Value, Needed)> {
        [self.reading(), self.files(), self.changing()].concat()
    }

    fn reading(&self) -> Vec<(&'static str, Value, Needed)> {
        let (chat, session) = (&self.chat, &self.session);
        vec![
            ("ping", Value::Null, Role::Viewer),
            ("subscribe", json!({"channel": session}), Role::Viewer),
            ("subscribe", json!({"channel": chat}), Role::Viewer),
            ("subscribe", json!({"channel": "ahp-otlp://host/logs/info"}), Role::Owner),
            ("subscribe", json!({"channel": "ahp-otlp://host/traces"}), Role::Owner),
            ("subscribe", json!({"channel": "ahp-otlp://host/metrics"}), Role::Owner),
            ("listSessions", json!({"channel": ROOT}), Role::Viewer),
            ("fetchTurns", json!({"channel": chat}), Role::Viewer),
            (
                "resolveSessionConfig",
                json!({"channel": ROOT, "provider": "scripted"}),
                Role::Viewer,
            ),
            (
                "completions",
                json!({"channel": chat, "kind": "userMessage", "text": "@a", "offset": 2}),
                Role::Member,
            ),
            (
                "sessionConfigCompletions",
                json!({"channel": ROOT, "provider": "scripted", "property": "branch"}),
                Role::Member,
            ),
        ]
    }

    fn files(&self) -> Vec<(&'static str, Value, Needed)> {
        let of = |uri: String| json!({"channel": ROOT, "uri": uri});
        let two = |from: &str, to: &str| json!({"channel": ROOT, "source": self.file(from), "destination": self.file(to)});
        let written =
            json!({"channel": ROOT, "uri": self.file("new"), "data": "eA==", "encoding": "base64"});
        vec![
            ("resourceRead", of(self.file("there")), Role::Viewer),
            ("resourceList", of(self.file("")), Role::Viewer),
            ("resourceResolve", of(self.file("there")), Role::Viewer),
            ("createResourceWatch", of(self.file("")), Role::Member),
            ("resourceWrite", written, Role::Member),
            ("resourceCopy", two("new", "copy"), Role::Member),
            ("resourceMove", two("copy", "moved"), Role::Member),
            ("resourceDelete", of(self.file("moved")), Role::Member),
            ("resourceMkdir", of(self.file("made")), Role::Member),
            ("resourceRequest", of(self.file("there")), Role::Member),
        ]
    }

    fn changing(&self) -> Vec<(&'static str, Value, Needed)> {
        let Self { new, chat, .. } = self;
        let session = format!("scripted:/01900000-0000-7000-8000-0000000000{new}");
        let terminal = format!("ahp-terminal:/{new}");
        let claim = json!({"kind": "client", "clientId": self.client_id});
        let message = json!({"text": "x", "origin": {"kind": "user"}});
        let changeset = format!("{}/changeset/session", self.session);
        let model = json!({"id": format!("m{new}"), "base_url": "http://127.0.0.1:9/v1", "model": "m", "api": "chat"});
        let member = Role::Member;
        vec![
            ("createSession", json!({"channel": session, "provider": "scripted"}), member),
            ("createChat", json!({"channel": session, "chat": format!("ahp-chat:/{new}")}), member),
            (
                "moveChat",
                json!({"channel": chat, "destination": {"kind": "session", "session": session}}),
                member,
            ),
            ("disposeChat", json!({"channel": format!("ahp-chat:/{new}")}), member),
            ("disposeSession", json!({"channel": session}), member),
            ("createTerminal", json!({"channel": terminal, "claim": claim}), member),
            ("disposeTerminal", json!({"channel": terminal}), member),
            (
                "authenticate",
                json!({"channel": ROOT, "resource": "https://example.com", "token": "x"}),
                member,
            ),
            (
                "invokeChangesetOperation",
                json!({"channel": changeset, "operationId": "discard"}),
                member,
            ),
            ("x-importSession", json!({"channel": ROOT, "session": "{}", "turns": "[]"}), member),
            ("x-compose", json!({"channel": chat, "message": message}), member),
            ("x-addModel", json!({"channel": ROOT, "model": model}), Role::Owner),
            ("x-reloadModels", json!({"channel": ROOT}), Role::Owner),
        ]
    }
}

impl Client {
    /// Sends an action and returns why it is refused, if it is: whatever is asked afterwards is answered after it.
    async fn dispatch(&mut self, channel: &Value, action: &Value) -> Option<String> {
        let params = json!({"channel": channel, "clientSeq": 1, "action": action});
        let message = json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params});
        let message = Message::text(message.to_string());
        self.socket.send(message).await.unwrap();
        self.last += 1;
        let id = self.last;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "listSessions", "params": {"channel": ROOT}});
        self.socket.send(Message::text(request.to_string())).await.unwrap();
        let mut refused = None;
        loop {
            let Message::Text(text) = self.socket.next().await.unwrap().unwrap() else {
                continue; // a ping
            };
            let told: Value = serde_json::from_str(&text).unwrap();
            if let Some(reason) = told["params"]["rejectionReason"].as_str() {
                refused = Some(reason.to_owned());
            }
            if told["id"] == id {
                return refused;
            }
        }
    }
}

/// What an action of a client is sent to.
fn channel_of(action: ClientAction, fixture: &RoleFixture) -> Value {
    let of_session = |name: &str| json!(format!("{}/{name}", fixture.session));
    match action {
        ClientAction::Root(_) => json!(ROOT),
        ClientAction::Session(_) => json!(fixture.session),
        ClientAction::Chat(_) => fixture.chat.clone(),
        ClientAction::Changeset(_) => of_session("changeset/session"),
        ClientAction::Annotations(_) => of_session("annotations"),
        ClientAction::Terminal(_) => json!("ahp-terminal:/none"),
        ClientAction::OtherChannel(_) => json!("ahp-automations:/none"),
        ClientAction::ResourceWatch(none) => match none {},
    }
}

async fn check_requests(client: &mut Client, role: Role, fixture: &RoleFixture) {
    for (method, params, needed) in fixture.requests() {
        let answer = client.ask(method, params.clone()).await;
        let (code, message) = (&answer["error"]["code"], &answer["error"]["message"]);
        let words = format!("{role:?} {method} {params}: {answer}");
        if role >= needed {
            assert_ne!(*code, -32009, "{words}")
        } else {
            assert_eq!(*code, -32009, "{words}");
            let message = message.as_str().unwrap();
            let expected = format!("takes the role {}", needed.name());
            assert!(message.contains(&expected), "{words}");
        }
        // What nobody can read would be refused to everybody, and say nothing of roles.
        let is_decoded = !message.as_str().unwrap_or_default().contains("missing field");
        assert!(is_decoded, "{words}");
    }
}

async fn check_actions(client: &mut Client, role: Role, fixture: &RoleFixture) {
    let mut tried = 0;
    for kind in ActionKind::all() {
        let Some(action) = kind.client_action() else {
            continue; // the host's own
        };
        tried += 1;
        let name = kind.name();
        let sent = match name {
            LEVEL => json!({"type": name, "config": {"logLevel": "info"}}),
            _ => json!({"type": name}),
        };
        let refused = client.dispatch(&channel_of(action, fixture), &sent).await;
        let by_role = refused.filter(|reason| reason.contains("this takes the role"));
        let needed = match name {
            LEVEL => Role::Owner,
            _ => Role::Member,
        };
        let words = format!("{role:?} {name}: {by_role:?}");
        assert_eq!(by_role.is_some(), role < needed, "{words}");
        if let Some(reason) = by_role {
            let has = format!("your token has the role {}", role.name());
            assert!(reason.contains(&has), "{words}");
        }
    }
    assert!(tried > 30, "{tried}");
}

/// Beside the protocol: what is refused is 403, with the reason.
async fn check_routes(node: &Served, role: Role, token: &AccountToken) {
    for (path, needed) in [
        ("/status", Role::Viewer),
        ("/spaces", Role::Viewer),
        ("/metrics", Role::Owner),
        ("/api/devices", Role::Owner),
        ("/api/prompt?chat=ahp-chat:/none", Role::Owner),
        ("/api/agents/log?id=none", Role::Owner),
    ] {
        let (status, body) = node.get(path, token).await;
        let is_refused = status.contains(" 403 ");
        assert_eq!(is_refused, role < needed, "{role:?} {path}: {status} {body}");
    }
    let status = node.put("/api/content", token).await;
    let is_refused = status.contains(" 403 ");
    assert_eq!(is_refused, role < Role::Member, "{role:?}: {status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_action_and_route_is_allowed_or_refused_by_role() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let node = start_node(&settings).await;
    let admin = AccountAdmin::connect(&settings).await.unwrap();
    let olga = issue(&admin, &new_token("default", "olga", Role::Owner)).await;
    let mut making = node.open(&olga).await.unwrap();
    let directory = node.directory.path().display().to_string();
    let mut covered = BTreeSet::new();
    for (role, number) in [(Role::Viewer, "11"), (Role::Member, "12"), (Role::Owner, "13")] {
        let session = format!("scripted:/01900000-0000-7000-8000-0000000001{number}");
        make_session(&mut making, &session).await;
        let made = making.ask("subscribe", json!({"channel": session})).await;
        let directory = format!("{directory}/{number}");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(format!("{directory}/there"), "x").unwrap();
        let token = issue(&admin, &new_token("default", role.name(), role)).await;
        let fixture = RoleFixture {
            chat: made["result"]["snapshot"]["state"]["defaultChat"].clone(),
            session,
            new: number.to_owned(),
            directory,
            client_id: token.id().to_owned(),
        };
        let mut client = node.open(&token).await.unwrap();
        check_requests(&mut client, role, &fixture).await;
        check_actions(&mut client, role, &fixture).await;
        check_routes(&node, role, &token).await;
        covered.extend(fixture.requests().into_iter().map(|(method, ..)| method));
    }
    // Those that begin a connection, and those that are not served.
    let others = [
        "initialize",
        "reconnect",
        "listAutomationTriggerDefinitions",
        "runAutomation",
        "fetchAutomationRuns",
    ];
    covered.extend(others);
    let all: BTreeSet<&str> = Method::ALL.iter().map(|method| method.name()).collect();
    assert_eq!(covered, all);
    drop(making);
    node.stop().await;
}

/// Telemetry is not subscribed to by the way either, and a client id belongs to a principal.
#[tokio::test(flavor = "multi_thread")]
async fn connections_begin_by_role_and_principal() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let node = start_node(&settings).await;
    let admin = AccountAdmin::connect(&settings).await.unwrap();
    let traces = "ahp-otlp://host/traces";
    let begin = |id: &str| json!({"channel": ROOT, "protocolVersions": ["1.0.0"], "clientId": id, "initialSubscriptions": [ROOT, traces]});
    let back = |id: &str| json!({"channel": ROOT, "clientId": id, "lastSeenServerSeq": 0, "subscriptions": [ROOT, traces]});
    for (role, is_offered) in [(Role::Viewer, false), (Role::Member, false), (Role::Owner, true)] {
        let token = issue(&admin, &new_token("default", role.name(), role)).await;
        let mut client = node.dial(&token).await;
        let begun = client.ask("initialize", begin(token.id())).await;
        assert_eq!(!begun["result"]["telemetry"].is_null(), is_offered, "{begun}");
        drop(client);
        let mut client = node.dial(&token).await;
        let resumed = client.ask("reconnect", back(token.id())).await;
        let missing = resumed["result"]["missing"].to_string();
        assert!(resumed["error"].is_null(), "{resumed}");
        assert_eq!(!missing.contains(traces), is_offered, "{resumed}");
    }

    // Another token of the same person takes the connection over, one of another person or of a lesser role does not.
    let ann = issue(&admin, &new_token("default", "ann", Role::Member)).await;
    let ann_again = issue(&admin, &new_token("default", "ann", Role::Member)).await;
    let ann_reads = issue(&admin, &new_token("default", "ann", Role::Viewer)).await;
    let olga = issue(&admin, &new_token("default", "olga", Role::Owner)).await;
    let mut first = node.dial(&ann).await;
    assert!(first.ask("initialize", begin("laptop")).await["error"].is_null());
    for other in [&olga, &ann_reads] {
        let mut other = node.dial(other).await;
        let refused = other.ask("initialize", begin("laptop")).await;
        assert_eq!(refused["error"]["code"], -32009, "{refused}");
        let refused = other.ask("reconnect", back("laptop")).await;
        assert_eq!(refused["error"]["code"], -32009, "{refused}");
    }
    let mut second = node.dial(&ann_again).await;
    let taken = second.ask("initialize", begin("laptop")).await;
    assert!(taken["error"].is_null(), "{taken}");
    assert_eq!(u16::from(first.closed().await.code), 1008);
    drop(second);
    node.stop().await;
}
