//! The version of the shape that parts are persisted in, and how older ones are read (C-085 to C-087).
//!
//! Rows are never rewritten: each version brings a step from the one before it, applied in memory. What a newer version
//! wrote is read as far as it can be, part by part.

use serde_json::{Value, json};

use crate::part::Part;

/// The version that is written. Another type of part is not a new version.
pub const SCHEMA_VERSION: i64 = 1;

/// The type of a row that is not a part.
pub(crate) const UNREADABLE: &str = "unreadable";

/// Reads a part of one version as one of the next.
type Adapter = fn(Part) -> Part;

/// The step from version n to n + 1 is at n - 1.
const ADAPTERS: [Adapter; SCHEMA_VERSION as usize - 1] = [];

/// The parts of a message in the current shape.
pub fn read(rows: Vec<Value>, schema_version: i64) -> Vec<Part> {
    adapt(rows, schema_version, &ADAPTERS)
}

fn adapt(rows: Vec<Value>, schema_version: i64, adapters: &[Adapter]) -> Vec<Part> {
    let done = usize::try_from(schema_version.saturating_sub(1)).unwrap_or(0);
    let steps = adapters.get(done..).unwrap_or(&[]);
    let part = |row| steps.iter().fold(part_of(row), |part, step| step(part));
    rows.into_iter().map(part).collect()
}

/// A row that is not a part does not affect its siblings: it becomes a part of its own type.
pub(crate) fn part_of(row: Value) -> Part {
    match row {
        Value::Object(fields) if fields.get("type").is_some_and(Value::is_string) => {
            Part::new(Value::Object(fields))
        }
        other => Part::new(json!({"type": UNREADABLE, "value": other})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::View;

    #[test]
    fn c_087_adapters_are_a_chain_that_begins_where_the_writer_was() {
        fn rename(part: Part) -> Part {
            let mut value = part.into_value();
            if let Some(path) = value["ref"].get("path").cloned() {
                value["ref"] = json!({"kind": "path", "file_path": path});
            }
            Part::from_value(value).unwrap()
        }
        fn mark(part: Part) -> Part {
            let mut value = part.into_value();
            value["seen"] = json!(3);
            Part::from_value(value).unwrap()
        }
        let row = || vec![json!({"type": "file-ref", "ref": {"kind": "path", "path": "a.ts"}})];
        let read = |version| adapt(row(), version, &[rename, mark])[0].to_value();
        assert_eq!(read(1)["ref"]["file_path"], "a.ts");
        assert_eq!(read(1)["seen"], 3);
        assert_eq!(read(2)["ref"]["path"], "a.ts");
        assert_eq!(read(2)["seen"], 3);
        assert_eq!(read(3), row()[0]);
        assert_eq!(read(99), row()[0], "newer than known: best effort");
        assert_eq!(read(i64::MIN)["seen"], 3);
    }

    #[test]
    fn c_086_messages_of_a_newer_version_are_read_part_by_part() {
        let rows = vec![
            json!({"type": "file-ref", "ref": {"kind": "path", "file_path": "a.ts"}}),
            json!({"type": "text", "text": "still here"}),
            json!([1]),
        ];
        let parts = read(rows.clone(), 2);
        assert!(matches!(parts[0].view(), View::Unknown { kind: "file-ref", .. }));
        assert!(matches!(parts[1].view(), View::Text(_)));
        assert_eq!(parts[2].kind(), "unreadable");
        assert_eq!(parts[0].to_value(), rows[0]);
    }
}
