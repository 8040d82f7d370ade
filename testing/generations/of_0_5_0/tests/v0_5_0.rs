//! The published 0.5.0 client.

use ahp_0_5_0 as ahp;
use ahp_types_0_5_0 as ahp_types;
use ahp_ws_0_5_0 as ahp_ws;

use ahp_types::notifications::ProgressParams;

const VERSION: &str = "0.5.0";

#[path = "../../shared/silent.rs"]
mod answering;
#[path = "../../shared/driver.rs"]
mod driver;
#[path = "../../shared/host.rs"]
mod host;
#[path = "../../shared/mod.rs"]
mod shared;
