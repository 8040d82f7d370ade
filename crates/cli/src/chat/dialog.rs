//! What the agent waits for, in lines: what is asked, and how to answer. What it is about stands above, as part of the chat.
//!
//! Must not know: terminals, connections.

use client::chat::PendingInput;

use super::line::Line;
use super::{confirm, questions};

pub(crate) fn lines(pending: &PendingInput, width: usize) -> Vec<Line> {
    match pending {
        PendingInput::Confirmation(confirmation) => confirm::lines(confirmation, width),
        PendingInput::Questions(form) => questions::lines(form, width),
    }
}
