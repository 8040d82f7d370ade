//! The fields of a form, as questions.

use agent_client_protocol_schema::v1 as acp;
use serde::Serialize;
use serde_json::{Value, json};

use super::{CUSTOM, FieldKind, FormField, OPTIONS_MAX, QUESTIONS_MAX, long};
use crate::acp::label::label;

/// The fields in this order.
pub(super) fn read_schema(
    schema: &acp::ElicitationSchema,
    order: &[String],
) -> Option<(Vec<Value>, Vec<FormField>)> {
    if schema.properties.len() > 2 * QUESTIONS_MAX {
        return None;
    }
    let required = schema.required.as_deref().unwrap_or_default();
    let mut questions = Vec::new();
    let mut fields = Vec::new();
    for id in order {
        let property = schema.properties.get(id)?;
        let base = id.strip_suffix(CUSTOM);
        if base.is_some_and(|base| schema.properties.contains_key(base)) {
            continue; // asked with the other
        }
        let custom = format!("{id}{CUSTOM}");
        let custom = schema.properties.contains_key(&custom).then_some(custom);
        let (mut question, kind) = read_property(id, property)?;
        question["required"] = json!(required.contains(id));
        if custom.is_some() && matches!(kind, FieldKind::One | FieldKind::Many) {
            question["allowFreeformInput"] = json!(true);
        }
        questions.push(question);
        fields.push(FormField { id: id.clone(), kind, custom });
    }
    Some((questions, fields))
}

fn read_property(
    id: &str,
    property: &acp::ElicitationPropertySchema,
) -> Option<(Value, FieldKind)> {
    use acp::ElicitationPropertySchema as P;
    let head = |kind: &str, title: &Option<String>, description: &Option<String>| {
        let title = title.as_deref().map_or_else(|| label(id, 100), |title| label(title, 200));
        let message = description.as_deref().map_or_else(|| title.clone(), long);
        json!({"kind": kind, "id": id, "title": title, "message": message})
    };
    Some(match property {
        P::String(string) => match read_choices(string) {
            Some(options) => {
                let question = head("single-select", &string.title, &string.description);
                (put(question, [("options", Some(json!(options)))]), FieldKind::One)
            }
            None => {
                let question = head("text", &string.title, &string.description);
                let default = string.default.as_ref();
                let bounds = bounds(string.min_length, string.max_length, default);
                (put(question, bounds), FieldKind::Text)
            }
        },
        P::Number(number) => {
            let bounds = bounds(number.minimum, number.maximum, number.default);
            let question = head("number", &number.title, &number.description);
            (put(question, bounds), FieldKind::Number)
        }
        P::Integer(number) => {
            let bounds = bounds(number.minimum, number.maximum, number.default);
            let question = head("integer", &number.title, &number.description);
            (put(question, bounds), FieldKind::Integer)
        }
        P::Boolean(boolean) => {
            let default = [("defaultValue", boolean.default.map(|value| json!(value)))];
            (
                put(head("boolean", &boolean.title, &boolean.description), default),
                FieldKind::Boolean,
            )
        }
        P::Array(array) => {
            let options = read_items(&array.items)?;
            let fields = [
                ("options", Some(json!(options))),
                ("min", array.min_items.map(|min| json!(min))),
                ("max", array.max_items.map(|max| json!(max))),
            ];
            (put(head("multi-select", &array.title, &array.description), fields), FieldKind::Many)
        }
        _ => return None,
    })
}

fn read_items(items: &acp::MultiSelectItems) -> Option<Vec<Value>> {
    match items {
        acp::MultiSelectItems::String(items) => Some(read_names(&items.values)),
        acp::MultiSelectItems::Titled(items) => Some(read_options(&items.options)),
        _ => None,
    }
}

/// A question with those of these fields that there are.
fn put<const N: usize>(mut question: Value, fields: [(&str, Option<Value>); N]) -> Value {
    for (name, value) in fields {
        if let (Some(question), Some(value)) = (question.as_object_mut(), value) {
            question.insert(name.to_owned(), value);
        }
    }
    question
}

/// Lists the fields that bound an answer and fill it in.
fn bounds<B: Serialize, D: Serialize>(
    min: Option<B>,
    max: Option<B>,
    default: Option<D>,
) -> [(&'static str, Option<Value>); 3] {
    [
        ("min", min.map(|min| json!(min))),
        ("max", max.map(|max| json!(max))),
        ("defaultValue", default.map(|value| json!(value))),
    ]
}

/// The values of a text that has only some.
fn read_choices(string: &acp::StringPropertySchema) -> Option<Vec<Value>> {
    let titled = string.one_of.as_ref().map(|options| read_options(options));
    titled.or_else(|| string.enum_values.as_ref().map(|values| read_names(values)))
}

fn read_options(options: &[acp::EnumOption]) -> Vec<Value> {
    let options = options.iter().take(OPTIONS_MAX).map(|option| {
        let mut read = json!({"id": option.value, "label": label(&option.title, 300)});
        if let Some(description) = &option.description {
            read["description"] = json!(label(description, 500));
        }
        read
    });
    options.collect()
}

fn read_names(names: &[String]) -> Vec<Value> {
    let names = names.iter().take(OPTIONS_MAX);
    names.map(|name| json!({"id": name, "label": label(name, 300)})).collect()
}
