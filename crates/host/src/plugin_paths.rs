//! Directories of plugins in a settings file: a list of paths, or `[[plugins]]` tables with a `path` (CU-4).

use std::path::PathBuf;

use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "for plugins write [\"/path\", ..], or [[plugins]] tables with a path"
)]
enum PluginEntry {
    Path(PathBuf),
    Table(PluginTable),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginTable {
    path: PathBuf,
}

/// Reads either form.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<PathBuf>, D::Error> {
    let entries: Vec<PluginEntry> = Vec::deserialize(deserializer)?;
    let paths = entries.into_iter().map(|entry| match entry {
        PluginEntry::Path(path) | PluginEntry::Table(PluginTable { path }) => path,
    });
    Ok(paths.collect())
}
