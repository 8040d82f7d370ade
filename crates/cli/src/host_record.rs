//! How the host of a data directory was started: `host.json` in it.
//!
//! Promises: readable by its owner only, and without secrets. It counts for a running host only if it names that host's
//! process; of a host that has ended it says how to start the next one.
//! Must not know: what the options mean.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wire::Timestamp;

const FILE: &str = "host.json";

/// What a host runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunMode {
    /// In a terminal, or as a child of another program.
    Foreground,
    Background,
    /// Under the service manager of the system.
    Service,
}

impl RunMode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Foreground => "foreground",
            Self::Background => "background",
            Self::Service => "service",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let all = [Self::Foreground, Self::Background, Self::Service];
        all.into_iter().find(|mode| mode.name() == name)
    }
}

/// How a host was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostRecord {
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) started: Timestamp,
    pub(crate) mode: RunMode,
    /// What followed `greenroom serve`, without the data directory and what only other verbs say.
    pub(crate) arguments: Vec<OsString>,
    /// Where it was started: relative paths and the default workspace depend on it.
    pub(crate) directory: PathBuf,
    pub(crate) log: Option<PathBuf>,
}

impl HostRecord {
    pub(crate) fn write(&self, data: &Path) -> io::Result<()> {
        let arguments: Vec<Value> = self.arguments.iter().map(|text| to_json(text)).collect();
        let record = json!({
            "pid": self.pid,
            "version": self.version,
            "startedAt": self.started.to_rfc3339(),
            "mode": self.mode.name(),
            "directory": to_json(self.directory.as_os_str()),
            "arguments": arguments,
            "log": self.log.as_ref().map(|log| to_json(log.as_os_str())),
        });
        let staged = data.join(format!("{FILE}.new"));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
        file.write_all(format!("{record}\n").as_bytes())?;
        std::fs::rename(&staged, data.join(FILE))
    }

    /// The record of the last host that started here. One that cannot be read is as good as none: it is written anew by the
    /// next start.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        let text = std::fs::read(data.join(FILE)).ok()?;
        let record: Value = serde_json::from_slice(&text).ok()?;
        let arguments = record["arguments"].as_array()?.iter().map(from_json);
        Some(Self {
            pid: u32::try_from(record["pid"].as_u64()?).ok()?,
            version: record["version"].as_str()?.to_owned(),
            started: Timestamp::parse_rfc3339(record["startedAt"].as_str()?)?,
            mode: RunMode::parse(record["mode"].as_str()?)?,
            arguments: arguments.collect::<Option<_>>()?,
            directory: from_json(&record["directory"])?.into(),
            log: from_json(&record["log"]).map(PathBuf::from),
        })
    }

    /// The record of the host with this process.
    pub(crate) fn of_process(data: &Path, pid: i32) -> Option<Self> {
        Self::read(data).filter(|record| i32::try_from(record.pid) == Ok(pid))
    }
}

/// Text where it is text; a path may be any bytes.
fn to_json(text: &OsStr) -> Value {
    match text.to_str() {
        Some(text) => json!(text),
        None => json!(text.as_bytes()),
    }
}

fn from_json(value: &Value) -> Option<OsString> {
    if let Some(text) = value.as_str() {
        return Some(OsString::from(text));
    }
    let byte = |value: &Value| u8::try_from(value.as_u64()?).ok();
    let bytes: Option<Vec<u8>> = value.as_array()?.iter().map(byte).collect();
    bytes.map(OsString::from_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(HostRecord::read(data.path()), None);
        let odd = OsString::from_vec(b"/tmp/\xff\"x y".to_vec());
        let record = HostRecord {
            pid: 77,
            version: "0.1.0".to_owned(),
            started: Timestamp::parse_rfc3339("2026-11-15T12:00:00Z").unwrap(),
            mode: RunMode::Background,
            arguments: vec!["--workspace".into(), odd.clone()],
            directory: odd.into(),
            log: None,
        };
        record.write(data.path()).unwrap();
        assert_eq!(HostRecord::read(data.path()), Some(record.clone()));
        assert_eq!(HostRecord::of_process(data.path(), 77), Some(record));
        assert_eq!(HostRecord::of_process(data.path(), 78), None);
        std::fs::write(data.path().join(FILE), "{\"pid\": 77}").unwrap();
        assert_eq!(HostRecord::read(data.path()), None);
    }
}
