//! Sessions come and go, and what follows from their titles and their clients.

mod clients;
mod create;
mod dispose;
mod news;
mod title;

pub(crate) use clients::{end_grace, remove_active_client, revive};
pub(crate) use create::{
    EmptySession, NEW_SESSION_TITLE, NewSession, SessionSource, count_sessions, create_empty,
    create_session, default_chat_of, finish_start, start_agent,
};
pub(crate) use dispose::{dispose_if_empty, dispose_session};
pub(crate) use news::{apply_news, change_setting};
pub(crate) use title::{follow_title_of_client, replace_title, set_title_by_agent};
