//! The name of a data directory in the cluster: made by chance when a node first runs in it.
//!
//! Who holds the lock of the directory is the only process in it, so whatever ran under its name before has ended.
//!
//! Must not know: the database.

use std::io;
use std::path::Path;

use crate::private_file;

const HOME_FILE: &str = "node-home";

/// The name of a data directory; it is made if there is none.
pub(super) fn load_home(data: &Path) -> io::Result<String> {
    let path = data.join(HOME_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let home = uuid::Uuid::now_v7().simple().to_string();
    private_file::replace(&path, home.as_bytes())?;
    Ok(home)
}
