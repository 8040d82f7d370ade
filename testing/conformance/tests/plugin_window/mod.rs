//! A window of an editor that brings plugins along and answers the host's questions about their files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use conformance::TestHost;
use conformance::native::SESSION;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

pub const PLUGIN: &str = "memfs:/plugins/kit";

/// What the window has, and what it was asked.
#[derive(Default)]
pub struct PluginFiles {
    /// By path below [`PLUGIN`].
    pub files: BTreeMap<String, String>,
    /// Answers to lists that are not made of the files, by URI.
    pub lists: BTreeMap<String, Value>,
    /// URIs that are never answered about.
    pub silent: Vec<String>,
    pub asked: Vec<String>,
}

/// A window that answers for itself; gone when it is dropped.
pub struct PluginWindow {
    pub has: Arc<Mutex<PluginFiles>>,
    sends: tokio::sync::mpsc::UnboundedSender<Value>,
    answering: JoinHandle<()>,
    session: String,
    seq: u64,
}

impl PluginWindow {
    pub async fn opens(host: &TestHost, files: &[(&str, &str)]) -> Self {
        Self::opens_in(host, SESSION, files).await
    }

    /// The same with another session than that of the native agent.
    pub async fn opens_in(host: &TestHost, session: &str, files: &[(&str, &str)]) -> Self {
        let (mut socket, _) = connect_async(host.url.as_str()).await.unwrap();
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
            {"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "window"}});
        socket.send(Message::text(hello.to_string())).await.unwrap();
        let has = Arc::new(Mutex::new(PluginFiles::default()));
        let (sends, mut sent) = tokio::sync::mpsc::unbounded_channel::<Value>();
        let mine = Arc::clone(&has);
        let answering = tokio::spawn(async move {
            loop {
                let frame = tokio::select! {
                    Some(frame) = sent.recv() => frame,
                    Some(Ok(message)) = socket.next() => {
                        let Message::Text(text) = message else {
                            continue; // pings are answered by the library
                        };
                        let frame: Value = serde_json::from_str(&text).unwrap();
                        match answer(&mine, &frame) {
                            Some(answer) => answer,
                            None => continue,
                        }
                    }
                    else => return,
                };
                // The host may be gone at the end of a test.
                let _ = socket.send(Message::text(frame.to_string())).await;
            }
        });
        let window = Self { has, sends, answering, session: session.to_owned(), seq: 0 };
        window.writes(files);
        let subscribe = json!({"jsonrpc": "2.0", "id": 2, "method": "subscribe", "params": {"channel": session}});
        window.sends.send(subscribe).unwrap();
        window
    }

    pub fn writes(&self, files: &[(&str, &str)]) {
        let mut has = self.has.lock().unwrap();
        for (path, text) in files {
            has.files.insert((*path).to_owned(), (*text).to_owned());
        }
    }

    pub fn asked(&self) -> Vec<String> {
        self.has.lock().unwrap().asked.clone()
    }

    /// Says that it is active in the session, and which plugins it has.
    pub fn brings(&mut self, plugins: Value) {
        let client = json!({"clientId": "window", "tools": [], "customizations": plugins});
        self.does(json!({"type": "session/activeClientSet", "activeClient": client}));
    }

    pub fn does(&mut self, action: Value) {
        self.seq += 1;
        let params = json!({"channel": self.session, "clientSeq": self.seq, "action": action});
        let frame = json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": params});
        self.sends.send(frame).unwrap();
    }
}

impl Drop for PluginWindow {
    fn drop(&mut self) {
        self.answering.abort();
    }
}

pub fn plugin(nonce: &str) -> Value {
    json!({"type": "plugin", "id": "own-id", "uri": PLUGIN, "name": "Kit", "nonce": nonce})
}

/// The answer to a request of the host; none to anything else.
fn answer(has: &Mutex<PluginFiles>, frame: &Value) -> Option<Value> {
    let (id, method) = (frame.get("id")?, frame.get("method")?.as_str()?);
    let uri = frame["params"]["uri"].as_str()?.to_owned();
    let mut has = has.lock().unwrap();
    has.asked.push(format!("{method} {uri}"));
    if has.silent.contains(&uri) {
        return None;
    }
    let path = uri.strip_prefix(PLUGIN).unwrap_or("?").trim_start_matches('/').replace("%20", " ");
    let result = match method {
        "resourceList" => match has.lists.get(&uri) {
            Some(list) => Some(list.clone()),
            None => Some(list(&has.files, &path)),
        },
        "resourceRead" => {
            let text = has.files.get(&path);
            text.map(|text| json!({"data": text, "encoding": "utf-8"}))
        }
        _ => None,
    };
    Some(match result {
        Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        None => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32008, "message": "not found"}})
        }
    })
}

fn list(files: &BTreeMap<String, String>, directory: &str) -> Value {
    let mut entries = BTreeMap::new();
    for path in files.keys() {
        let inside = match directory {
            "" => Some(path.as_str()),
            _ => path.strip_prefix(directory).and_then(|it| it.strip_prefix('/')),
        };
        if let Some(inside) = inside {
            match inside.split_once('/') {
                Some((name, _)) => entries.insert(name, "directory"),
                None => entries.insert(inside, "file"),
            };
        }
    }
    let entries = entries.into_iter().map(|(name, kind)| json!({"name": name, "type": kind}));
    json!({"entries": entries.collect::<Vec<_>>()})
}
