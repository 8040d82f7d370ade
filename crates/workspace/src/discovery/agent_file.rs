//! Custom agents: Markdown files whose body is what the model is told (CU-3).

use super::checked_text::{check_items, is_name};
use super::customization::{Child, ChildContent, Container, CustomAgent};
use super::scan::Scan;
use super::skill_file::{invoked_by, is_skill_name};
use super::{FILE_BYTES_MAX, front_matter};
use crate::directory::Directory;

/// Names of files, the longest ending first.
const ENDINGS: [&str; 3] = [".agent.md", ".chatmode.md", ".md"];

pub(super) fn find(scan: &mut Scan<'_>, directory: &Directory, container: &mut Container) {
    for file in scan.files(directory, &ENDINGS) {
        let Some(text) = scan.read_whole(&file.path, FILE_BYTES_MAX) else {
            // It is gone by now, or a warning says what is wrong with it.
            continue;
        };
        match parse(&text, &file.stem) {
            Ok((name, description, agent)) => {
                let child = Child {
                    name,
                    uri: scan.uri(&file.path),
                    range: None,
                    description,
                    content: ChildContent::Agent(agent),
                };
                if !scan.add_child(container, child, &file.path) {
                    return;
                }
            }
            Err(reason) => scan.warn_invalid(&file.path, &reason),
        }
    }
}

fn parse(text: &str, stem: &str) -> Result<(String, Option<String>, CustomAgent), String> {
    let document = front_matter::parse(text)?;
    let name = document.field("name").unwrap_or(stem);
    if !is_skill_name(&name.replace(' ', "-")) {
        return Err("its name cannot be shown".to_owned());
    }
    if document.body.trim().is_empty() {
        return Err("it says nothing to the model".to_owned());
    }
    if document.is_map("tools") {
        // Without its limits it would be another agent.
        return Err("its `tools` is not a list".to_owned());
    }
    // `tools:` with nothing after it says nothing; `tools: []` says that there are none.
    let tools = document.list("tools");
    let tools = tools.filter(|tools| !tools.is_empty() || document.field("tools").is_some());
    check_items("tools", tools.as_deref().unwrap_or_default())?;
    let model = document.field("model").filter(|model| *model != "inherit");
    if model.is_some_and(|model| !is_name(model)) {
        return Err("its `model` is too long or cannot be shown".to_owned());
    }
    let agent =
        CustomAgent { model: model.map(str::to_owned), tools, invoked_by: invoked_by(&document) };
    let description = super::describe(document.field("description"), document.body);
    Ok((name.to_owned(), description, agent))
}
