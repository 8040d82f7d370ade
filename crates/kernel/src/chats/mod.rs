//! Chats of a session come and go: their entries in the catalogue, and which of them is the default (H-140, H-154, H-155).

mod create;
mod dispose;
mod movable;

pub(crate) use create::{ForkSource, NewChat, chat_summary, create_chat};
pub(crate) use dispose::dispose_chat;
pub(crate) use movable::{DEFAULT_CHATS, set_movable, update_movable_chats};
