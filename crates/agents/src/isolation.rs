//! The settings of every agent that say where a session works: in the user's working tree or in one of its own (G-54). The host acts on
//! them; agents only offer them.

use serde_json::{Value, json};

/// Adds the settings to those of an agent.
pub(crate) fn add_settings(schema: &mut Value) {
    let Some(properties) = schema["properties"].as_object_mut() else {
        debug_assert!(false, "a schema has properties");
        return;
    };
    let isolation = json!({
        "type": "string",
        "title": "Isolation",
        "description": "Where the session works: in the directory itself, or in a git worktree with a branch of its own",
        "enum": ["folder", "worktree"],
        "enumLabels": ["Folder", "Worktree"],
    });
    let branch = json!({
        "type": "string",
        "title": "Branch",
        "description": "The branch that a worktree is made from; the one that is checked out if empty",
        "enumDynamic": true,
    });
    properties.insert("isolation".to_owned(), isolation);
    properties.insert("branch".to_owned(), branch);
}
