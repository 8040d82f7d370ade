//! The published 0.7.0 client.

use ahp_0_7 as ahp;
use ahp_types_0_7 as ahp_types;
use ahp_ws_0_7 as ahp_ws;

pub use ahp_types::notifications::ProgressParams;

pub const VERSION: &str = "0.7.0";

#[path = "../../shared/answering.rs"]
mod answering;
#[path = "../../shared/mod.rs"]
pub mod shared;
