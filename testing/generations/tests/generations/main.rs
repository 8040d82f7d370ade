//! Published clients of every version on one host: each alone, and all of them in one session.

#[path = "../../shared/driver.rs"]
mod driver;
mod errors;
#[path = "../../shared/host.rs"]
mod host;
mod mixed;
mod negotiation;
mod remote;
mod seeds;
mod terminals;
mod v0_4;
mod v0_5_2;
mod v0_6;
mod v0_7;
mod v0_8;
mod v0_9;
mod v1_0;
