//! A chat on the page: queue, steering and stopping (W-7), ten thousand turns (W-8), a reading position that stays (W-9), and text that
//! means harm (W-10).

#[path = "../signed_in/mod.rs"]
mod signed_in;

mod hostile;
mod long;
mod queue;
mod reading;
mod script;
