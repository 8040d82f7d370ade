//! Permission rules for whoever lists and changes them beside the host: the same file, read and judged as a running host does.
//!
//! Must not know: what a session's mode allows.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use agents::permission::ArgumentKind;
pub use agents::permission::{
    CallSubject, FileSubject, Pattern, PatternError, PermissionRule, RULES_FILE, RuleContext,
    RuleEffect, RuleScope, RuleSet, RuleStore, RulesError, SubjectDetail, is_protected, parse,
    template,
};
use wire::file_uri;
use workspace::{Confinement, Workspace};

/// The call of a tool in a directory, from its input as people write it: a command, a path, a URL, or JSON.
pub fn read_call(tool: &str, input: &str, directory: &Path) -> Result<CallSubject, String> {
    let detail = match ArgumentKind::of_tool(tool) {
        ArgumentKind::Command => SubjectDetail::Command(input.to_owned()),
        ArgumentKind::File(_) => {
            let uri = file_uri::uri_of(directory.as_os_str().as_bytes());
            let workspace =
                Workspace::open(&[uri], &Confinement::none()).map_err(|error| error.to_string())?;
            let located = workspace.locate(input).map_err(|error| error.to_string())?;
            SubjectDetail::Path(FileSubject { root: located.root, relative: located.relative })
        }
        ArgumentKind::Page => agents::permission::read_host(input).ok_or_else(|| {
            format!("`{input}` is no URL with a host, such as https://example.com/")
        })?,
        ArgumentKind::Input => {
            let input = serde_json::from_str(input).map_err(|error| {
                format!("the input of `{tool}` is JSON, such as {{\"name\":\"x\"}}: {error}")
            })?;
            SubjectDetail::Input(input)
        }
    };
    Ok(CallSubject::new(tool, detail))
}
