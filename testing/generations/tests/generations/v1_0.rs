//! The published 1.0.0 client.

use ahp_1_0 as ahp;
use ahp_types_1_0 as ahp_types;
use ahp_ws_1_0 as ahp_ws;

pub use ahp_types::notifications::ProgressParams;

pub const VERSION: &str = "1.0.0";

#[path = "../../shared/answering.rs"]
mod answering;
#[path = "../../shared/mod.rs"]
pub mod shared;
