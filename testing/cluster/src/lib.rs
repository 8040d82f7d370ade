//! The chaos test of clusters: real nodes, a real database, clients that check everything they hear.
//!
//! A seed chooses what goes wrong; the same seed makes the same plan. `cargo run -p cluster --bin chaos -- --minutes 60` for long.

mod checked_client;
mod faults;
mod idle_statements;
mod many_spaces;
mod node_process;
mod peer_proxy;
mod run;
mod space_history;
mod upgrade;

pub use many_spaces::{ManySpacesPlan, ManySpacesReport, many_spaces};
pub use node_process::NodeUse;
pub use run::{ChaosPlan, ChaosReport, run};
pub use upgrade::upgrade;
