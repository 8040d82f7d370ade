//! Any bytes, cut anywhere: no panic, bounded memory, and the same events however they are cut.
#![no_main]

use host::net::ws::frame::{CONTROL_BYTES_MAX, FrameDecoder, WsEvent, WsFault};
use libfuzzer_sys::fuzz_target;

const BOUND: usize = 4_096;

fn run(stream: &[u8], chunk_bytes: usize) -> (Vec<WsEvent>, Option<WsFault>) {
    let mut decoder = FrameDecoder::new(BOUND);
    let mut events = Vec::new();
    for mut chunk in stream.chunks(chunk_bytes) {
        loop {
            match decoder.next(&mut chunk) {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(fault) => return (events, Some(fault)),
            }
        }
        assert!(chunk.is_empty());
        assert!(decoder.held_bytes() <= BOUND + 2 * CONTROL_BYTES_MAX);
    }
    (events, None)
}

fuzz_target!(|data: (u8, &[u8])| {
    let (cut, stream) = data;
    let whole = run(stream, stream.len().max(1));
    assert_eq!(whole, run(stream, usize::from(cut).max(1)));
});
