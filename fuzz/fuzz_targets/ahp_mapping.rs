//! Any JSON as a message or as parts: both round-trip laws hold.
#![no_main]
#![allow(dead_code)]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;

#[path = "../../crates/compositor/tests/compose/environment.rs"]
mod environment;
#[path = "../../crates/compositor/tests/compose/fuzzed.rs"]
mod fuzzed;

fuzz_target!(|data: &str| match serde_json::from_str(data) {
    Ok(Value::Object(message)) => fuzzed::message(message),
    Ok(Value::Array(parts)) => fuzzed::parts(parts),
    _ => {}
});
