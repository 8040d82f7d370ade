//! An agent's lines decoded and mapped without a process: what the host does with each of them, for those who measure it.
//!
//! Promises: the same decoders and the same mapper as a connection and a turn have.
//! Must not know: who measures.

use agent_client_protocol_schema::v1 as acp;
use serde_json::value::RawValue;

use super::connection::{UpdateParams, UpdateTag};
use super::mapper::{Mapper, UsageTotals};
use super::rpc::{self, RpcMessage};
use super::view::SessionView;

/// What a session makes of the lines of its agent.
pub struct LineMapper {
    mapper: Mapper,
    view: SessionView,
}

/// A line that is no update of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the line is not an update of a session")]
pub struct NotAnUpdate;

impl Default for LineMapper {
    fn default() -> Self {
        Self { mapper: Mapper::new(0, UsageTotals::default()), view: SessionView::default() }
    }
}

impl LineMapper {
    /// Decodes a line and maps it; how many steps follow from it.
    pub fn map(&mut self, line: &[u8]) -> Result<usize, NotAnUpdate> {
        let RpcMessage::Notification { params: Some(params), .. } =
            rpc::decode(line).map_err(|_| NotAnUpdate)?
        else {
            return Err(NotAnUpdate);
        };
        let params: UpdateParams<'_> = parse(params)?;
        let _tag: UpdateTag<'_> = parse(params.update)?;
        let update: acp::SessionUpdate = parse(params.update)?;
        // What is said of the session itself: its commands and settings.
        self.view.apply_update(&update);
        Ok(self.mapper.map(update).len())
    }

    /// Bytes of the commands that are known of the session.
    pub fn command_bytes(&self) -> usize {
        let bytes = self.view.commands.iter().map(|command| {
            let text = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
            command.name.capacity() + text(&command.description) + text(&command.hint)
        });
        bytes.sum::<usize>() + self.view.commands.capacity() * size_of::<agent_api::AgentCommand>()
    }
}

fn parse<'a, T: serde::Deserialize<'a>>(text: &'a RawValue) -> Result<T, NotAnUpdate> {
    serde_json::from_str(text.get()).map_err(|_| NotAnUpdate)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_mapped_as_a_turn_maps_them() {
        let mut mapper = LineMapper::default();
        let line = |update: serde_json::Value| {
            let params = json!({"sessionId": "s", "update": update});
            json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
        };
        let text = line(
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}}),
        );
        assert_eq!(mapper.map(text.as_bytes()), Ok(2), "a part and its text");
        assert_eq!(mapper.map(text.as_bytes()), Ok(1));
        assert_eq!(mapper.command_bytes(), 0);
        let commands = line(
            json!({"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "go", "description": "Goes"}]}),
        );
        assert_eq!(mapper.map(commands.as_bytes()), Ok(0));
        assert!(mapper.command_bytes() >= 6);
        assert_eq!(mapper.map(b"{}"), Err(NotAnUpdate));
    }
}
