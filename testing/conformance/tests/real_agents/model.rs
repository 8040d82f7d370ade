//! A model that does what it is asked for in plain words, in the wire format it is asked in: `please run tool number 3` runs a command
//! once, `please wait number 3` is not answered, everything else is answered with a word. The highest number counts: agents put what
//! was said before in front of a message or after it.

use serde_json::{Map, Value, json};
use testkit::{Answer, CapturedRequest, Gate};

use crate::spoken::{Said, Wire};

const TOOL: &str = "please run tool number ";
const WAIT: &str = "please wait number ";

/// Tools that run a command, by the names that agents give them.
const SHELLS: [&str; 6] =
    ["Bash", "run_shell_command", "bash", "exec_command", "shell_command", "shell"];

/// What the user says to have a command run.
pub(crate) fn run_tool(number: u32) -> String {
    format!("{TOOL}{number}")
}

/// What the user says to get no answer.
pub(crate) fn wait(number: u32) -> String {
    format!("{WAIT}{number}")
}

/// The file that the command makes.
pub(crate) fn made(number: u32) -> String {
    format!("made-{number}.txt")
}

/// Answers any request; the ones to wait wait for the gate.
pub(crate) fn answer(request: &CapturedRequest, gate: &Gate) -> Answer {
    let wire = wire(&request.path);
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let text = wire.conversation(&body).to_string();
    let (tool, wait) = (highest(&text, TOOL), highest(&text, WAIT));
    if wait > tool {
        return Answer::raw(wire.stream(&Said::text("Waited."))).begins_after(gate);
    }
    let said = match tool {
        None => Said::text("Well."),
        Some(number) => match shell(&body) {
            Some((name, input)) if !text.contains(&command(number)) => {
                let input = input(&command(number));
                Said::only_calling(&[(&format!("call_{number}"), &name, input)])
            }
            _ => Said::text(&format!("Done {number}.")),
        },
    };
    Answer::raw(wire.stream(&said))
}

fn command(number: u32) -> String {
    format!("echo tool-ran-{number} > {}", made(number))
}

/// The highest number after these words.
fn highest(text: &str, words: &str) -> Option<u32> {
    let found = text.match_indices(words);
    let numbers = found.filter_map(|(at, _)| read_number(&text[at + words.len()..]));
    numbers.max()
}

fn read_number(text: &str) -> Option<u32> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn wire(path: &str) -> Wire {
    let path = path.split('?').next().unwrap_or_default();
    match path {
        _ if path.ends_with("/messages") => Wire::Anthropic,
        _ if path.ends_with("/responses") => Wire::Responses,
        _ if path.contains(":streamGenerateContent") => Wire::Gemini,
        _ => Wire::Chat,
    }
}

/// The tool of this request that runs commands, and what makes its input of a command: agents call it by one name or the other, and
/// refuse names that they do not know.
fn shell(body: &Value) -> Option<(String, impl Fn(&str) -> Value)> {
    let tools = body["tools"].as_array()?;
    let declared = |tool: &Value| tool["functionDeclarations"].as_array().cloned();
    let all: Vec<Value> = tools
        .iter()
        .flat_map(|tool| declared(tool).unwrap_or_else(|| vec![tool.clone()]))
        .map(|tool| if tool["function"].is_object() { tool["function"].clone() } else { tool })
        .collect();
    let find = |shell: &&str| all.iter().find(|tool| tool["name"] == **shell);
    let tool = SHELLS.iter().find_map(find)?;
    let schemas = ["input_schema", "parameters", "parametersJsonSchema"];
    let fields: Vec<String> = schemas
        .iter()
        .find_map(|name| tool[*name]["properties"].as_object())
        .into_iter()
        .flat_map(Map::keys)
        .cloned()
        .collect();
    let input = move |command: &str| {
        let given = [
            ("command", json!(command)),
            ("cmd", json!(command)),
            ("description", json!("makes a file")),
            ("is_background", json!(false)),
            // Out of the agent's own sandbox: that is what it asks about.
            ("sandbox_permissions", json!("require_escalated")),
            ("justification", json!("May it?")),
        ];
        let known = given.into_iter().filter(|(name, _)| fields.iter().any(|it| it == name));
        Value::Object(known.map(|(name, value)| (name.to_owned(), value)).collect())
    };
    Some((tool["name"].as_str()?.to_owned(), input))
}
