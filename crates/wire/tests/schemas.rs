//! The published JSON Schemas of extensions are those of the types. `cargo run -p xtask -- gen` writes them anew.

use std::path::Path;

use wire::ext::system_message_transform;

#[test]
fn published_schemas_are_current() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let write = std::env::var_os("GREENROOM_WRITE_SCHEMAS").is_some();
    for (name, schema) in system_message_transform::schemas() {
        let path = directory.join(format!("{name}.schema.json"));
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).expect("JSON"));
        if write {
            std::fs::write(&path, &text).expect("docs/schema can be written");
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            published == text,
            "{name} is not current: cargo run -p xtask -- gen"
        );
    }
}
