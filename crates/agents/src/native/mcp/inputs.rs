//! Inputs of `.vscode/mcp.json`: asked for once in a session, before the servers that want them are looked at.
//!
//! Promises: an answer is used in this session alone, for servers of the file that has the input, and is in no file of the host's servers; secrets are not asked for.
//! Must not know: what servers do with them.

use agent_api::{AgentEvent, AgentReply, EventSink, InputRequest, TurnOver};
use serde_json::{Value, json};
use wire::published::state::ChatInputResponseKind;

use super::{ServerMemory, SessionMcp, shown};
use crate::mcp::{DeclaredServer, FileInputs, McpInput, McpInputs};
use crate::trust::{next_ask, printable_path};

/// Characters of what a file says of an input, and of an option.
const TEXT_CHARS_MAX: usize = 500;
const OPTIONS_MAX: usize = 64;

/// Inputs that are asked for at once.
const ASKED_MAX: usize = 16;

impl SessionMcp {
    pub(super) fn inputs(&self) -> McpInputs {
        self.memory.lock().inputs.clone()
    }

    /// Asks for what servers want to know; whether anything was answered.
    pub(super) async fn ask_for_inputs(
        &self,
        servers: &[DeclaredServer],
        events: &dyn EventSink,
    ) -> Result<bool, TurnOver> {
        let mut is_answered = false;
        for declared in servers {
            let unasked = self.memory.lock().unanswered_inputs(declared);
            if unasked.is_empty() {
                continue;
            }
            let Ok(_asking) = self.asking.try_lock() else {
                return Ok(is_answered); // another chat asks: this turn goes on without
            };
            let ask = next_ask();
            let request = make_request(declared, &unasked);
            let reply = events.ask(AgentEvent::InputRequested { ask, request });
            let answers = read_answers(&reply.await?, &unasked);
            let mut memory = self.memory.lock();
            for input in unasked {
                if !answers.contains_key(&input.id) {
                    memory.kept_back.insert((declared.file.clone(), input.id));
                }
            }
            is_answered |= !answers.is_empty();
            memory.inputs.entry(declared.file.clone()).or_default().extend(answers);
        }
        Ok(is_answered)
    }
}

impl ServerMemory {
    /// What a server wants to know and its file did not ask for yet.
    fn unanswered_inputs(&self, declared: &DeclaredServer) -> Vec<McpInput> {
        let known = self.inputs.get(&declared.file);
        let inputs = declared.inputs.iter().filter(|input| {
            let is_known = known.is_some_and(|known| known.contains_key(&input.id));
            let key = (declared.file.clone(), input.id.clone());
            !is_known && !self.kept_back.contains(&key)
        });
        inputs.take(ASKED_MAX).cloned().collect()
    }
}

fn make_request(declared: &DeclaredServer, inputs: &[McpInput]) -> InputRequest {
    let (name, file) = (shown(&declared.name), printable_path(&declared.file));
    let questions = inputs.iter().map(|input| {
        let said = cut(&input.description);
        let message = if said.is_empty() { shown(&input.id) } else { said };
        let mut question = json!({
            "kind": "text", "id": input.id, "title": shown(&input.id), "message": message, "required": true,
        });
        if !input.options.is_empty() {
            let options = input.options.iter().take(OPTIONS_MAX).map(|option| json!({"id": option, "label": cut(option)}));
            question["kind"] = json!("single-select");
            question["allowFreeformInput"] = json!(false);
            question["options"] = options.collect();
        } else if let Some(default) = &input.default {
            question["defaultValue"] = json!(default);
        }
        question
    });
    InputRequest {
        message: Some(format!(
            "The MCP server `{name}` of `{file}` wants to know something before it is started. What you type is stored with this chat."
        )),
        questions: questions.collect(),
        ..InputRequest::default()
    }
}

fn read_answers(reply: &AgentReply, inputs: &[McpInput]) -> FileInputs {
    let AgentReply::Answered { response: ChatInputResponseKind::Accept, answers, .. } = reply
    else {
        return FileInputs::new(); // declined, cancelled, or nobody was there to ask
    };
    let given = inputs.iter().filter_map(|input| {
        let answer = answers.get(&input.id)?;
        let is_given = answer.get("state").and_then(Value::as_str) == Some("submitted");
        let value = answer.get("value")?.get("value")?.as_str()?;
        let may_be = input.options.is_empty() || input.options.iter().any(|option| option == value);
        (is_given && may_be).then(|| (input.id.clone(), value.to_owned()))
    });
    given.collect()
}

fn cut(text: &str) -> String {
    let shown = text.chars().filter(|c| !c.is_control());
    shown.take(TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tr_2_an_input_is_known_and_kept_back_for_its_file_alone() {
        let input = McpInput {
            id: "key".to_owned(),
            description: String::new(),
            default: None,
            options: Vec::new(),
            password: false,
        };
        let declared = |file: &str| DeclaredServer {
            name: "s".to_owned(),
            file: file.into(),
            span: None,
            plugin: None,
            is_users: false,
            digest: String::new(),
            is_sse: false,
            variables: Vec::new(),
            wanted: vec!["key".to_owned()],
            inputs: vec![input.clone()],
            declaration: Err(String::new()),
        };
        let mut memory = ServerMemory::default();
        let answers = FileInputs::from([("key".to_owned(), "s3cret".to_owned())]);
        memory.inputs.insert("/data/mcp.json".into(), answers);
        let kept_back = ("/w/.vscode/mcp.json".into(), "key".to_owned());
        memory.kept_back.insert(kept_back);
        for (file, is_unasked) in
            [("/data/mcp.json", false), ("/w/.vscode/mcp.json", false), ("/w/.mcp.json", true)]
        {
            let unasked = memory.unanswered_inputs(&declared(file));
            assert_eq!(!unasked.is_empty(), is_unasked, "{file}");
        }
    }
}
