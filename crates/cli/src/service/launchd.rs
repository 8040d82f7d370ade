//! The property list of an agent of launchd.
//!
//! Promises: paths with `<`, `&` and quotes mean what they say; those that XML cannot hold are refused.
//! Must not know: where the list lies.

use std::path::Path;

use anyhow::bail;

/// Where agents of this user live.
pub(super) fn domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

/// The list that runs a program with a data directory.
pub(super) fn property_list(
    label: &str,
    program: &Path,
    data: &Path,
    home: &Path,
) -> anyhow::Result<String> {
    let (program, data, home) = (argument(program)?, argument(data)?, escape(home)?);
    Ok(format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{label}</string>
  <key>ProgramArguments</key>
  <array>
    {program}
    <string>serve</string>
    <string>--service</string>
    <string>--data</string>
    {data}
  </array>
  <key>WorkingDirectory</key>
  <string>{home}</string>
  <key>RunAtLoad</key>
  <true/>
  <!-- A host that was stopped, or finds another one at work, ends well and stays stopped. -->
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>ExitTimeOut</key>
  <integer>60</integer>
</dict>
</plist>
"#
    ))
}

/// A path as an argument of a program.
pub(super) fn argument(path: &Path) -> anyhow::Result<String> {
    Ok(format!("<string>{}</string>", escape(path)?))
}

fn escape(path: &Path) -> anyhow::Result<String> {
    let Some(text) = path.to_str() else {
        bail!("{} is not UTF-8: launchd cannot run it", path.display());
    };
    if text.contains(char::is_control) {
        bail!("{text:?} contains control characters: launchd cannot run it");
    }
    Ok(text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_paths_mean_what_they_say() {
        let list = |data: &str| {
            let paths = ["/g", data, "/h"].map(Path::new);
            property_list("greenroom.host", paths[0], paths[1], paths[2])
        };
        let text = list("/a <b> & \"c\"").unwrap();
        assert!(text.contains("<string>/a &lt;b&gt; &amp; \"c\"</string>"), "{text}");
        assert!(list("/a\u{1}").unwrap_err().to_string().contains("control"));
    }
}
