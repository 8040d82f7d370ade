//! What is remembered of how a host was started, so that the next start is the same.

use std::ffi::OsString;
use std::path::Path;

use crate::clock::now;
use crate::host_record::{HostRecord, RunMode};
use crate::log_file;

/// Options that say how a host is started, not what it is: the next start has its own.
const NOT_REMEMBERED: [&str; 3] = ["--background", "--service", "--ready-json"];
/// The same, with a value.
const NOT_REMEMBERED_VALUES: [&str; 2] = ["--data", "--earlier-port"];

/// How this host was started, for who starts it again.
pub(super) fn make_record(mode: RunMode, data: &Path) -> anyhow::Result<HostRecord> {
    Ok(HostRecord {
        pid: std::process::id(),
        version: host::VERSION.to_owned(),
        started: now(),
        mode,
        arguments: remembered_arguments(std::env::args_os()),
        directory: std::env::current_dir()?,
        log: (mode != RunMode::Foreground).then(|| log_file::path_in(data)),
    })
}

/// What followed `serve` on the command line and is to be said again.
fn remembered_arguments(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = all.skip_while(|argument| argument != "serve").skip(1);
    let mut remembered = Vec::new();
    while let Some(argument) = arguments.next() {
        let text = argument.to_str().unwrap_or_default();
        let name = text.split('=').next().unwrap_or_default();
        if NOT_REMEMBERED.contains(&text) {
            continue;
        }
        if NOT_REMEMBERED_VALUES.contains(&name) {
            if name == text {
                arguments.next();
            }
            continue;
        }
        remembered.push(argument);
    }
    remembered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_starts_the_same_host_again() {
        let remembered = |line: &str| {
            let words = line.split(' ').map(OsString::from);
            let kept = remembered_arguments(words).into_iter();
            kept.map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            remembered(
                "greenroom serve --background --data /d --model http://h/v1#serve --earlier-port 7"
            ),
            "--model http://h/v1#serve"
        );
        assert_eq!(
            remembered("greenroom serve --data=/d --listen 127.0.0.1:0 --ready-json --no-scripted"),
            "--listen 127.0.0.1:0 --no-scripted"
        );
    }
}
