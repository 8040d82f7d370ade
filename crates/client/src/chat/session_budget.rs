//! What a session may spend on models: a limit of its own, in dollars (G-69).

use serde_json::{Value, json};
use wire::state::SessionState;

use crate::ClientError;

use super::session_setting::find_setting;
use super::{ChatError, OpenChat};

/// The session setting that holds the limit.
const SETTING: &str = "budget";

/// The limit of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SessionBudget {
    /// Its agent has no such setting.
    NotOffered,
    /// It has none of its own.
    None,
    Usd(f64),
}

impl OpenChat {
    pub fn session_budget(&self) -> SessionBudget {
        let session = self.session_state();
        session.map_or(SessionBudget::NotOffered, |session| read_budget(&session))
    }

    /// Sets the limit, in dollars; 0 is none.
    pub fn set_session_budget(&self, usd: f64) -> Result<(), ClientError> {
        self.dispatch_setting(SETTING, &json!(usd)).map(drop)
    }

    /// Sets the limit and waits until the host took it: a message that is sent then is worked on within it.
    pub async fn change_session_budget(&mut self, usd: f64) -> Result<(), ChatError> {
        let sent = self.dispatch_setting(SETTING, &json!(usd))?;
        self.wait_until_taken(sent).await?;
        let wanted = if usd > 0.0 { SessionBudget::Usd(usd) } else { SessionBudget::None };
        if self.session_budget() == wanted { Ok(()) } else { Err(ChatError::BudgetNotTaken) }
    }
}

fn read_budget(session: &SessionState) -> SessionBudget {
    let Some((_, value)) = find_setting(session, SETTING) else { return SessionBudget::NotOffered };
    let usd = value.and_then(Value::as_f64).filter(|usd| *usd > 0.0);
    usd.map_or(SessionBudget::None, SessionBudget::Usd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_setting_above_nothing() {
        let read = |properties: Value, values: Value| {
            let config =
                json!({"schema": {"type": "object", "properties": properties}, "values": values});
            let state = json!({
                "provider": "p", "title": "", "status": 1, "lifecycle": "ready", "activeClients": [], "chats": [],
                "config": config,
            });
            read_budget(&SessionState::from_value(state).unwrap())
        };
        let offered = || json!({"budget": {"type": "number", "title": "Budget"}});
        assert_eq!(read(json!({}), json!({})), SessionBudget::NotOffered);
        assert_eq!(read(offered(), json!({})), SessionBudget::None);
        assert_eq!(read(offered(), json!({"budget": 0})), SessionBudget::None);
        let limited = read(offered(), json!({"budget": 2.5}));
        assert_eq!(limited, SessionBudget::Usd(2.5));
    }
}
