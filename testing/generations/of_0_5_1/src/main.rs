//! The published 0.5.1 client as a program.

use ahp_0_5_1 as ahp;
use ahp_types_0_5_1 as ahp_types;
use ahp_ws_0_5_1 as ahp_ws;

use ahp_types::notifications::ProgressParams;

const VERSION: &str = "0.5.1";

#[path = "../../shared/silent.rs"]
mod answering;
#[path = "../../shared/program.rs"]
mod program;

#[tokio::main]
async fn main() {
    program::serve().await;
}
