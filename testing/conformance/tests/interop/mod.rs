//! What `xtask interop` installed, and what it prints of the tests.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Where `xtask interop` installs everything.
const PLACE: &str = "GREENROOM_INTEROP";

/// Finds what was installed; prints straight to stderr if it is missing, so a passing test shows it.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let place = std::env::var_os(PLACE).map(|place| PathBuf::from(place).join(name));
    let place = place.filter(|place| place.exists());
    if place.is_none() {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: {name} is not installed; `cargo run -p xtask -- interop {name}` installs and runs it"
        );
    }
    place
}

/// Notes a row of the table: what was tried, and how it went.
pub(crate) fn note(name: &str, told: &Value, worked: &[(&str, String)]) {
    let place = std::env::var_os(PLACE).expect("xtask says where");
    let path = Path::new(&place).join("results.jsonl");
    let worked: Vec<Value> = worked.iter().map(|(what, how)| json!([what, how])).collect();
    let row = json!({"name": name, "description": told, "worked": worked});
    let mut file = std::fs::OpenOptions::new();
    let mut file = file.create(true).append(true).open(path).expect("a file");
    writeln!(file, "{row}").expect("it can be written");
}
