//! Shapes of JSON values: the input that the decoder of a published type accepts, as data.
//!
//! Promises: a shape accepts a value if and only if the derived decoder does, with its oddities: a
//! list for a struct, an object for a word, a number for the name of a variant.
//! Must not know: which types there are.

use serde_json::{Map, Value};

use crate::action::ActionKind;

/// The shape of a value.
enum PayloadShape {
    Any,
    Text,
    Flag,
    Number,
    Signed,
    /// A whole number up to this one.
    Unsigned(u64),
    /// One of a closed set of texts.
    Word(Vec<String>),
    List(Box<PayloadShape>),
    /// An object used as a map.
    MapOf(Box<PayloadShape>),
    /// The struct with this position.
    Struct(usize),
    /// A text, or something else.
    TextOr(Box<PayloadShape>),
    /// An object that is not read from a list.
    Object(Vec<ShapeField>),
    /// A closed union: the field that names the variant, and the struct of each variant.
    Variants(String, Vec<(String, usize)>),
    /// A struct whose object has this text in this field.
    Marked(String, String, usize),
}

struct ShapeField {
    name: String,
    is_optional: bool,
    shape: PayloadShape,
}

/// The structs of all payloads.
pub(super) struct Shapes {
    structs: Vec<Vec<ShapeField>>,
    /// The position of each action's struct, by its kind.
    actions: Vec<Option<usize>>,
}

impl Shapes {
    /// Reads the shapes; none if a part of them has a form that they do not have.
    pub(super) fn from_json(json: &Value) -> Option<Self> {
        let names = json.get("structs")?.as_object()?;
        let structs = names.values().map(|fields| read_fields(fields.as_object()?, names));
        let structs = structs.collect::<Option<_>>()?;
        let actions = ActionKind::all().map(|kind| {
            let name = json.get("actions")?.get(kind.name())?.as_str()?;
            position(name, names)
        });
        Some(Self { structs, actions: actions.collect() })
    }

    /// Reports if the payload of an action fits the shape of its kind.
    pub(super) fn fits(&self, kind: ActionKind, action: &Value) -> bool {
        let position = self.actions.get(kind as usize).copied().flatten();
        position.is_some_and(|position| self.is_struct(position, action))
    }

