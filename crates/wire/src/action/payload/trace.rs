//! Traces of published types: a type reads from a tracer, which records the shape that the type
//! asks for and a sample of it.
//!
//! Promises: the trace has every field, also those that a later version of the types adds. A closed
//! union that `unions.rs` lacks fails the trace and is named.
//! Must not know: which actions there are.

use std::any::type_name;
use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value, json};

use super::unions::UNIONS;

/// Deepest nesting of a sample: types may hold themselves.
const DEPTH_MAX: usize = 8;

/// Shapes and samples of the structs traced so far.
#[derive(Default)]
pub(super) struct Traces {
    pub(super) structs: RefCell<BTreeMap<&'static str, Map<String, Value>>>,
    samples: RefCell<BTreeMap<&'static str, Value>>,
    /// Index of the variant in the samples of unions, modulo their number of variants.
    choice: usize,
}

impl Traces {
    /// Returns traces with samples of this variant of each union.
    pub(super) fn with_choice(choice: usize) -> Self {
        Self { choice, ..Self::default() }
    }

    /// Traces a type. Returns its shape and a sample with every field.
    pub(super) fn trace<'de, T: Deserialize<'de>>(&self) -> (Value, Value) {
        let (mut shape, mut sample) = (Value::Null, Value::Null);
        let target = TraceTarget { shape: &mut shape, sample: &mut sample, depth: 0 };
        if let Err(error) = T::deserialize(Tracer { traces: self, target, read: type_name::<T>() })
        {
            panic!("{}: {error}", type_name::<T>());
        }
        (shape, sample)
    }

    /// Returns the shape and a sample of a union, or of a field that may hold any value.
    fn union_of(&self, read: &str) -> (Value, Value) {
        let name = read.trim_end_matches('>').rsplit("::").next().unwrap_or(read);
        match name {
            "StringOrMarkdown" => {
                return (json!({"textOr": {"object": {"markdown": "text"}}}), json!("x"));
            }
            "ToolInput" => return (json!({"textOr": "ContentRef"}), json!("x")),
            _ => {}
        }
        let Some(union) = UNIONS.iter().find(|union| union.name == name) else {
            return (json!("any"), json!("x"));
        };
        let (variant, holds) = union.variants[self.choice % union.variants.len()];
        let mut sample = self.sample_of(holds);
        sample[union.tag] = json!(variant);
        let variants = union.variants.iter();
        let variants: Map<_, _> =
            variants.map(|(name, holds)| ((*name).to_owned(), json!(holds))).collect();
        (json!({"tag": union.tag, "variants": variants}), sample)
    }

    /// Returns a sample of a struct that was traced before.
    fn sample_of(&self, name: &str) -> Value {
        self.samples.borrow().get(name).unwrap_or_else(|| panic!("trace {name} first")).clone()
    }
}

/// Destination of the trace of one value.
struct TraceTarget<'a> {
    shape: &'a mut Value,
    sample: &'a mut Value,
    depth: usize,
}

/// The reader of one value.
struct Tracer<'a> {
    traces: &'a Traces,
    target: TraceTarget<'a>,
    /// The type that reads it.
    read: &'static str,
}

impl Tracer<'_> {
    fn write(&mut self, shape: Value, sample: Value) {
        (*self.target.shape, *self.target.sample) = (shape, sample);
    }
}

macro_rules! trace_scalars {
    ($($deserialize:ident $visit:ident $shape:literal $sample:expr;)*) => {
        $(fn $deserialize<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
            self.write(json!($shape), json!($sample));
            visitor.$visit($sample)
        })*
    };
}

