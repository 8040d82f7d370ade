//! A model that does what it is asked for in plain words, in the wire format it is asked in: `please run tool number 3` runs a command
//! once, `please wait` is not answered, everything else is answered with a word.

use serde_json::{Value, json};
use testkit::{Answer, CapturedRequest, Gate};

use crate::spoken::{Said, Wire};

const TOOL: &str = "please run tool number ";
pub(crate) const WAIT: &str = "please wait";

/// Tools that run a command, by the names that agents give them.
const SHELLS: [&str; 6] = [
    "Bash",
    "run_shell_command",
    "bash",
    "exec_command",
    "shell_command",
    "shell",
];

/// What the user says to have a command run.
pub(crate) fn run_tool(number: u32) -> String {
    format!("{TOOL}{number}")
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
    let tool = text.rfind(TOOL);
    if text.rfind(WAIT) > tool {
        return Answer::raw(wire.stream(&Said::text("Waited."))).begins_after(gate);
    }
    let number = tool.and_then(|at| read_number(&text[at + TOOL.len()..]));
    let said = match number {
        None => Said::text("Well."),
        Some(number) => match shell(&body) {
            Some(name) if !text.contains(&command(number)) => {
                // Agents call the command by one name or the other.
                let command = command(number);
                let input =
                    json!({"command": command, "cmd": command, "description": "makes a file"});
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

/// The tool of this request that runs commands.
fn shell(body: &Value) -> Option<String> {
    let tools = body["tools"].as_array()?;
    let declared = |tool: &Value| tool["functionDeclarations"].as_array().cloned();
    let names: Vec<String> = tools
        .iter()
        .flat_map(|tool| declared(tool).unwrap_or_else(|| vec![tool.clone()]))
        .filter_map(|tool| {
            let name = tool["name"].as_str().or(tool["function"]["name"].as_str());
            name.map(str::to_owned)
        })
        .collect();
    let mut shells = SHELLS.iter().map(|shell| (*shell).to_owned());
    shells.find(|shell| names.contains(shell))
}
