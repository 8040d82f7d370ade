//! The published 0.4.0 client.

use ahp_0_4 as ahp;
use ahp_types_0_4 as ahp_types;
use ahp_ws_0_4 as ahp_ws;

/// `root/progress` came with 0.5: nothing that is sent reads as this.
pub type ProgressParams = ();

pub const VERSION: &str = "0.4.0";

#[path = "../../shared/silent.rs"]
mod answering;
#[path = "../../shared/mod.rs"]
pub mod shared;
