//! The terminals of a host: which there are, and one of them to look at and to type into.
//!
//! Promises: whoever leaves a terminal gives it back to whom they had it from.
//! Must not know: how a terminal is drawn.

use std::path::Path;

use serde_json::{Value, json};
use wire::ChannelUri;
use wire::state::{PlainState, TerminalPart, TerminalState};

use crate::{ClientError, Envelope, Live};

/// Who holds a terminal: only they type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalOwner {
    Me,
    /// Another client.
    Other,
    /// The call or the chat that it was made for.
    Session,
}

/// A terminal in the host's list.
#[derive(Debug, Clone, PartialEq)]
pub struct TerminalEntry {
    pub uri: ChannelUri,
    pub title: String,
    pub is_running: bool,
    pub held_by: TerminalOwner,
}

/// The terminals of the host, as far as its list can be read.
pub fn list_terminals(live: &Live) -> Vec<TerminalEntry> {
    let own = live.client_id();
    let root = live.root();
    let list = root.as_ref().and_then(|root| root.extra.get("terminals")).and_then(Value::as_array);
    let entries = list.into_iter().flatten();
    let entry = |entry: &Value| {
        Some(TerminalEntry {
            uri: ChannelUri::parse(entry["resource"].as_str()?).ok()?,
            title: entry["title"].as_str().unwrap_or_default().to_owned(),
            is_running: entry["lifecycle"]["status"] == "running",
            held_by: holder(&entry["claim"], &own),
        })
    };
    entries.filter_map(entry).collect()
}

fn holder(claim: &Value, own: &str) -> TerminalOwner {
    match (claim["kind"].as_str(), claim["clientId"].as_str()) {
        (Some("client"), Some(id)) if id == own => TerminalOwner::Me,
        (Some("client"), _) => TerminalOwner::Other,
        _ => TerminalOwner::Session,
    }
}

/// Columns and rows of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenSize {
    pub columns: u16,
    pub rows: u16,
}

impl ScreenSize {
    /// The size of a terminal that reports none.
    pub const DEFAULT: Self = Self { columns: 80, rows: 24 };
}

/// Makes a terminal with a shell in it, held by this client.
pub async fn create_terminal(
    live: &Live,
    directory: Option<&Path>,
    size: ScreenSize,
) -> Result<ChannelUri, ClientError> {
    let name = format!("ahp-terminal:/{}", uuid::Uuid::now_v7());
    let mut params = json!({
        "channel": name,
        "claim": {"kind": "client", "clientId": live.client_id()},
        "cols": size.columns,
        "rows": size.rows,
    });
    if let Some(directory) = directory {
        let path = directory.as_os_str().as_encoded_bytes();
        params["cwd"] = json!(wire::file_uri::uri_of(path));
    }
    live.request("createTerminal", params).await?;
    ChannelUri::parse(&name).map_err(|error| ClientError::Unreadable(error.to_string()))
}

/// Ends a terminal and what runs in it.
pub async fn dispose_terminal(live: &Live, uri: &ChannelUri) -> Result<(), ClientError> {
    let params = json!({"channel": uri.as_str()});
    live.request("disposeTerminal", params).await.map(drop)
}

/// What one action did to a terminal that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalUpdate {
    Printed(String),
    /// All that it printed is forgotten.
    Cleared,
    /// Its title, size or holder is another now, or it ended.
    Changed,
    /// Nothing that shows.
    Nothing,
}

/// A terminal that this client looks at.
pub struct AttachedTerminal {
    live: Live,
    uri: ChannelUri,
    /// Whom it was taken from.
    before: Option<Value>,
}

impl AttachedTerminal {
    /// Opens a terminal, and takes it over if nobody else types in it.
    pub async fn attach(live: &Live, uri: &ChannelUri) -> Result<Self, ClientError> {
        live.subscribe(uri).await?;
        let mut attached = Self { live: live.clone(), uri: uri.clone(), before: None };
        let state = attached.read(|state| (state.claim.clone(), state.is_running()));
        if let Some((claim, true)) = state
            && holder(&claim, &live.client_id()) != TerminalOwner::Me
        {
            // The host refuses it if another client holds it that is connected.
            attached.claim(json!({"kind": "client", "clientId": live.client_id()}))?;
            let is_session = holder(&claim, &live.client_id()) == TerminalOwner::Session;
            attached.before = is_session.then_some(claim);
        }
        Ok(attached)
    }

    fn claim(&self, claim: Value) -> Result<(), ClientError> {
        self.dispatch(json!({"type": "terminal/claimed", "claim": claim}))
    }

    fn dispatch(&self, action: Value) -> Result<(), ClientError> {
        self.live.dispatch(&self.uri, action).map(drop)
    }

    fn read<T>(&self, read: impl FnOnce(&TerminalState) -> T) -> Option<T> {
        self.live.read(|replica| match replica.plain(self.uri.as_str()) {
            Some(PlainState::Terminal(state)) => Some(read(state)),
            Some(_) | None => None,
        })
    }

    pub fn uri(&self) -> &ChannelUri {
        &self.uri
    }

    /// All that it printed, as far as it is kept.
    pub fn contents(&self) -> String {
        let text = self.read(|state| state.content.iter().map(TerminalPart::text).collect());
        text.unwrap_or_default()
    }

    pub fn size(&self) -> ScreenSize {
        let usual = ScreenSize::DEFAULT;
        let bound =
            |value: Option<i64>, usual: u16| value.unwrap_or(i64::from(usual)).clamp(1, 500) as u16;
        let size = self.read(|state| ScreenSize {
            columns: bound(state.cols, usual.columns),
            rows: bound(state.rows, usual.rows),
        });
        size.unwrap_or(usual)
    }

    pub fn title(&self) -> String {
        self.read(|state| state.title.clone()).unwrap_or_default()
    }

    pub fn is_running(&self) -> bool {
        self.read(TerminalState::is_running) == Some(true)
    }

    /// Whether what is typed here gets there.
    pub fn is_mine(&self) -> bool {
        let claim = self.read(|state| state.claim.clone());
        claim.is_some_and(|claim| holder(&claim, &self.live.client_id()) == TerminalOwner::Me)
    }

    pub fn write(&self, text: &str) -> Result<(), ClientError> {
        self.dispatch(json!({"type": "terminal/input", "data": text}))
    }

    pub fn resize(&self, size: ScreenSize) -> Result<(), ClientError> {
        let ScreenSize { columns, rows } = size;
        self.dispatch(json!({"type": "terminal/resized", "cols": columns, "rows": rows}))
    }

    /// What an action of its channel did.
    pub fn update_of(envelope: &Envelope) -> TerminalUpdate {
        let action = &envelope.action;
        match action.name() {
            "terminal/data" => {
                TerminalUpdate::Printed(action.text("data").unwrap_or_default().to_owned())
            }
            "terminal/cleared" => TerminalUpdate::Cleared,
            "terminal/input" => TerminalUpdate::Nothing,
            _ => TerminalUpdate::Changed,
        }
    }

    /// Leaves it, and gives it back.
    pub async fn detach(self) -> Result<(), ClientError> {
        if let Some(before) = &self.before
            && self.is_mine()
            && self.is_running()
        {
            self.claim(before.clone())?;
            // Requests follow actions: when this is answered the host has it.
            let root = json!({"channel": ChannelUri::root().as_str()});
            self.live.request("ping", root).await?;
        }
        self.live.unsubscribe(&self.uri).await;
        Ok(())
    }
}
