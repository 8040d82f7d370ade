//! The file of the paired devices in the data directory.
//!
//! Promises: what was saved is on the disk when that is said, whole, whatever happens to the process (ADR 0080); a file that
//! cannot be understood is an error and is left as it is.
//! Must not know: connections, codes.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::device::StoredDevice;
use crate::private_file;

const FILE: &str = "devices.json";
const VERSION: u32 = 1;
/// A larger file is another one.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why the devices could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DevicesError {
    #[error(
        "{FILE} cannot be read: {0}. Once it is removed all devices are signed out, and can be paired again"
    )]
    Unreadable(String),
    #[error("{FILE} cannot be written: {0}")]
    Unwritable(std::io::Error),
}

#[derive(Serialize, Deserialize)]
struct DevicesContent {
    version: u32,
    devices: Vec<StoredDevice>,
}

#[derive(Debug)]
pub(super) struct DeviceFile {
    path: PathBuf,
}

impl DeviceFile {
    pub(super) fn new(data: &Path) -> Self {
        Self { path: data.join(FILE) }
    }

    pub(super) fn load(&self) -> Result<Vec<StoredDevice>, DevicesError> {
        let unreadable = |error: std::io::Error| DevicesError::Unreadable(error.to_string());
        let file = match std::fs::File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(error)),
        };
        let mut text = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(unreadable)?;
        // What serde says of a value may repeat a part of it.
        let content: DevicesContent = serde_json::from_slice(&text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            DevicesError::Unreadable(format!("line {line}, column {column}: not a list of devices"))
        })?;
        match content.version {
            VERSION => Ok(content.devices),
            other => Err(DevicesError::Unreadable(format!(
                "it is of version {other}, which a newer greenroom wrote"
            ))),
        }
    }

    pub(super) fn save(&self, devices: Vec<StoredDevice>) -> Result<(), DevicesError> {
        let content = DevicesContent { version: VERSION, devices };
        let text = wire::rpc::to_json(&content);
        private_file::replace(&self.path, text.as_ref()).map_err(DevicesError::Unwritable)
    }
}
