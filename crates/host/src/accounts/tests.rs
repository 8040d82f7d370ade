//! Accounts in a real PostgreSQL, and a node that serves two spaces by their tokens.

mod limits;
mod role_table;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use kernel::Role;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::remove::TABLES;
use super::*;
use crate::journal::postgres::test_server::{TestServer, run_sql};
use crate::journal::{PostgresNode, PostgresSettings};
use crate::server::{ServeError, ServerReady, serve};
use crate::{Config, JournalChoice, SpaceEntry};

/// For whatever must happen: generous, for others load the machine.
const SOON: Duration = Duration::from_secs(60);

fn new_token(space: &str, principal: &str, role: Role) -> NewToken {
    NewToken { space: space.to_owned(), principal: principal.to_owned(), role, seconds: None }
}

async fn issue(admin: &AccountAdmin, new_token: &NewToken) -> AccountToken {
    admin.issue_token(new_token).await.unwrap().token
}

struct Served {
    address: String,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Result<(), ServeError>>,
    directory: tempfile::TempDir,
}

/// A node with the spaces `default` and `red`.
async fn start_node(settings: &PostgresSettings) -> Served {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::default_for(directory.path().join("data"));
    config.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    config.journal = JournalChoice::Postgres;
    config.postgres = Some(settings.url.clone());
    config.workspaces = vec![directory.path().to_owned()];
    config.spaces = vec![SpaceEntry {
        name: "red".to_owned(),
        data: directory.path().join("red"),
        workspaces: Vec::new(),
    }];
    config.limits.server.journal_patience_ms = 20_000;
    let (stop, stopped) = oneshot::channel::<()>();
    let (ready, is_ready) = oneshot::channel();
    let on_ready = move |info: ServerReady| ready.send(info.url).unwrap();
    let served = tokio::spawn(serve(config, on_ready, async {
        stopped.await.unwrap();
    }));
    let url = is_ready.await.unwrap();
    let address = url.trim_start_matches("ws://").trim_end_matches('/');
    Served { address: address.to_owned(), stop, served, directory }
}

impl Served {
    async fn open(&self, token: &AccountToken) -> Result<Client, Error> {
        let mut client = self.try_dial(token).await?;
        let params = json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"],
            "clientId": token.id(), "initialSubscriptions": ["ahp-root://"]});
        let answer = client.ask("initialize", params).await;
        assert!(answer["error"].is_null(), "{answer}");
        Ok(client)
    }

    /// A connection on which nothing was sent yet.
    async fn dial(&self, token: &AccountToken) -> Client {
        self.try_dial(token).await.unwrap()
    }

    async fn try_dial(&self, token: &AccountToken) -> Result<Client, Error> {
        let url = format!("ws://{}/?tkn={}", self.address, token.reveal());
        let (socket, _) = connect_async(url).await?;
        Ok(Client { socket, last: 0 })
    }

    /// The status with which an upgrade is refused.
    async fn refusal(&self, token: &AccountToken) -> u16 {
        match self.open(token).await {
            Err(Error::Http(answer)) => answer.status().as_u16(),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("the token is let in"),
        }
    }

    async fn get(&self, path: &str, token: &AccountToken) -> (String, String) {
        let mut socket = TcpStream::connect(&self.address).await.unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.address,
            token.reveal()
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    async fn put(&self, path: &str, token: &AccountToken) -> String {
        let mut socket = TcpStream::connect(&self.address).await.unwrap();
        let head = format!(
            "PUT {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx",
            self.address,
            token.reveal()
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer.lines().next().unwrap().to_owned()
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap().unwrap();
    }
}

struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    last: u64,
}

impl Client {
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let request = Message::text(request.to_string());
        self.socket.send(request).await.unwrap();
        loop {
            let Message::Text(text) = self.socket.next().await.unwrap().unwrap() else {
                continue; // a ping
            };
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == id {
                return answer;
            }
        }
    }

    /// Sends an action on the root and returns why it is refused.
    async fn dispatch_refused(&mut self, action: Value) -> String {
        let params = json!({"channel": "ahp-root://", "clientSeq": 7, "action": action});
        let message = json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params});
        self.socket.send(Message::text(message.to_string())).await.unwrap();
        loop {
            if let Message::Text(text) = self.socket.next().await.unwrap().unwrap() {
                let told: Value = serde_json::from_str(&text).unwrap();
                if let Some(reason) = told["params"]["rejectionReason"].as_str() {
                    return reason.to_owned();
                }
            }
        }
    }

    /// Waits until the host closes the connection.
    async fn closed(mut self) -> CloseFrame {
        let closed = async {
            loop {
                match self.socket.next().await {
                    Some(Ok(Message::Close(Some(frame)))) => return frame,
                    Some(Ok(_)) => {}
                    other => panic!("closed without words: {other:?}"),
                }
            }
        };
        timeout(SOON, closed).await.unwrap()
    }
}

