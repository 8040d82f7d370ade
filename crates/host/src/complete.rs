//! Completions: the kernel's request as the completer of `agents` takes it, and its answer as the kernel takes it.
//!
//! Must not know: who is typing.

pub use agents::complete::Completer;
use agents::complete::{OutsideText, Typing};
use kernel::{Complete, Completed};

/// Finds completions. Blocks.
pub fn completions(completer: &Completer, complete: Complete) -> Completed {
    let typing = Typing {
        working_directories: complete.working_directories,
        text: complete.text,
        offset: complete.offset,
    };
    match completer.complete(&typing) {
        Ok(items) => Completed::Items(items),
        Err(OutsideText) => Completed::OutsideText,
    }
}
