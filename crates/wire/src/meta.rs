//! Keys in the `_meta` of a part, a model or an agent. Clients may ignore them.

/// On a notification: the steering `Message` that was inserted there. Nothing else in a turn holds it.
pub const STEERING: &str = "greenroom.steering";

/// On a tool call: what kind of tool it is (`terminal`, `read`, `search`, `fetch`, `plan`, `subagent`). VS Code draws such calls in a way of
/// their own.
pub const TOOL_KIND: &str = "toolKind";

/// On a tool call: the files that it changed or was about to change, each with its content before and after.
pub const EDITS: &str = "greenroom.edits";

/// On a tool call of the host's own: which turn's changes to files it takes back, and by which command. No model made the
/// call, and none sees it.
pub const RESTORE: &str = "greenroom.restore";

/// On a model: the environment variable with the key that is the only reason why it is there.
pub const KEY_VARIABLE: &str = "greenroom.keyVariable";

/// On a model: the environment variable that names its server, and the server: `{variable, authority}`.
pub const SERVER: &str = "greenroom.server";

/// On an agent: it has commands of its own, which the host need not know (AG-28).
pub const OWN_COMMANDS: &str = "x-ownCommands";

/// Whether some JSON may hold a key. Cheap: the JSON is not read.
pub fn may_hold(json: &[u8], key: &str) -> bool {
    memchr::memmem::find(json, key.as_bytes()).is_some()
}
