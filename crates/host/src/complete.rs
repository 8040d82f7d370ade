//! What may be meant by what somebody is typing, as the kernel asks it and as agents know it.

pub use agents::complete::Completer;
use agents::complete::{OutsideText, Typing};
use kernel::{Complete, Completed};

/// What may be meant. Blocks.
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
