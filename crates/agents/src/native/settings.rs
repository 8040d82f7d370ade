//! The settings of a model as clients read them: what the configuration says, with what the protocol's schema cannot do
//! without.
//!
//! Promises: a schema that is published can be decoded by every client; what cannot be made one is an error that names the
//! setting.
//! Must not know: where settings come from, what a server makes of them.

use serde_json::{Value, json};
use wire::Object;
use wire::published::state::ConfigSchema;

/// The `configSchema` of a model; an error says which of its settings cannot be published, and why.
pub(super) fn schema_of(settings: &Value) -> Result<Value, String> {
    let Value::Object(settings) = settings else {
        return Err("they are tables by name, such as `[models.settings.temperature]`".to_owned());
    };
    let mut properties = Object::new();
    for (name, setting) in settings {
        let mut setting = setting.clone();
        add_titles(&mut setting, name);
        let one = json!({"type": "object", "properties": {name: setting}});
        if let Err(error) = serde_json::from_value::<ConfigSchema>(one) {
            return Err(format!("`{name}` is no schema of a setting: {error}"));
        }
        properties.insert(name.clone(), setting);
    }
    Ok(json!({"type": "object", "properties": properties}))
}

/// Every schema has a title for people; its name is one, if it has no other.
fn add_titles(schema: &mut Value, name: &str) {
    let Some(fields) = schema.as_object_mut() else {
        return; // refused when it is decoded
    };
    if !fields.contains_key("title") {
        fields.insert("title".to_owned(), json!(title_of(name)));
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        for (name, property) in properties {
            add_titles(property, name);
        }
    }
    for nested in ["items", "additionalProperties"] {
        if let Some(nested) = fields.get_mut(nested) {
            add_titles(nested, name);
        }
    }
}

/// `reasoning_effort` reads "Reasoning effort".
pub(super) fn title_of(name: &str) -> String {
    let words = name.replace(['_', '-'], " ");
    let mut letters = words.trim().chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_without_a_title_is_called_by_its_name() {
        let settings = json!({
            "reasoning_effort": {"type": "string", "enum": ["low", "high"]},
            "top-p": {"type": "number", "title": "Nucleus"},
            "stop": {"type": "array", "items": {"type": "string"}},
            "extra": {"type": "object", "properties": {"seed": {"type": "integer"}}},
        });
        let schema = schema_of(&settings).unwrap();
        let decoded: ConfigSchema = serde_json::from_value(schema).unwrap();
        let title = |name: &str| decoded.properties[name].title.as_str();
        assert_eq!(title("reasoning_effort"), "Reasoning effort");
        assert_eq!(title("top-p"), "Nucleus");
        let items = decoded.properties["stop"].items.as_ref().unwrap();
        assert_eq!(items.title, "Stop");
        let extra = decoded.properties["extra"].properties.as_ref().unwrap();
        assert_eq!(extra["seed"].title, "Seed");
    }

    #[test]
    fn what_is_no_schema_is_named() {
        for (settings, why) in [
            (json!({"temperature": {"minimum": 0}}), "missing field `type`"),
            (json!({"temperature": 0.5}), "temperature"),
            (json!({"temperature": {"type": ["number", "null"]}}), "temperature"),
            (json!({"temperature": {"type": "number", "title": 1}}), "temperature"),
            (json!([]), "tables by name"),
        ] {
            let error = schema_of(&settings).unwrap_err();
            assert!(error.contains(why), "{settings}: {error}");
        }
    }
}
