//! Any text as typed input: parsed, written back as it was typed, and equal after every round trip.
#![no_main]
#![allow(dead_code)]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/compositor/tests/compose/environment.rs"]
mod environment;
#[path = "../../crates/compositor/tests/compose/fuzzed.rs"]
mod fuzzed;

fuzz_target!(|data: &str| fuzzed::text(data));
