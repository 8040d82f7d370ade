//! Any text as what somebody typed: parsed, said as it was typed, and the same again on every way back.
#![no_main]
#![allow(dead_code)]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/compositor/tests/compose/around.rs"]
mod around;
#[path = "../../crates/compositor/tests/compose/fuzzed.rs"]
mod fuzzed;

fuzz_target!(|data: &str| fuzzed::text(data));