fn names(answer: &Value) -> Vec<String> {
    let items = answer["result"]["items"].as_array().unwrap();
    let names = items.iter().map(|item| item["resource"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// A session with a turn, so that it is listed.
async fn make_session(client: &mut Client, session: &str) {
    let params = json!({"channel": session, "provider": "scripted"});
    let created = client.ask("createSession", params).await;
    assert!(created["error"].is_null(), "{created}");
    let draft =
        json!({"type": "chat/draftChanged", "draft": {"text": "x", "origin": {"kind": "user"}}});
    let subscribed = client.ask("subscribe", json!({"channel": session})).await;
    let chat = &subscribed["result"]["snapshot"]["state"]["defaultChat"];
    let params = json!({"channel": chat, "clientSeq": 1, "action": draft});
    let message = json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params});
    client.socket.send(Message::text(message.to_string())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_names_its_space_and_a_role_and_ends_when_it_is_revoked() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let node = start_node(&settings).await;
    let admin = AccountAdmin::connect(&settings).await.unwrap();
    let member = issue(&admin, &new_token("default", "ann", Role::Member)).await;
    let viewer = issue(&admin, &new_token("red", "ann", Role::Viewer)).await;
    let owner = issue(&admin, &new_token("red", "olga", Role::Owner)).await;

    // Each is served by its own space.
    let mut of_default = node.open(&member).await.unwrap();
    make_session(&mut of_default, "scripted:/01900000-0000-7000-8000-000000000001").await;
    let mut of_red = node.open(&owner).await.unwrap();
    make_session(&mut of_red, "scripted:/01900000-0000-7000-8000-000000000002").await;
    let mut watching = node.open(&viewer).await.unwrap();
    for (client, own) in [(&mut of_default, "1"), (&mut of_red, "2"), (&mut watching, "2")] {
        let listed = client.ask("listSessions", json!({"channel": "ahp-root://"})).await;
        let listed = names(&listed);
        assert!(listed.len() == 1 && listed[0].ends_with(own), "{listed:?}");
    }

    // What a role does not allow is refused, also beside the protocol.
    let new = json!({"channel": "scripted:/01900000-0000-7000-8000-000000000003", "provider": "scripted"});
    let refused = watching.ask("createSession", new).await;
    assert_eq!(refused["error"]["code"], -32009, "{refused}");
    let level = json!({"type": "root/configChanged", "config": {"logLevel": "info"}});
    let reason = watching.dispatch_refused(level.clone()).await;
    assert!(reason.contains("your token has the role viewer"), "{reason}");
    let reason = of_default.dispatch_refused(level).await;
    assert!(reason.contains("takes the role owner"), "{reason}");
    let (status, _) = node.get("/metrics", &viewer).await;
    assert!(status.contains("403"), "{status}");
    let (status, _) = node.get("/api/devices", &member).await;
    assert!(status.contains("403"), "{status}");

    let (status, body) = node.get("/spaces", &viewer).await;
    assert!(status.contains("200"), "{status}");
    let spaces: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        spaces,
        json!({"principal": "ann", "spaces": [
            {"name": "default", "role": "member", "current": false},
            {"name": "red", "role": "viewer", "current": true},
        ]})
    );

    // Revoked: the connection ends, no new one begins, and others are left alone.
    let whose = admin.revoke(viewer.id()).await.unwrap();
    assert_eq!(whose, ("red".to_owned(), "ann".to_owned()));
    let end = watching.closed().await;
    assert_eq!(
        (u16::from(end.code), end.reason.as_str()),
        (1008, "this token is not valid any more")
    );
    assert_eq!(node.refusal(&viewer).await, 401);
    let listed = of_red.ask("listSessions", json!({"channel": "ahp-root://"})).await;
    assert_eq!(names(&listed).len(), 1);

    // Removed: its tokens count no more, and nothing of it is left.
    assert!(admin.remove_space("red").await.unwrap().rows > 0);
    drop(of_red);
    drop(of_default);
    node.stop.send(()).unwrap();
    // The node was told that its space is gone.
    let ended = node.served.await.unwrap();
    assert!(ended.is_ok() || matches!(ended, Err(ServeError::JournalStopped(_))), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_token_opens_nothing_and_one_that_expires_ends_its_connections() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let node = start_node(&settings).await;
    let admin = AccountAdmin::connect(&settings).await.unwrap();
    let good = issue(&admin, &new_token("default", "ann", Role::Member)).await;
    let other = issue(&admin, &new_token("red", "bob", Role::Member)).await;
    let (id, text) = (good.id(), good.reveal());
    // The id of one and the secret of another; a made-up id.
    let mixed = text.replace(id, other.id());
    let unknown = text.replace(id, "000000000000");
    for wrong in [mixed, unknown] {
        let wrong = AccountToken::parse(wrong.as_bytes()).unwrap();
        assert_eq!(node.refusal(&wrong).await, 401);
    }
    let mut open = node.open(&good).await.unwrap();
    let brief = NewToken { seconds: Some(3), ..new_token("red", "bob", Role::Member) };
    let brief = issue(&admin, &brief).await;
    let ending = node.open(&brief).await.unwrap();
    assert_eq!(u16::from(ending.closed().await.code), 1008);
    assert_eq!(node.refusal(&brief).await, 401);
    // The database says so, not this machine's clock.
    let listed = admin.list_tokens("red").await.unwrap();
    let listed = listed.iter().find(|token| token.id == brief.id()).unwrap();
    assert!(listed.has_expired && !listed.is_revoked);
    assert!(open.ask("ping", Value::Null).await["error"].is_null());
    drop(open);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_is_told_what_was_wrong() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let admin = AccountAdmin::connect(&settings).await.unwrap();
    admin.create_space("red").await.unwrap();
    let taken = admin.create_space("red").await.unwrap_err();
    assert!(matches!(taken, AccountError::NameTaken(name) if name == "red"));
    let bad = admin.create_space("Red Team").await.unwrap_err();
    assert!(matches!(bad, AccountError::BadSpaceName(_)));
    let unknown = admin.issue_token(&new_token("blue", "ann", Role::Member)).await;
    assert!(matches!(unknown, Err(AccountError::UnknownSpace(_))));
    for nobody in ["", " ", "a\u{1b}[31m", &"x".repeat(129)] {
        let bad = admin.issue_token(&new_token("red", nobody, Role::Member)).await;
        assert!(matches!(bad, Err(AccountError::BadPrincipal(_))), "{nobody:?}");
    }
    let unknown = admin.revoke("nothing").await.unwrap_err();
    assert!(matches!(unknown, AccountError::UnknownToken(_)));
    let unknown = admin.remove_space("blue").await.unwrap_err();
    assert!(matches!(unknown, AccountError::UnknownSpace(_)));

    // A token gives no more than it says, though its bearer may do more with another.
    let more = issue(&admin, &new_token("red", "ann", Role::Owner)).await;
    let less = issue(&admin, &new_token("red", "ann", Role::Viewer)).await;
    let listed = admin.list_tokens("red").await.unwrap();
    let role_of = |token: &AccountToken| listed.iter().find(|it| it.id == token.id()).unwrap().role;
    assert_eq!((role_of(&more), role_of(&less)), (Role::Owner, Role::Viewer));
    let spaces = admin.list_spaces().await.unwrap();
    assert_eq!((spaces[0].members, spaces[0].tokens), (1, 2));
    // A name is free again when its space is gone.
    admin.remove_space("red").await.unwrap();
    assert!(admin.list_spaces().await.unwrap().is_empty());
    admin.create_space("red").await.unwrap();
    assert!(admin.list_tokens("red").await.unwrap().is_empty());
}

/// A table that is added and not removed would leave what people said behind.
#[tokio::test(flavor = "multi_thread")]
async fn every_table_of_a_space_is_emptied_when_it_is_removed() {
    let Some(server) = TestServer::start() else { return };
    let settings = server.make_database();
    let node = PostgresNode::connect(&settings).await.unwrap();
    let admin = AccountAdmin::over(node).await.unwrap();
    let sql = "SELECT table_name::text FROM information_schema.columns
         WHERE table_schema = 'greenroom' AND column_name = 'space' AND table_name <> 'blob_grave' ORDER BY 1";
    let rows = admin.connection().await.unwrap().query(sql, &[]).await.unwrap();
    let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let mut known = TABLES.to_vec();
    known.sort_unstable();
    assert_eq!(found, known);
    // A secret is nowhere in the tables.
    admin.create_space("red").await.unwrap();
    let token = issue(&admin, &new_token("red", "ann", Role::Member)).await;
    let database = settings.url.rsplit_once("dbname=").unwrap().1;
    let text = token.reveal();
    let secret = text.rsplit_once('_').unwrap().1;
    let check = format!(
        "DO $$ BEGIN ASSERT NOT EXISTS (SELECT 1 FROM greenroom.token t WHERE t::text LIKE '%{secret}%'); END $$"
    );
    run_sql(server.socket(), database, &check);
}
