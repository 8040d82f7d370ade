//! The fields of an input, if they can be told apart: programs differ in which of two fields of one name they take.

use std::collections::BTreeSet;
use std::fmt::{Formatter, Result as FormatResult};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use wire::Object;

/// The fields of an object; `None` if the input is none, or if a name occurs twice in it.
pub(super) fn parse_fields(input: &str) -> Option<Object> {
    serde_json::from_str::<UniqueNames>(input).ok()?;
    match serde_json::from_str(input) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// Any JSON in which no object has two fields of one name.
struct UniqueNames;

impl<'de> Deserialize<'de> for UniqueNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueNames)
    }
}

impl<'de> Visitor<'de> for UniqueNames {
    type Value = Self;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> FormatResult {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        let mut names: BTreeSet<String> = BTreeSet::new();
        while let Some(name) = fields.next_key()? {
            if !names.insert(name) {
                return Err(A::Error::custom("a field occurs twice"));
            }
            fields.next_value::<Self>()?;
        }
        Ok(self)
    }
}
