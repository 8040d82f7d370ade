//! What the repository promises about its own shape, as checks: edges between crates, sizes and openings of files,
//! names, leftovers. `cargo test` runs them; `cargo run -p xtask -- tidy` prints them.

mod edges;
mod files;

use std::path::{Path, PathBuf};

pub use edges::wrong_edges;
pub use files::untidy_files;

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
