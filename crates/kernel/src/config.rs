//! Configuration by schema: the host's own and a session's. Unknown keys are stripped, bad values named (G-22).

use std::cmp::Ordering;

use agent_api::RenamedSetting;
use serde_json::Value;
use wire::Object;
use wire::state::ConfigState;

/// A value that its schema forbids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` {problem}")]
pub(crate) struct InvalidSetting {
    pub key: String,
    pub problem: String,
}

/// Keys of `values` that `schema` knows, each checked; `readOnly` ones may not be given.
pub(crate) fn known_values(schema: &Value, values: &Object) -> Result<Object, InvalidSetting> {
    let mut known = Object::new();
    for (key, value) in values {
        let Some(property) = schema["properties"].get(key) else { continue };
        let bad = |problem: String| InvalidSetting { key: key.clone(), problem };
        if property["readOnly"] == true {
            return Err(bad("is read-only".to_owned()));
        }
        check(property, value).map_err(bad)?;
        known.insert(key.clone(), value.clone());
    }
    Ok(known)
}

/// `values` over the schema's defaults; a required key without either is an error.
pub(crate) fn with_defaults(schema: &Value, values: &Object) -> Result<Object, InvalidSetting> {
    let mut complete = known_values(schema, values)?;
    if let Some(properties) = schema["properties"].as_object() {
        for (key, property) in properties {
            if let (Some(default), false) = (property.get("default"), complete.contains_key(key)) {
                complete.insert(key.clone(), default.clone());
            }
        }
    }
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !complete.contains_key(key) {
            return Err(InvalidSetting { key: key.to_owned(), problem: "is required".to_owned() });
        }
    }
    Ok(complete)
}

/// Values under the names of today. A setting that is there under both names has the value of the new one.
pub(crate) fn rename(renamed: &[RenamedSetting], values: &Object) -> Object {
    let mut values = values.clone();
    for setting in renamed {
        if let Some(old) = values.shift_remove(&setting.old_name) {
            values.entry(setting.name.clone()).or_insert(old);
        }
        if let Some(value) = values.get_mut(&setting.name)
            && let Some((_, now)) = setting.values.iter().find(|(old, _)| old == value)
        {
            *value = now.clone();
        }
    }
    values
}

/// Brings the configuration of a session up to date that was stored when its settings had other names. A value that is
/// not allowed any more becomes the default.
pub(crate) fn renew(schema: &Value, renamed: &[RenamedSetting], config: &mut ConfigState) {
    let is_old = |setting: &RenamedSetting| {
        let known = config.schema["properties"].get(&setting.old_name);
        known.is_some() || config.values.contains_key(&setting.old_name)
    };
    if !renamed.iter().any(is_old) {
        return; // nothing in it was renamed
    }
    let mut values = rename(renamed, &config.values);
    values.retain(|key, value| check(&schema["properties"][key], value).is_ok());
    if let Ok(values) = with_defaults(schema, &values) {
        config.schema = schema.clone();
        config.values = values;
    }
}

/// Whether a session's value may change while it lives (H-117).
pub(crate) fn is_mutable(schema: &Value, key: &str) -> bool {
    schema["properties"][key]["sessionMutable"] == true
}

