//! Published clients of every version on one host: each alone, and all of them in one session.

// The generators hold more than is used here.
#![allow(dead_code)]

#[path = "../../../../crates/wire/tests/reducers/chat.rs"]
mod chat;
#[path = "../../../../crates/wire/tests/reducers/chat_actions.rs"]
mod chat_actions;
#[path = "../../../../crates/wire/tests/reducers/dice.rs"]
mod dice;
#[path = "../../shared/driver.rs"]
mod driver;
#[path = "../../shared/host.rs"]
mod host;
mod laws;
mod mixed;
#[path = "../../../../crates/wire/tests/reducers/session.rs"]
mod session;
mod v0_4;
mod v0_5_2;
mod v0_6;
mod v0_7;
mod v0_8;
mod v0_9;
mod v1_0;
