//! Edits a text in the user's own editor, through a temporary file.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;
use tokio::process::{Child, Command};
use uuid::Uuid;

const EDITOR_DEFAULT: &str = "vi";

/// A file with the text, readable by its owner only; gone when this is.
pub(crate) struct EditedFile {
    path: PathBuf,
    was_json: bool,
}

impl EditedFile {
    /// A text that is JSON is edited in lines; any other as it is.
    pub(crate) fn json(text: &str) -> anyhow::Result<Self> {
        match serde_json::from_str::<Value>(text) {
            Ok(value) => {
                let pretty = serde_json::to_string_pretty(&value)? + "\n";
                Self::write(&pretty, "json", true)
            }
            Err(_) => Self::write(text, "txt", false),
        }
    }

    /// A message, as it is.
    pub(crate) fn plain(text: &str) -> anyhow::Result<Self> {
        Self::write(text, "md", false)
    }

    fn write(content: &str, extension: &str, was_json: bool) -> anyhow::Result<Self> {
        let name = format!("greenroom-{}.{extension}", Uuid::now_v7());
        let file = Self { path: std::env::temp_dir().join(name), was_json };
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file.path);
        let written = opened.and_then(|mut opened| opened.write_all(content.as_bytes()));
        written.with_context(|| format!("{} cannot be written", file.path.display()))?;
        Ok(file)
    }

    /// Starts the editor that $VISUAL or $EDITOR names; it has the terminal until it ends.
    pub(crate) fn open_editor(&self) -> anyhow::Result<Child> {
        let named = |name: &str| std::env::var(name).ok().filter(|text| !text.trim().is_empty());
        let editor = named("VISUAL")
            .or_else(|| named("EDITOR"))
            .unwrap_or_else(|| EDITOR_DEFAULT.to_owned());
        // Through the shell, since the variable may hold options.
        Command::new("sh")
            .arg("-c")
            .arg(format!("{editor} \"$1\""))
            .arg("sh")
            .arg(&self.path)
            .spawn()
            .with_context(|| format!("the editor `{editor}` could not be started; set $EDITOR"))
    }

    /// The text as it is now; JSON in one line again.
    pub(crate) fn read(&self) -> anyhow::Result<String> {
        let text = read(&self.path)?;
        if !self.was_json {
            return Ok(text);
        }
        match serde_json::from_str::<Value>(&text) {
            Ok(value) => Ok(value.to_string()),
            Err(error) => {
                bail!("the edited input is not JSON any more ({error}); it was not used")
            }
        }
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

impl Drop for EditedFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_edited_in_lines_and_read_back_as_one() {
        let file = EditedFile::json("{\"b\":1,\"a\":[2]}").unwrap();
        let content = read(&file.path).unwrap();
        assert!(content.contains("\n  \"b\": 1,\n"), "{content}");
        assert_eq!(file.read().unwrap(), "{\"b\":1,\"a\":[2]}");
        std::fs::write(&file.path, "{").unwrap();
        assert!(file.read().unwrap_err().to_string().contains("not JSON"));
        let path = file.path.clone();
        drop(file);
        assert!(!path.exists());

        let text = EditedFile::json("ls -la").unwrap();
        std::fs::write(&text.path, "{").unwrap();
        assert_eq!(text.read().unwrap(), "{");
        assert_eq!(EditedFile::plain("[1]").unwrap().read().unwrap(), "[1]");
    }
}
