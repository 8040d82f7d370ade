//! The user unit of systemd.
//!
//! Promises: paths with spaces, quotes, `%` and `$` mean what they say; those that no unit can hold are refused.
//! Must not know: where the unit lies.

use std::path::Path;

use anyhow::bail;

/// The unit that runs a program with a data directory.
pub(super) fn unit(program: &Path, data: &Path) -> anyhow::Result<String> {
    // The program is not looked at for variables, its arguments are.
    let program = quote(program)?;
    let data = argument(data)?;
    Ok(format!(
        "\
[Unit]
Description=greenroom agent host
Documentation=man:greenroom(1)

[Service]
Type=exec
ExecStart={program} serve --service --data {data}
WorkingDirectory=~
# A host that was stopped, or finds another one at work, ends well and stays stopped.
Restart=on-failure
RestartSec=5
# Commands of agents are ended by the host; what is left of them after it is killed.
KillMode=mixed
TimeoutStopSec=60

[Install]
WantedBy=default.target
"
    ))
}

/// A path as an argument of a program.
pub(super) fn argument(path: &Path) -> anyhow::Result<String> {
    Ok(quote(path)?.replace('$', "$$"))
}

/// A path as one word of a command line of systemd.
fn quote(path: &Path) -> anyhow::Result<String> {
    let Some(text) = path.to_str() else {
        bail!("{} is not UTF-8: systemd cannot run it", path.display());
    };
    if text.contains(char::is_control) {
        bail!("{text:?} contains control characters: systemd cannot run it");
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    Ok(format!("\"{escaped}\""))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn command(program: &str, data: &str) -> String {
        let unit = unit(Path::new(program), Path::new(data)).unwrap();
        let line = unit.lines().find(|line| line.starts_with("ExecStart="));
        line.unwrap().to_owned()
    }

    #[test]
    fn odd_paths_mean_what_they_say() {
        assert_eq!(
            command("/usr/bin/greenroom", "/srv/data"),
            r#"ExecStart="/usr/bin/greenroom" serve --service --data "/srv/data""#
        );
        assert_eq!(
            command("/a b/g$x", "/100% \"of\" $HOME\\it's"),
            r#"ExecStart="/a b/g$x" serve --service --data "/100%% \"of\" $$HOME\\it's""#
        );
    }

    #[test]
    fn what_no_unit_can_hold_is_refused() {
        let odd = |path: &Path| unit(Path::new("/g"), path).unwrap_err().to_string();
        assert!(odd(Path::new("/a\nExecStart=/b")).contains("control characters"));
        assert!(odd(Path::new(OsStr::from_bytes(b"/\xff"))).contains("UTF-8"));
    }
}
