//! `systemMessageTransform`: a client that opted in rewrites sections of an agent's system prompt, on every render,
//! under the host's policy. Proposed for AHP and not adopted, so it travels as an extension (G-33 to G-36).
//!
//! Promises: a client that says nothing has not opted in; unknown fields never make reading fail. The types are described by
//! the JSON Schemas in `docs/schema`, which `tests/schemas.rs` holds to them.
//! Must not know: who is asked when; what a section means.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Object, Version};

/// The method for clients that opted in by the field of the proposal (G-33).
pub const METHOD: &str = "systemMessageTransform";
/// The method for all others; also the key in `_meta` of an active client, of `initialize` and of its result.
pub const X_METHOD: &str = "x-systemMessageTransform";
/// The field of an active client that the proposal names.
pub const FIELD: &str = "systemMessageTransform";
/// The catalogue: a field of `AgentInfo`, and a key in `_meta` of the root state, by provider.
pub const CATALOGUE_FIELD: &str = "systemMessageSections";
pub const CATALOGUE_KEY: &str = "x-systemMessageSections";
/// What `InitializeResult._meta` says of this host.
pub const EXTENSION_VERSION: u32 = 1;
/// Clients that negotiated an older version are not asked. The proposal counted from 0.2.0.
pub const SINCE: Version = Version::new(0, 3, 0);

/// One section of an agent's system prompt, as the catalogue lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemMessageSection {
    /// Opaque and defined by the agent; the key in requests and results.
    pub id: String,
    /// What people call it.
    pub label: String,
    /// What it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The host never hands this section out, whoever opts in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restricted: Option<bool>,
}

/// The opt-in of an active client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemMessageTransformOptIn {
    /// Ids of the sections the client wants to rewrite. Those the host does not know are ignored.
    pub sections: Vec<String>,
}

/// A section's text, sent to the client or back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemMessageTransformSection {
    /// The text as the model would read it. Its form may change between renders.
    pub content: String,
}

/// Host to client: rewrite these sections. All sections of one render come in one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemMessageTransformParams {
    /// URI of the session.
    pub channel: String,
    /// Sections by id; only such as the client opted in to.
    pub sections: BTreeMap<String, SystemMessageTransformSection>,
}

/// Client to host: the rewritten sections. A section that is left out stays as it was; others than were asked for are
/// ignored. What does not have this shape counts as a failure: every section stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemMessageTransformResult {
    /// Rewritten sections by id.
    pub sections: BTreeMap<String, SystemMessageTransformSection>,
}

/// How a host says in the `_meta` of its `InitializeResult` that it knows this extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemMessageTransformSupport {
    /// The version of the extension, 1.
    pub version: u32,
}

/// Whether a client of this version may be asked at all.
pub fn may_be_asked(version: Version) -> bool {
    version >= SINCE
}

/// The `_meta` of an `InitializeResult`.
pub fn support() -> Value {
    json!({X_METHOD: SystemMessageTransformSupport { version: EXTENSION_VERSION }})
}

/// By what a client opted in; it decides what the request is called (G-33).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// The field of the proposal.
    Field,
    /// `_meta`, the action, or the default of the connection.
    Extension,
}

impl Carrier {
    pub fn method(self) -> &'static str {
        match self {
            Self::Field => METHOD,
            Self::Extension => X_METHOD,
        }
    }
}

/// What a client opted in to, and by which means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptIn {
    pub carrier: Carrier,
    pub sections: Vec<String>,
}

/// What an active client's entry says of its own; nothing if it says nothing. An entry that lists no section, or none that
/// can be read, wants none: no default replaces it.
pub fn of_entry(entry: &Value) -> Option<OptIn> {
    let present = |value: Option<&Value>| value.filter(|value| !value.is_null()).map(sections_of);
    let field =
        present(entry.get(FIELD)).map(|sections| OptIn { carrier: Carrier::Field, sections });
    field.or_else(|| {
        let meta = entry.get("_meta").and_then(Value::as_object);
        of_meta(meta).map(|sections| OptIn { carrier: Carrier::Extension, sections })
    })
}

