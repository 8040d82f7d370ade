//! What the model is told before the conversation.

use crate::tool::{Nature, Tool};

use super::consent::Mode;

/// `directories` are `file:` URIs.
pub(super) fn system(directories: &[String], tools: &[&dyn Tool], mode: Mode) -> String {
    let mut text = String::from(
        "You are a coding agent. You work for the user in their working directory and talk to them in short, \
         plain sentences, in the language they write in.\n",
    );
    if tools.is_empty() {
        text.push_str("You have no tools: say what to do, and do not pretend to have done it.\n");
        return text;
    }
    let roots: Vec<&str> = directories
        .iter()
        .map(|uri| uri.strip_prefix("file://").unwrap_or(uri))
        .collect();
    text.push_str(&format!("\nWorking directory: {}\n", roots.join(", ")));
    text.push_str(&format!("Operating system: {}\n", std::env::consts::OS));
    text.push_str(
        "\nUse your tools to look before you answer and to do what is asked. Read a file before you change it. \
         Prefer small exact edits to rewriting whole files. Paths are relative to the working directory. Check what \
         you did. When a call fails, read why and try something else. When the user denies a call, do not repeat it.\n",
    );
    if mode == Mode::ReadOnly {
        let forbidden: Vec<&str> = tools
            .iter()
            .filter(|tool| tool.nature() != Nature::Reads)
            .map(|tool| tool.name())
            .collect();
        text.push_str(&format!(
            "\nThis session is read only: {} are refused. Say what you would change instead.\n",
            forbidden.join(", ")
        ));
    }
    text
}
