//! Sample payloads of published types, written down while a type reads them: every field it asks for is there.
//!
//! Promises: a field that a later version of the types adds is in the sample, so that the tests vary it too.
//! Must not know: which actions there are.

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value, json};

/// Returns a payload that a type reads, with every field of the structs in it.
pub(super) fn sample_of<'de, T: Deserialize<'de>>() -> Result<Value, Error> {
    let mut sample = Value::Null;
    T::deserialize(Sampler { place: &mut sample, known: None, depth: 0 }).map(|_| sample)
}

/// Values of the published unions that accept no other kind than those they list: a union does not tell its kinds.
fn value_of_union(field: &str, owner: &str) -> Option<Value> {
    let times = json!({"expression": "e", "timeZone": "z"});
    let trigger = json!({"kind": "schedule", "id": "t", "schedule": times});
    match (owner, field) {
        (_, "claim") => {
            Some(json!({"kind": "session", "session": "s", "chat": "c", "turnId": "t"}))
        }
        (_, "answer") => Some(json!({"state": "draft", "value": {"kind": "text", "value": "v"}})),
        (_, "answers") => Some(json!({"q": {"state": "skipped", "freeformValues": ["r"]}})),
        ("TerminalInfo", "lifecycle") => Some(json!({"status": "exited", "exitCode": 1})),
        (_, "lifecycle") => Some(json!({"status": "pending", "createdAt": "d"})),
        ("AutomationRunSummary", "origin") => Some(json!({"kind": "manual"})),
        (_, "triggers") => Some(json!([trigger])),
        (_, "disableConditions") => Some(json!([{"kind": "afterRuns", "max": 1}])),
        (_, "customizations") => {
            Some(json!([{"type": "plugin", "id": "p", "uri": "u", "name": "n"}]))
        }
        _ => None,
    }
}

/// One place of the sample. The type that reads it is given what it asks for, or the value that is known.
struct Sampler<'a> {
    place: &'a mut Value,
    known: Option<Value>,
    depth: usize,
}

/// Deepest nesting of a sample: types may hold themselves.
const DEPTH_MAX: usize = 8;

impl Sampler<'_> {
    fn take<'de, V: Visitor<'de>>(
        self,
        value: Value,
        visit: impl FnOnce(V) -> Result<V::Value, Error>,
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.place = value;
        visit(visitor)
    }
}

macro_rules! sample_numbers {
    ($($deserialize:ident $visit:ident $number:expr;)*) => {
        $(fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.take(json!($number), |visitor| visitor.$visit($number), visitor)
        })*
    };
}

impl<'de> serde::Deserializer<'de> for Sampler<'_> {
    type Error = Error;

    /// Reads a union, or a field that may be anything. Those that have no known value accept a text.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.known {
            Some(value) => {
                *self.place = value.clone();
                serde::Deserializer::deserialize_any(value, visitor)
            }
            None => self.take(json!("x"), |visitor| visitor.visit_str("x"), visitor),
        }
    }

    sample_numbers! {
        deserialize_bool visit_bool true;
        deserialize_i64 visit_i64 7;
        deserialize_u64 visit_u64 7;
        deserialize_u32 visit_u32 7;
        deserialize_f64 visit_f64 0.5;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.depth > DEPTH_MAX {
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.known.is_some() {
            return self.deserialize_any(visitor);
        }
        let mut item = Value::Null;
        let read = visitor.visit_seq(OneItem { place: Some(&mut item), depth: self.depth + 1 });
        *self.place = json!([item]);
        read
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.known.is_some() {
            return self.deserialize_any(visitor);
        }
        self.deserialize_struct("", &["x"], visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        owner: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut sample = Map::new();
        let read = visitor.visit_map(Fields {
            owner,
            fields: fields.iter(),
            sample: &mut sample,
            depth: self.depth + 1,
        });
        *self.place = Value::Object(sample);
        read
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let first: StrDeserializer<'_, Error> = variants[0].into_deserializer();
        self.take(json!(variants[0]), |visitor| visitor.visit_enum(first), visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 u8 u16 f32 char str string bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}

/// A list of one item.
struct OneItem<'a> {
    place: Option<&'a mut Value>,
    depth: usize,
}

impl<'de> SeqAccess<'de> for OneItem<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let depth = self.depth;
        let item = self.place.take().map(|place| Sampler { place, known: None, depth });
        item.map(|item| seed.deserialize(item)).transpose()
    }
}

/// The fields of a struct, all of them.
struct Fields<'a> {
    owner: &'static str,
    fields: std::slice::Iter<'static, &'static str>,
    sample: &'a mut Map<String, Value>,
    depth: usize,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some(field) = self.fields.next() else {
            return Ok(None);
        };
        self.sample.insert((*field).to_owned(), Value::Null);
        let name: StrDeserializer<'_, Error> = (*field).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let (field, place) = self.sample.iter_mut().next_back().expect("a key was asked for");
        let known = value_of_union(field, self.owner);
        seed.deserialize(Sampler { place, known, depth: self.depth })
    }
}