impl<'de> serde::Deserializer<'de> for Tracer<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let (shape, sample) = self.traces.union_of(self.read);
        self.write(shape, sample.clone());
        serde::Deserializer::deserialize_any(sample, visitor)
    }

    trace_scalars! {
        deserialize_bool visit_bool "flag" true;
        deserialize_i64 visit_i64 "signed" 7;
        deserialize_u32 visit_u32 "u32" 7;
        deserialize_u64 visit_u64 "u64" 7;
        deserialize_f64 visit_f64 "number" 0.5;
        deserialize_str visit_str "text" "x";
        deserialize_string visit_str "text" "x";
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        if self.target.depth > DEPTH_MAX {
            self.write(json!({"optional": null}), Value::Null);
            return visitor.visit_none();
        }
        let Self { traces, target: TraceTarget { shape, sample, depth }, read } = self;
        let mut inner = Value::Null;
        let target = TraceTarget { shape: &mut inner, sample, depth };
        let value = visitor.visit_some(Tracer { traces, target, read });
        *shape = json!({"optional": inner});
        value
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let (mut shape, mut sample) = (Value::Null, Value::Null);
        let target =
            TraceTarget { shape: &mut shape, sample: &mut sample, depth: self.target.depth + 1 };
        let item = OneItem { traces: self.traces, target: Some(target) };
        let value = visitor.visit_seq(item);
        self.write(json!([shape]), json!([sample]));
        value
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        let mut fields = TracedFields::new(&self, "", &["x"]);
        let value = visitor.visit_map(&mut fields);
        let shape = fields.shapes.shift_remove("x").unwrap_or_default();
        let sample = Value::Object(fields.samples);
        self.write(json!({"mapOf": shape}), sample);
        value
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut fields = TracedFields::new(&self, name, names);
        let value = visitor.visit_map(&mut fields);
        let (shapes, sample) = (fields.shapes, Value::Object(fields.samples));
        let mut structs = self.traces.structs.borrow_mut();
        let is_whole = !shapes.values().any(Value::is_null);
        if is_whole || !structs.contains_key(name) {
            structs.insert(name, shapes);
        }
        self.traces.samples.borrow_mut().insert(name, sample.clone());
        drop(structs);
        self.write(json!(name), sample);
        value
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let first: StrDeserializer<'_, Error> = variants[0].into_deserializer();
        self.write(json!({"words": variants}), json!(variants[0]));
        visitor.visit_enum(first)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 u8 u16 f32 char bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}

/// A list of one item.
struct OneItem<'a> {
    traces: &'a Traces,
    target: Option<TraceTarget<'a>>,
}

impl<'de> SeqAccess<'de> for OneItem<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let (traces, read) = (self.traces, type_name::<S::Value>());
        let target = self.target.take();
        target.map(|target| seed.deserialize(Tracer { traces, target, read })).transpose()
    }
}

/// The fields of a struct, all of them.
struct TracedFields<'a> {
    traces: &'a Traces,
    owner: &'static str,
    names: std::slice::Iter<'static, &'static str>,
    name: &'static str,
    depth: usize,
    shapes: Map<String, Value>,
    samples: Map<String, Value>,
}

impl<'a> TracedFields<'a> {
    fn new(of: &Tracer<'a>, owner: &'static str, names: &'static [&'static str]) -> Self {
        Self {
            traces: of.traces,
            owner,
            names: names.iter(),
            name: "",
            depth: of.target.depth + 1,
            shapes: Map::new(),
            samples: Map::new(),
        }
    }

    fn write(&mut self, shape: Value, sample: Value) {
        let (name, shape) = match shape.get("optional") {
            Some(shape) => (format!("{}?", self.name), shape.clone()),
            None => (self.name.to_owned(), shape),
        };
        self.shapes.insert(name, shape);
        self.samples.insert(self.name.to_owned(), sample);
    }
}

impl<'de> MapAccess<'de> for &mut TracedFields<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some(name) = self.names.next() else { return Ok(None) };
        self.name = name;
        let name: StrDeserializer<'_, Error> = (*name).into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        if (self.owner, self.name) == ("AutomationEntry", "customizations") {
            // A function of the published types reads this field as JSON first.
            let mut plugin = self.traces.sample_of("PluginCustomization");
            plugin["type"] = json!("plugin");
            let shape = json!([{"field": "type", "is": "plugin", "of": "PluginCustomization"}]);
            self.write(json!({"optional": shape}), json!([plugin]));
            return seed.deserialize(json!([plugin]));
        }
        let (mut shape, mut sample) = (Value::Null, Value::Null);
        let target = TraceTarget { shape: &mut shape, sample: &mut sample, depth: self.depth };
        let read = type_name::<S::Value>();
        let value = seed.deserialize(Tracer { traces: self.traces, target, read });
        self.write(shape, sample);
        value.map_err(|error| Error::custom(format!("{}.{}: {error}", self.owner, self.name)))
    }
}
