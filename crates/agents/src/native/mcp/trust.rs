//! Which of the declared servers a session may start (TR-2).
//!
//! Promises: a no holds in its session; two chats do not ask at once. No permission mode answers (G-63).
//! Must not know: how the question reads.

use std::sync::Arc;

use agent_api::{EventSink, TurnOver};

use super::{SessionMcp, TurnLocation};
use crate::mcp::DeclaredServer;
use crate::mcp_settings::McpSettings;
use crate::trust::{DeclaredItem, ServerAnswer, ask_about_server, describe_refusal};

impl SessionMcp {
    /// Whether the user lets a declared server start, asked now if nobody said so before.
    pub(super) async fn is_trusted(
        &self,
        settings: &Arc<McpSettings>,
        location: TurnLocation<'_>,
        declared: &DeclaredServer,
        events: &dyn EventSink,
    ) -> Result<bool, TurnOver> {
        let key = (declared.name.clone(), declared.digest.clone());
        if self.memory.lock().refused.contains(&key) {
            return Ok(false);
        }
        let directory = location.first_directory(settings);
        let item = DeclaredItem::new(directory, declared);
        match item.is_known(&settings.trust, location.session).await {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => {
                let text = format!("No MCP server of this directory was started: {error}");
                self.notice_once(text, events).await?;
                return Ok(false);
            }
        }
        let Ok(_asking) = self.asking.try_lock() else {
            return Ok(false); // another chat asks: this turn goes on without
        };
        if !location.may_ask {
            return Ok(false);
        }
        let (trust, session) = (&settings.trust, location.session);
        let answer = ask_about_server(trust, session, directory, declared, events).await?;
        let why = match answer {
            ServerAnswer::Yes => return Ok(true),
            ServerAnswer::No => {
                self.memory.lock().refused.insert(key);
                "you did not allow it".to_owned()
            }
            ServerAnswer::Unasked(why) => why,
        };
        self.notice_once(describe_refusal(declared, &why), events).await?;
        Ok(false)
    }
}
