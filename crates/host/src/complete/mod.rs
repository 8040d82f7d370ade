//! Completions as the kernel asks for them: suggestions of the workspace as `CompletionItem`s of the protocol.

mod item;
mod of_agent;

use compositor::command::agent::AgentCommands;
use kernel::{CompletionAnswer, CompletionTask};
use serde_json::Value;
use workspace::ClientPluginCopy;
pub use workspace::completion::Completer;
use workspace::completion::{self, CompletionRequest, OffsetOutsideText, Paths};
use workspace::discovery::Discovered;

pub(crate) use of_agent::suggestions;

/// Answers a request, with the plugins of clients and the commands of the agent. Blocks.
pub fn completions(
    completer: &Completer,
    complete: CompletionTask,
    brought: Vec<ClientPluginCopy>,
    agent_commands: AgentCommands,
) -> CompletionAnswer {
    let request = CompletionRequest {
        brought,
        working_directories: complete.working_directories,
        switched_off: complete.context.switched_off,
        text: complete.text,
        offset: complete.offset,
        contexts: complete.contexts,
        agent_commands,
    };
    match completer.complete(&request, item::completion_item) {
        Ok(items) => CompletionAnswer::Items(items),
        Err(OffsetOutsideText) => CompletionAnswer::OutsideText,
    }
}

/// The items from what is in memory: what an answer costs once files are indexed.
pub fn items_from_memory(
    text: &str,
    offset: u64,
    discovered: &Discovered,
    paths: &Paths,
) -> Result<Vec<Value>, OffsetOutsideText> {
    completion::suggest(text, offset, discovered, paths, item::completion_item)
}

#[cfg(test)]
mod tests;
