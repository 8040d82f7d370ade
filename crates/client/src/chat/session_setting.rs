//! Settings of a session: changed by name, and waited for where something must not happen before.

use serde_json::{Value, json};
use wire::state::SessionState;

use crate::{ClientError, Live};

use super::{ChatError, ChatEvent, OpenChat};

impl OpenChat {
    /// Sets one setting; what names the change until the host answered.
    pub(super) fn dispatch_setting(&self, name: &str, value: &Value) -> Result<i64, ClientError> {
        let config = json!({ name: value });
        let action = json!({"type": "session/configChanged", "config": config});
        self.live.dispatch(&self.session, action)
    }

    /// Waits until the host took or refused a change. A refusal may have been among what was heard before: whoever calls this
    /// looks whether the setting is what it is to be.
    pub(super) async fn wait_until_taken(&mut self, sent: i64) -> Result<(), ChatError> {
        let is_pending = |live: &Live| {
            live.read(|replica| replica.pending().any(|pending| pending.client_seq == sent))
        };
        while is_pending(&self.live) {
            match self.next().await? {
                ChatEvent::Refused { reason, .. } => {
                    return Err(ClientError::ActionRefused(reason).into());
                }
                ChatEvent::ConnectionLost { why } => return Err(why.into()),
                ChatEvent::Changed
                | ChatEvent::NotResent { .. }
                | ChatEvent::ReconnectFailed { .. }
                | ChatEvent::Reconnected => {}
            }
        }
        Ok(())
    }
}

/// The schema of a setting and its value, or its default; none if the session has no such setting.
pub(super) fn find_setting<'s>(
    session: &'s SessionState,
    name: &str,
) -> Option<(&'s Value, Option<&'s Value>)> {
    let config = session.config.as_ref()?;
    let schema = config.schema.get("properties")?.get(name)?;
    let value = config.values.get(name).or_else(|| schema.get("default"));
    Some((schema, value))
}
