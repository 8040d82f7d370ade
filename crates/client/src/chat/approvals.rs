//! The permission modes of a session: what its agent may do without asking (G-46).
//!
//! Promises: modes are those of the session's own schema, in its order and with its words.

use serde_json::{Value, json};
use wire::state::SessionState;

use crate::ClientError;

use super::session_setting::find_setting;
use super::{ChatError, OpenChat};

/// The session setting that holds the mode.
const SETTING: &str = "approvals";
/// Modes that give the agent no more than this: reading, or editing files that can be looked at before they are used.
const CAUTIOUS: [&str; 3] = ["ask", "accept-edits", "plan"];

/// A permission mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedMode {
    pub id: String,
    pub title: String,
    pub description: String,
    pub is_current: bool,
}

impl OfferedMode {
    /// Whether it lets the agent do more than edit files without asking, as far as is known here.
    pub fn is_permissive(&self) -> bool {
        !CAUTIOUS.contains(&self.id.as_str())
    }
}

impl OpenChat {
    /// The modes of this session; none if it has no such setting, or it cannot be changed any more.
    pub fn permission_modes(&self) -> Vec<OfferedMode> {
        let session = self.session_state();
        session.map_or(Vec::new(), |session| read_modes(&session))
    }

    pub fn permission_mode(&self) -> Option<OfferedMode> {
        self.permission_modes().into_iter().find(|mode| mode.is_current)
    }

    pub fn set_permission_mode(&self, mode: &OfferedMode) -> Result<(), ClientError> {
        self.dispatch_mode(mode).map(drop)
    }

    /// Sets the mode and waits until the host took it: a message that is sent then is worked on in this mode.
    pub async fn change_permission_mode(&mut self, mode: &OfferedMode) -> Result<(), ChatError> {
        let sent = self.dispatch_mode(mode)?;
        self.wait_until_taken(sent).await?;
        match self.permission_mode() {
            Some(current) if current.id == mode.id => Ok(()),
            _ => Err(ChatError::ModeNotTaken(mode.id.clone())),
        }
    }

    fn dispatch_mode(&self, mode: &OfferedMode) -> Result<i64, ClientError> {
        self.dispatch_setting(SETTING, &json!(mode.id))
    }
}

fn read_modes(session: &SessionState) -> Vec<OfferedMode> {
    let Some((schema, current)) = find_setting(session, SETTING) else {
        return Vec::new(); // an agent without modes
    };
    let texts = |field: &str| -> Vec<String> {
        let texts = schema[field].as_array().into_iter().flatten();
        texts.map(|text| text.as_str().unwrap_or("").to_owned()).collect()
    };
    let (titles, descriptions) = (texts("enumLabels"), texts("enumDescriptions"));
    let modes = texts("enum").into_iter().enumerate().map(|(index, id)| {
        let title = titles.get(index).filter(|title| !title.is_empty());
        OfferedMode {
            title: title.unwrap_or(&id).clone(),
            description: descriptions.get(index).cloned().unwrap_or_default(),
            is_current: current.and_then(Value::as_str) == Some(id.as_str()),
            id,
        }
    });
    modes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_those_of_the_schema() {
        let session = |config: Value| {
            let mut state = json!({
                "provider": "p", "title": "", "status": 1, "lifecycle": "ready", "activeClients": [], "chats": [],
            });
            state["config"] = config;
            SessionState::from_value(state).unwrap()
        };
        let schema = json!({"type": "object", "properties": {"approvals": {
            "type": "string", "enum": ["ask", "full-access"], "enumLabels": ["Ask", "Full access"],
            "enumDescriptions": ["Asks."], "default": "ask",
        }}});
        let modes = read_modes(&session(json!({"schema": schema, "values": {}})));
        assert_eq!(modes[0].title, "Ask");
        assert!(modes[0].is_current && !modes[0].is_permissive());
        assert_eq!(modes[1].description, "");
        assert!(!modes[1].is_current && modes[1].is_permissive());
        let modes =
            read_modes(&session(json!({"schema": schema, "values": {"approvals": "full-access"}})));
        assert!(modes[1].is_current);
        let other = json!({"schema": {"type": "object", "properties": {}}, "values": {}});
        assert_eq!(read_modes(&session(other)), []);
    }
}
