//! Every notification of the host is read by the types of the client's own version, before the client itself gets it: it drops
//! without a word what it cannot read.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Notify;

use super::super::ahp::{Transport, TransportError, TransportMessage};
use super::super::ahp_types::actions::ActionEnvelope;
use super::super::ahp_types::notifications::{
    AuthRequiredParams, OtlpExportLogsParams, OtlpExportMetricsParams, OtlpExportTracesParams,
    SessionAddedParams, SessionRemovedParams, SessionSummaryChangedParams,
};
use super::super::{ProgressParams, VERSION};

/// What came, and what of it could not be read.
#[derive(Default)]
pub struct Heard {
    notifications: Mutex<Vec<(String, Value)>>,
    unread: Mutex<Vec<String>>,
    more: Notify,
}

impl Heard {
    /// The first notification of this name that fits.
    pub fn find(&self, method: &str, fits: impl Fn(&Value) -> bool) -> Option<Value> {
        let heard = self.notifications.lock().unwrap_or_else(PoisonError::into_inner);
        let mut named = heard.iter().filter(|(name, _)| name == method);
        let found = named.find(|(_, params)| fits(params));
        found.map(|(_, params)| params.clone())
    }

    /// How many notifications of this name there were that fit.
    pub fn count(&self, method: &str, fits: impl Fn(&Value) -> bool) -> usize {
        let heard = self.notifications.lock().unwrap_or_else(PoisonError::into_inner);
        let named = heard.iter().filter(|(name, _)| name == method);
        named.filter(|(_, params)| fits(params)).count()
    }

    /// Something came since this was asked last. For one who waits.
    pub async fn changes(&self) {
        self.more.notified().await;
    }

    pub fn assert_all_read(&self) {
        let unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(unread.is_empty(), "{}", unread.join("\n"));
    }

    fn hears(&self, text: &str) {
        let Ok(message) = serde_json::from_str::<Value>(text) else { return self.notes(format!("{VERSION} was sent what is no JSON")) };
        let (Some(method), None) = (message["method"].as_str(), message.get("id")) else {
            return; // an answer, or a request
        };
        if let Err(why) = judge(method, &message["params"]) {
            self.notes(format!("{VERSION} cannot read {message}: {why}"));
        }
        let mut heard = self.notifications.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push((method.to_owned(), message["params"].clone()));
        self.more.notify_one();
    }

    fn notes(&self, what: String) {
        let unread = self.unread.lock();
        unread.unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

/// Whether this version's own types read a notification.
pub fn judge(method: &str, params: &Value) -> Result<(), String> {
    match method {
        "action" => {
            let envelope: ActionEnvelope = read(params)?;
            known("an action", &envelope.action)
        }
        "root/sessionAdded" => read::<SessionAddedParams>(params).map(drop),
        "root/sessionRemoved" => read::<SessionRemovedParams>(params).map(drop),
        "root/sessionSummaryChanged" => read::<SessionSummaryChangedParams>(params).map(drop),
        "root/progress" => read::<ProgressParams>(params).map(drop),
        "auth/required" => read::<AuthRequiredParams>(params).map(drop),
        "otlp/exportLogs" => read::<OtlpExportLogsParams>(params).map(drop),
        "otlp/exportTraces" => read::<OtlpExportTracesParams>(params).map(drop),
        "otlp/exportMetrics" => read::<OtlpExportMetricsParams>(params).map(drop),
        _ => Err("an unknown notification".to_owned()),
    }
}

/// How a call that waits for a sign-in looks to types that cannot read their own status (H-204): all published ones.
const UNREADABLE_CALL: &str = "Unknown(Object {\"status\": String(\"auth-required\")";

/// What a type does not know it keeps as it came, in variants of this name, however deep inside.
pub fn known<T: Debug>(what: &str, read: &T) -> Result<(), String> {
    let shown = format!("{read:?}");
    let mut unknown = shown.match_indices("Unknown(").map(|(at, _)| &shown[at..]);
    match unknown.find(|found| !found.starts_with(UNREADABLE_CALL)) {
        Some(found) => Err(format!("{what} has {found}")),
        None => Ok(()),
    }
}

pub fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|error| error.to_string())
}

/// A transport that hears what passes.
pub struct Judged<T> {
    pub inner: T,
    pub heard: Arc<Heard>,
}

impl<T: Transport> Transport for Judged<T> {
    async fn send(&mut self, message: TransportMessage) -> Result<(), TransportError> {
        self.inner.send(message).await
    }

    async fn recv(&mut self) -> Result<Option<TransportMessage>, TransportError> {
        let message = self.inner.recv().await?;
        match &message {
            Some(TransportMessage::Text(text)) => self.heard.hears(text),
            Some(TransportMessage::Parsed(parsed)) => {
                let text = serde_json::to_string(parsed).expect("JSON");
                self.heard.hears(&text);
            }
            Some(TransportMessage::Binary(_)) => self.heard.notes("bytes were sent".to_owned()),
            None => {}
        }
        Ok(message)
    }

    async fn close(&mut self) -> Result<(), TransportError> {
        self.inner.close().await
    }
}
