//! What the repository promises about its own shape, as checks: edges between crates, sizes and openings of files, rules that
//! are cited, cycles, silence, names. `cargo test` runs them; `cargo run -p xtask -- tidy` prints what they find.

mod adrs;
mod architecture;
mod assertions;
mod checks;
mod cli_protocol;
mod cycles;
mod durations;
mod edges;
mod files;
mod generations;
mod interop;
mod lints;
mod map_index;
mod owners;
mod page_source;
mod page_types;
mod phases;
mod repository;
mod rules;
mod silence;
mod sizes;
mod source;
mod test_files;
mod tuple_parameters;
mod types;
mod words;

use std::path::{Path, PathBuf};

pub use checks::{Findings, run_checks};
pub use durations::report_durations;
pub use generations::run_generations;
pub use interop::run_interop;
pub use page_types::write_page_types;
pub use sizes::check_program;

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
