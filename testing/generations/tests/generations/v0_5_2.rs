//! The published 0.5.2 client.

use ahp_0_5_2 as ahp;
use ahp_types_0_5_2 as ahp_types;
use ahp_ws_0_5_2 as ahp_ws;

pub use ahp_types::notifications::ProgressParams;

pub const VERSION: &str = "0.5.2";

#[path = "../../shared/answering.rs"]
mod answering;
#[path = "../../shared/mod.rs"]
pub mod shared;