fn check(property: &Value, value: &Value) -> Result<(), String> {
    let wanted = property["type"].as_str().unwrap_or("");
    let fits = match wanted {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.as_i64().is_some() || value.as_u64().is_some(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    if !fits {
        return Err(format!("must be of type {wanted}"));
    }
    let beyond = |bound: &str, wrong: Ordering| {
        let bound = property[bound].as_f64();
        let order = value.as_f64().zip(bound).and_then(|(value, bound)| value.partial_cmp(&bound));
        order == Some(wrong)
    };
    if beyond("minimum", Ordering::Less) {
        return Err(format!("must be at least {}", property["minimum"]));
    }
    if beyond("maximum", Ordering::Greater) {
        return Err(format!("must be at most {}", property["maximum"]));
    }
    if let Some(allowed) = property["enum"].as_array()
        && property["enumDynamic"] != true
        && !allowed.contains(value)
    {
        let names: Vec<String> = allowed.iter().map(Value::to_string).collect();
        return Err(format!("must be one of {}", names.join(", ")));
    }
    if let Some(items) = value.as_array() {
        let count = items.len() as u64;
        if property["minItems"].as_u64().is_some_and(|min| count < min)
            || property["maxItems"].as_u64().is_some_and(|max| count > max)
        {
            return Err("has too few or too many items".to_owned());
        }
        if property["items"].is_object() {
            items.iter().try_for_each(|item| check(&property["items"], item))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_read_by_their_old_names_and_stored_sessions_renewed() {
        let renamed = [RenamedSetting {
            old_name: "speed".to_owned(),
            name: "pace".to_owned(),
            values: vec![(json!("quick"), json!("fast"))],
        }];
        let object = |value: Value| value.as_object().cloned().unwrap();
        for (values, expected) in [
            (json!({"speed": "quick"}), json!({"pace": "fast"})),
            (json!({"speed": "slow", "x": 1}), json!({"x": 1, "pace": "slow"})),
            (json!({"speed": "slow", "pace": "quick"}), json!({"pace": "fast"})),
            (json!({"x": 1}), json!({"x": 1})),
        ] {
            assert_eq!(Value::Object(rename(&renamed, &object(values))), expected);
        }
        let property = json!({"type": "string", "enum": ["slow", "fast"], "default": "slow"});
        let schema = json!({"properties": {"pace": property}});
        let old = |values: Value| ConfigState {
            schema: json!({"properties": {"speed": {"type": "string"}}}),
            values: object(values),
            extra: Object::new(),
        };
        for (value, now) in [("quick", "fast"), ("slow", "slow"), ("none", "slow")] {
            let mut config = old(json!({"speed": value}));
            renew(&schema, &renamed, &mut config);
            assert_eq!(Value::Object(config.values), json!({"pace": now}));
            assert_eq!(config.schema, schema);
        }
        let mut other = ConfigState { schema: json!({"properties": {}}), ..old(json!({"x": 1})) };
        let before = other.clone();
        renew(&schema, &renamed, &mut other);
        assert_eq!(other, before, "nothing in it was renamed");
    }

    #[test]
    fn unknown_keys_go_and_bad_values_are_named() {
        let schema = json!({"type": "object", "properties": {
            "pace": {"type": "string", "title": "Pace", "enum": ["a", "b"], "default": "a", "sessionMutable": true},
            "fixed": {"type": "integer", "title": "Fixed", "readOnly": true},
        }});
        let values = |value: Value| value.as_object().cloned().unwrap();
        let known = known_values(&schema, &values(json!({"pace": "b", "isolation": 1}))).unwrap();
        assert_eq!(Value::Object(known), json!({"pace": "b"}));
        assert_eq!(
            Value::Object(with_defaults(&schema, &Object::new()).unwrap()),
            json!({"pace": "a"})
        );
        let problem_with =
            |value: Value| known_values(&schema, &values(value)).unwrap_err().to_string();
        assert_eq!(problem_with(json!({"pace": "c"})), r#"`pace` must be one of "a", "b""#);
        assert_eq!(problem_with(json!({"pace": 3})), "`pace` must be of type string");
        assert_eq!(problem_with(json!({"fixed": 3})), "`fixed` is read-only");
        let schema =
            json!({"properties": {"heat": {"type": "number", "minimum": 0, "maximum": 1.5}}});
        let problem_with =
            |value: Value| known_values(&schema, &values(value)).map_err(|bad| bad.to_string());
        for fits in [json!(0), json!(1.5), json!(1)] {
            assert!(problem_with(json!({"heat": fits})).is_ok());
        }
        let low = "`heat` must be at least 0".to_owned();
        assert_eq!(problem_with(json!({"heat": -0.1})), Err(low));
        let high = "`heat` must be at most 1.5".to_owned();
        assert_eq!(problem_with(json!({"heat": 2})), Err(high));
    }
}
