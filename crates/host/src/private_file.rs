//! A small file of the data directory that is replaced as a whole.
//!
//! Promises: after a crash at any moment the file is what it was or what it became, never a part; it is readable by its
//! owner only. All functions block.
//! Must not know: what is in the file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Replaces the file; it is on the disk when this returns.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let staged = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let replaced = write(&staged, bytes).and_then(|()| fs::rename(&staged, path));
    if replaced.is_err() {
        // It may not be there at all.
        let _ = fs::remove_file(&staged);
        return replaced;
    }
    // The name is durable only when its directory is.
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Writes a file that nobody else may read.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