/// What a `_meta` says: of an active client, or of `initialize`.
pub fn of_meta(meta: Option<&Object>) -> Option<Vec<String>> {
    let opt_in = meta?.get(X_METHOD).filter(|opt_in| !opt_in.is_null())?;
    Some(sections_of(opt_in))
}

fn sections_of(opt_in: &Value) -> Vec<String> {
    let listed = opt_in
        .get("sections")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    listed.map(str::to_owned).collect()
}

/// The entry of an active client after [`ACTION`]: the newest opt-in counts, so the field is removed.
pub fn merge_opt_in(entry: &Value, sections: &[String]) -> Value {
    let mut entry = entry.clone();
    if let Some(fields) = entry.as_object_mut() {
        fields.shift_remove(FIELD);
        let meta = fields.entry("_meta").or_insert_with(|| json!({}));
        if !meta.is_object() {
            *meta = json!({});
        }
        meta[X_METHOD] = json!({"sections": sections});
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(sections: &[&str]) -> Option<OptIn> {
        opt_in(Carrier::Field, sections)
    }

    fn extension(sections: &[&str]) -> Option<OptIn> {
        opt_in(Carrier::Extension, sections)
    }

    fn opt_in(carrier: Carrier, sections: &[&str]) -> Option<OptIn> {
        let sections = sections.iter().map(|id| (*id).to_owned()).collect();
        Some(OptIn { carrier, sections })
    }

    #[test]
    fn an_entry_opts_in_by_field_or_by_meta() {
        let meta = json!({X_METHOD: {"sections": ["tone"]}});
        for (entry, expected) in [
            (json!({"clientId": "c"}), None),
            (json!({FIELD: {"sections": ["a", "b"]}}), field(&["a", "b"])),
            (json!({"_meta": meta}), extension(&["tone"])),
            (json!({FIELD: {"sections": ["a"]}, "_meta": meta}), field(&["a"])),
            (json!({FIELD: null, "_meta": meta}), extension(&["tone"])),
            (json!({FIELD: {"sections": []}, "_meta": meta}), field(&[])),
            (json!({FIELD: {"sections": ["a", 7, null]}}), field(&["a"])),
            (json!({FIELD: {"sections": "a"}}), field(&[])),
            (json!({FIELD: 7}), field(&[])),
            (json!({"_meta": 7}), None),
            (json!({"_meta": {X_METHOD: []}}), extension(&[])),
            (json!(null), None),
        ] {
            assert_eq!(of_entry(&entry), expected, "{entry}");
        }
        assert_eq!(of_meta(meta.as_object()), Some(vec!["tone".to_owned()]));
        assert_eq!(of_meta(None), None);
    }

    #[test]
    fn the_newest_opt_in_counts() {
        let entry = json!({"clientId": "c", FIELD: {"sections": ["a"]}, "_meta": {"k": 1}});
        let entry = merge_opt_in(&entry, &["b".to_owned()]);
        assert_eq!(of_entry(&entry), extension(&["b"]));
        assert_eq!((&entry["clientId"], &entry["_meta"]["k"]), (&json!("c"), &json!(1)));
        assert_eq!(of_entry(&merge_opt_in(&json!({"_meta": 7}), &[])), extension(&[]));
    }

    #[test]
    fn a_result_has_the_shape_or_counts_as_a_failure() {
        let read = |value: Value| serde_json::from_value::<SystemMessageTransformResult>(value);
        assert!(read(json!({"sections": {"a": {"content": "x", "more": 1}}, "more": 1})).is_ok());
        assert!(read(json!({"sections": {}})).is_ok());
        for bad in [
            json!({}),
            json!(null),
            json!({"sections": []}),
            json!({"sections": {"a": {"content": 7}}}),
            json!({"sections": {"a": {}}}),
            json!({"sections": {"a": "x"}}),
            json!({"sections": {"a": {"content": "x"}, "extra": {"content": null}}}),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn both_served_versions_pass_the_gate_and_older_ones_do_not() {
        for (version, passes) in
            [("1.0.0", true), ("0.9.0", true), ("0.3.0", true), ("0.2.9", false)]
        {
            let version = version.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(may_be_asked(version), passes, "{version}");
        }
    }
}
