//! Any template and any arguments: expanded within bounds.
#![no_main]
#![allow(dead_code)]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/compositor/tests/compose/environment.rs"]
mod environment;
#[path = "../../crates/compositor/tests/compose/fuzzed.rs"]
mod fuzzed;

fuzz_target!(|data: (&str, &str)| fuzzed::template(data.0, data.1));