    fn is_struct(&self, position: usize, value: &Value) -> bool {
        match value {
            Value::Object(object) => self.has_fields(&self.structs[position], object),
            Value::Array(items) => self.has_items(&self.structs[position], items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }

    fn has_fields(&self, fields: &[ShapeField], object: &Map<String, Value>) -> bool {
        fields.iter().all(|field| match object.get(&field.name) {
            Some(value) => self.is_field(field, value),
            None => field.is_optional,
        })
    }

    /// A struct as a list of its fields, the last of which may be left out if they are optional.
    fn has_items(&self, fields: &[ShapeField], items: &[Value]) -> bool {
        let mut items = items.iter();
        let has_all = fields.iter().all(|field| match items.next() {
            Some(value) => self.is_field(field, value),
            None => field.is_optional,
        });
        has_all && items.next().is_none()
    }

    fn is_field(&self, field: &ShapeField, value: &Value) -> bool {
        (field.is_optional && value.is_null()) || self.is_shape(&field.shape, value)
    }

    fn is_shape(&self, shape: &PayloadShape, value: &Value) -> bool {
        match shape {
            PayloadShape::Any => true,
            PayloadShape::Text => value.is_string(),
            PayloadShape::Flag => value.is_boolean(),
            PayloadShape::Number => value.is_number(),
            PayloadShape::Signed => value.is_i64(),
            PayloadShape::Unsigned(most) => value.as_u64().is_some_and(|number| number <= *most),
            PayloadShape::Word(words) => is_word(words, value),
            PayloadShape::List(item) => match value {
                Value::Array(items) => items.iter().all(|value| self.is_shape(item, value)),
                _ => false,
            },
            PayloadShape::MapOf(entry) => match value {
                Value::Object(entries) => entries.values().all(|value| self.is_shape(entry, value)),
                _ => false,
            },
            PayloadShape::Struct(position) => self.is_struct(*position, value),
            PayloadShape::TextOr(other) => value.is_string() || self.is_shape(other, value),
            PayloadShape::Object(fields) => {
                value.as_object().is_some_and(|object| self.has_fields(fields, object))
            }
            PayloadShape::Variants(tag, variants) => self.is_variant(tag, variants, value),
            PayloadShape::Marked(field, mark, position) => {
                value.get(field).and_then(Value::as_str) == Some(mark)
                    && self.is_struct(*position, value)
            }
        }
    }

    fn is_variant(&self, tag: &str, variants: &[(String, usize)], value: &Value) -> bool {
        let (named, items) = match value {
            Value::Object(object) => (object.get(tag), None),
            Value::Array(items) => (items.first(), items.get(1..)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (None, None),
        };
        let variant = match named {
            Some(Value::String(name)) => variants.iter().find(|(variant, _)| variant == name),
            Some(Value::Number(number)) => number
                .as_u64()
                .and_then(|number| usize::try_from(number).ok())
                .and_then(|number| variants.get(number)),
            _ => None,
        };
        let Some((_, position)) = variant else { return false };
        match items {
            Some(items) => self.has_items(&self.structs[*position], items),
            None => self.is_struct(*position, value),
        }
    }
}

/// A word of a closed set: a text, or an object with the word as its only key and nothing in it.
fn is_word(words: &[String], value: &Value) -> bool {
    let word = match value {
        Value::String(word) => word,
        Value::Object(object) => match object.iter().next() {
            Some((word, content))
                if object.len() == 1
                    && (content.is_null() || content.as_object().is_some_and(Map::is_empty)) =>
            {
                word
            }
            _ => return false,
        },
        _ => return false,
    };
    words.contains(word)
}

fn position(name: &str, names: &Map<String, Value>) -> Option<usize> {
    names.keys().position(|known| known == name)
}

fn read_fields(fields: &Map<String, Value>, names: &Map<String, Value>) -> Option<Vec<ShapeField>> {
    let read = |(name, shape): (&String, &Value)| {
        let (name, is_optional) = match name.strip_suffix('?') {
            Some(name) => (name, true),
            None => (name.as_str(), false),
        };
        Some(ShapeField { name: name.to_owned(), is_optional, shape: read_shape(shape, names)? })
    };
    fields.iter().map(read).collect()
}

fn read_shape(shape: &Value, names: &Map<String, Value>) -> Option<PayloadShape> {
    match shape {
        Value::String(name) => Some(match name.as_str() {
            "any" => PayloadShape::Any,
            "text" => PayloadShape::Text,
            "flag" => PayloadShape::Flag,
            "number" => PayloadShape::Number,
            "signed" => PayloadShape::Signed,
            "u32" => PayloadShape::Unsigned(u64::from(u32::MAX)),
            "u64" => PayloadShape::Unsigned(u64::MAX),
            name => PayloadShape::Struct(position(name, names)?),
        }),
        Value::Array(items) => {
            Some(PayloadShape::List(Box::new(read_shape(items.first()?, names)?)))
        }
        Value::Object(parts) => read_parts(parts, names),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn read_parts(parts: &Map<String, Value>, names: &Map<String, Value>) -> Option<PayloadShape> {
    let text = |part: &Value| part.as_str().map(str::to_owned);
    let mut parts = parts.iter();
    let (form, part) = parts.next()?;
    match form.as_str() {
        "words" => part.as_array()?.iter().map(text).collect::<Option<_>>().map(PayloadShape::Word),
        "mapOf" => Some(PayloadShape::MapOf(Box::new(read_shape(part, names)?))),
        "textOr" => Some(PayloadShape::TextOr(Box::new(read_shape(part, names)?))),
        "object" => read_fields(part.as_object()?, names).map(PayloadShape::Object),
        "tag" => {
            let (_, variants) = parts.next()?;
            let read = |(variant, name): (&String, &Value)| {
                Some((variant.clone(), position(name.as_str()?, names)?))
            };
            let variants = variants.as_object()?.iter().map(read).collect::<Option<_>>();
            Some(PayloadShape::Variants(text(part)?, variants?))
        }
        "field" => {
            let (_, mark) = parts.next()?;
            let (_, name) = parts.next()?;
            Some(PayloadShape::Marked(text(part)?, text(mark)?, position(name.as_str()?, names)?))
        }
        _ => None,
    }
}
