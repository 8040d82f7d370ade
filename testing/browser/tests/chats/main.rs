//! A chat on the page: queue, steering and stopping (W-7), ten thousand turns (W-8), a reading position that stays (W-9), text that
//! means harm (W-10), and text while it is written.

#[path = "../signed_in/mod.rs"]
mod signed_in;

mod hostile;
mod long;
mod queue;
mod reading;
mod script;
mod streaming;
