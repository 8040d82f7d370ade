//! The JSON Schemas in `docs/schema` describe the types of extensions: they accept whatever the types encode, and refuse
//! whatever the types refuse. Values are varied field by field, so that a field that is renamed, added, made optional or
//! given another type in one of the two fails here.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wire::ext::compose::{ComposeParams, ComposeResult, ComposedPart, ContextRoom};
use wire::ext::import_session::{ImportSessionParams, ImportedTurn};
use wire::ext::models::{AddModelParams, ModelsResult};
use wire::ext::system_message_transform::{
    SystemMessageSection, SystemMessageTransformOptIn, SystemMessageTransformParams,
    SystemMessageTransformResult, SystemMessageTransformSection, SystemMessageTransformSupport,
};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

fn schema_of(name: &str) -> Value {
    let path = directory().join(format!("{name}.schema.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// As much of JSON Schema as these files use; a keyword that is not checked here is an error.
fn accepts(schema: &Value, value: &Value) -> bool {
    let keywords = schema.as_object().expect("a schema is an object");
    keywords.iter().all(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "title" | "description" => rule.is_string(),
        "type" => match rule.as_str().expect("one type") {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            other => panic!("type {other} is not checked"),
        },
        "minimum" => value.as_i64() >= rule.as_i64(),
        "maximum" => value.as_i64() <= rule.as_i64(),
        "items" => value.as_array().into_iter().flatten().all(|item| accepts(rule, item)),
        "required" => rule
            .as_array()
            .expect("names")
            .iter()
            .all(|name| value.get(name.as_str().expect("a name")).is_some()),
        "properties" => rule
            .as_object()
            .expect("schemas")
            .iter()
            .all(|(name, field)| value.get(name).is_none_or(|value| accepts(field, value))),
        // None of these schemas has both this and `properties`.
        "additionalProperties" => {
            let fields = value.as_object().into_iter().flatten();
            fields.into_iter().all(|(_, value)| accepts(rule, value))
        }
        other => panic!("keyword {other} is not checked"),
    })
}

/// The value with something wrong, or only unusual, at each of its positions in turn.
fn variations(value: &Value) -> Vec<Value> {
    let mut all = vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(7),
        json!(1.5),
        json!(u64::MAX),
        json!("x"),
        json!([]),
        json!([7]),
        json!(["x"]),
        json!({}),
        json!({"x": 7}),
        json!({"x": {}}),
    ];
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let mut without = fields.clone();
                without.shift_remove(name);
                all.push(Value::Object(without));
                for varied in variations(field) {
                    let mut with = fields.clone();
                    with.insert(name.clone(), varied);
                    all.push(Value::Object(with));
                }
            }
            let mut more = fields.clone();
            more.insert("unknown".to_owned(), json!({"content": "x"}));
            all.push(Value::Object(more));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                for varied in variations(item) {
                    let mut with = items.clone();
                    with[index] = varied;
                    all.push(Value::Array(with));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    all
}

fn check<T: Serialize + DeserializeOwned>(name: &str, samples: &[T]) {
    let schema = schema_of(name);
    let (mut accepted, mut refused) = (0, 0);
    for sample in samples {
        let encoded = serde_json::to_value(sample).expect("JSON");
        assert!(accepts(&schema, &encoded), "{name} refuses {encoded}");
        let fields = schema["properties"].as_object().expect("properties");
        let described: BTreeSet<&String> = fields.keys().collect();
        for field in encoded.as_object().expect("an object").keys() {
            assert!(described.contains(field), "{name} does not describe `{field}`");
        }
        for value in variations(&encoded) {
            let read = serde_json::from_value::<T>(value.clone());
            let reads = read.is_ok();
            // The types also read what they never encode: null for an absent field, a list for a struct, fields they do
            // not know. The schemas need not accept those.
            let encodes =
                read.is_ok_and(|read| serde_json::to_value(read).ok() == Some(value.clone()));
            if reads && !encodes {
                continue;
            }
            assert_eq!(accepts(&schema, &value), reads, "{name}: {value}");
            if reads { accepted += 1 } else { refused += 1 }
        }
    }
    assert!(accepted > 0 && refused > 10, "{name}: {accepted} accepted, {refused} refused");
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn sections() -> BTreeMap<String, SystemMessageTransformSection> {
    let section = |content| SystemMessageTransformSection { content: text(content) };
    BTreeMap::from([(text("tone"), section("")), (text("identity"), section("You are"))])
}

#[test]
fn schemas_accept_and_refuse_what_the_types_do() {
    let bare = SystemMessageSection {
        id: text("tone"),
        label: text("Tone"),
        description: None,
        restricted: None,
    };
    let full = SystemMessageSection {
        description: Some(text("How it speaks")),
        restricted: Some(true),
        ..bare.clone()
    };
    check("system-message-section", &[bare, full]);
    check(
        "system-message-transform-opt-in",
        &[
            SystemMessageTransformOptIn { sections: vec![] },
            SystemMessageTransformOptIn { sections: vec![text("tone"), text("x")] },
        ],
    );
    check(
        "system-message-transform-params",
        &[SystemMessageTransformParams { channel: text("ahp-session:/1"), sections: sections() }],
    );
    check(
        "system-message-transform-result",
        &[SystemMessageTransformResult { sections: sections() }],
    );
    check(
        "system-message-transform-support",
        &[
            SystemMessageTransformSupport { version: 1 },
            SystemMessageTransformSupport { version: u32::MAX },
        ],
    );
}

#[test]
fn the_schemas_of_models_accept_and_refuse_what_the_types_do() {
    let model =
        json!({"id": "m", "base_url": "http://h/v1"}).as_object().expect("an object").clone();
    check("add-model-params", &[AddModelParams { model }]);
    let reloaded = ModelsResult { provider: text("native"), model: None };
    let added = ModelsResult { model: Some(text("m")), ..reloaded.clone() };
    check("models-result", &[reloaded, added]);
}

#[test]
fn the_schemas_of_a_check_accept_and_refuse_what_the_types_do() {
    let object = |value: Value| value.as_object().expect("an object").clone();
    let bare = ComposeParams {
        channel: text("ahp-chat:/c"),
        message: object(json!({"text": "hi"})),
        model: None,
    };
    let full = ComposeParams { model: Some(object(json!({"id": "m"}))), ..bare.clone() };
    check("compose-params", &[bare, full]);
    let part = ComposedPart {
        part: 0,
        kind: text("text"),
        name: None,
        treatment: text("text"),
        became: text("text"),
        why: None,
        bytes: 2,
        tokens: None,
    };
    let named = ComposedPart {
        name: Some(text("p.png")),
        why: Some(text("it is too large")),
        tokens: Some(3),
        ..part.clone()
    };
    let bare = ComposeResult {
        model: None,
        target: text("anthropic"),
        reaches_model: true,
        parts: vec![part, named],
        diagnostics: vec![text("x")],
        tokens: 3,
        tokens_complete: false,
        cost: None,
        context: None,
    };
    let full = ComposeResult {
        model: Some(text("m")),
        cost: Some(1.5),
        context: Some(ContextRoom { size: 9, used: Some(4), left: 5 }),
        ..bare.clone()
    };
    check("compose-result", &[bare, full]);
}

#[test]
fn the_schemas_of_imports_accept_and_refuse_what_the_types_do() {
    let params = ImportSessionParams { session: text("{}"), turns: text("") };
    check("import-session-params", &[params]);
    let turn = ImportedTurn {
        chat: text("ahp-chat:/c"),
        turn: json!({"id": "t"}).as_object().expect("an object").clone(),
    };
    check("imported-turn", &[turn]);
}

#[test]
fn every_committed_schema_is_checked_here() {
    let files = std::fs::read_dir(directory()).expect("docs/schema");
    let names: BTreeSet<String> = files
        .map(|file| file.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let checked = [
        "add-model-params",
        "compose-params",
        "compose-result",
        "import-session-params",
        "imported-turn",
        "models-result",
        "system-message-section",
        "system-message-transform-opt-in",
        "system-message-transform-params",
        "system-message-transform-result",
        "system-message-transform-support",
    ]
    .map(|name| format!("{name}.schema.json"));
    assert_eq!(names, BTreeSet::from(checked));
}
