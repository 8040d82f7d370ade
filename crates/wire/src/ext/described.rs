//! Types that know their JSON Schema: what is published cannot differ from what is read.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A type with a JSON Schema.
pub trait Described {
    /// Its schema, without a title.
    fn schema() -> Value;

    /// Whether an object may lack a field of this type.
    const OPTIONAL: bool = false;

    /// Whether this value is left out of its object.
    fn is_absent(&self) -> bool {
        false
    }
}

impl Described for String {
    fn schema() -> Value {
        json!({"type": "string"})
    }
}

impl Described for bool {
    fn schema() -> Value {
        json!({"type": "boolean"})
    }
}

impl Described for u32 {
    fn schema() -> Value {
        json!({"type": "integer", "minimum": 0})
    }
}

impl<T: Described> Described for Option<T> {
    const OPTIONAL: bool = true;

    fn schema() -> Value {
        T::schema()
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Described> Described for Vec<T> {
    fn schema() -> Value {
        json!({"type": "array", "items": T::schema()})
    }
}

impl<T: Described> Described for BTreeMap<String, T> {
    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": T::schema()})
    }
}

/// Puts what the comments say into a schema.
pub(crate) fn with_words(mut schema: Value, words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().map(|line| line.trim()).collect();
    if !words.is_empty() {
        schema["description"] = Value::String(words.join(" "));
    }
    schema
}

/// Structs that travel: each field with its name on the wire. Fields nobody here knows are ignored.
macro_rules! described {
    ($(
        $(#[doc = $words:literal])*
        pub struct $name:ident {
            $($(#[doc = $field_words:literal])* $field:ident: $kind:ty = $wire:literal),+ $(,)?
        }
    )+) => {$(
        $(#[doc = $words])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $(
                $(#[doc = $field_words])*
                #[serde(rename = $wire, skip_serializing_if = "crate::ext::Described::is_absent")]
                pub $field: $kind
            ),+
        }

        impl $crate::ext::Described for $name {
            fn schema() -> serde_json::Value {
                let mut properties = serde_json::Map::new();
                let mut required: Vec<&str> = Vec::new();
                $(
                    let words: &[&str] = &[$($field_words),*];
                    let field = <$kind as $crate::ext::Described>::schema();
                    let field = $crate::ext::described::with_words(field, words);
                    properties.insert($wire.to_owned(), field);
                    if !<$kind as $crate::ext::Described>::OPTIONAL {
                        required.push($wire);
                    }
                )+
                let whole = serde_json::json!({
                    "type": "object",
                    "properties": properties,
                    "required": required,
                });
                $crate::ext::described::with_words(whole, &[$($words),*])
            }
        }
    )+};
}

pub(crate) use described;

#[cfg(test)]
mod tests {
    use super::*;

    described! {
        /// A thing
        /// of two lines.
        pub struct Thing {
            /// Its name.
            name: String = "theName",
            size: Option<u32> = "size",
        }
    }

    #[test]
    fn a_schema_says_what_the_type_and_its_comments_say() {
        assert_eq!(
            Thing::schema(),
            json!({
                "type": "object",
                "properties": {
                    "theName": {"type": "string", "description": "Its name."},
                    "size": {"type": "integer", "minimum": 0},
                },
                "required": ["theName"],
                "description": "A thing of two lines.",
            })
        );
        let thing: Thing = serde_json::from_value(json!({"theName": "t", "other": 1})).unwrap();
        assert_eq!(
            serde_json::to_value(&thing).unwrap(),
            json!({"theName": "t"})
        );
    }
}
