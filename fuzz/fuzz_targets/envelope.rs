//! Any text as a message, and any JSON as an action: decoded or refused, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

const DEPTH_MAX: usize = 128;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(malformed) = wire::rpc::decode(text, DEPTH_MAX) {
        let _ = wire::rpc::error_response(&malformed.id, &malformed.error);
    }
    if let Ok(value) = serde_json::from_str(text) {
        let _ = wire::Action::decode(value);
    }
});
