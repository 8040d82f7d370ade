//! Keys in the `_meta` of a part. Clients may ignore them.

/// On a notification: the steering `Message` that was inserted there. Nothing else in a turn holds it.
pub const STEERING: &str = "greenroom.steering";

/// On a tool call: what kind of tool it is (`terminal`, `read`, `search`, `subagent`). VS Code draws such calls in a way of
/// their own.
pub const TOOL_KIND: &str = "toolKind";
