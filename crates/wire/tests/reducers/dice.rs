//! Choices out of a string of bytes: what proptest makes and shrinks, the generators read as decisions.
//!
//! Bytes that have run out read as zero, so that a shorter string means a simpler value.

use serde_json::{Map, Value, json};

pub struct Dice<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl<'a> Dice<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter() }
    }

    pub fn below(&mut self, limit: usize) -> usize {
        usize::from(self.bytes.next().copied().unwrap_or(0)) % limit
    }

    pub fn flip(&mut self) -> bool {
        self.below(2) == 1
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// An optional field inside a value.
    pub fn maybe(&mut self, make: impl FnOnce(&mut Self) -> Value) -> Option<Value> {
        if self.flip() { Some(make(self)) } else { None }
    }

    /// An optional field of an action: absent, there, or JSON's null.
    pub fn maybe_null(&mut self, make: impl FnOnce(&mut Self) -> Value) -> Option<Value> {
        match self.below(8) {
            0..=3 => None,
            4 => Some(Value::Null),
            _ => Some(make(self)),
        }
    }

    pub fn list(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> Value) -> Value {
        let length = self.below(most + 1);
        Value::Array((0..length).map(|_| make(self)).collect())
    }

    pub fn text(&mut self) -> Value {
        json!(self.pick(&["", "a", "bc", "ü"]))
    }

    pub fn meta(&mut self) -> Value {
        self.pick(&[json!({}), json!({"k": 1}), json!({"k": 2, "n": null})])
    }

    pub fn markdown(&mut self) -> Value {
        self.pick(&[json!("plain"), json!({"markdown": "*m*"}), json!("")])
    }
}

/// An object of the fields that are there.
pub fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let present = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}

/// Sometimes takes a field away or gives it a wrong type.
pub fn spoiled(d: &mut Dice, mut action: Value) -> Value {
    if d.below(16) != 15 {
        return action;
    }
    let fields = action.as_object_mut().expect("an action");
    let key = fields.keys().nth(d.below(fields.len())).cloned().expect("a field");
    if key == "type" {
        fields[&key] = json!("x-unheard/of");
    } else if fields[&key].is_object() || fields[&key].is_array() || d.flip() {
        fields.remove(&key);
    } else {
        fields[&key] = json!([7]);
    }
    action
}
