//! The configuration file, changed in one piece.
//!
//! Promises: a change is whole or none, and two at once are done one after the other. The file keeps its mode, and a link to
//! it stays one. A file that a host could not use is not touched, and none is made that it could not use.
//! Must not know: what is changed.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use host::Config;

use crate::private_directory::create_private_directory;
use crate::terminal::escape_line;

/// No configuration is larger; a larger file is another one.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The mode of a new file: nobody else needs to know which models somebody uses.
const NEW_MODE: u32 = 0o600;

/// A configuration file, whether it is there or not.
pub(super) struct ConfigFile {
    data: PathBuf,
    path: PathBuf,
}

impl ConfigFile {
    pub(super) fn new(data: PathBuf, path: PathBuf) -> Self {
        Self { data, path }
    }

    /// The data directory of the host whose file this is.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// Its name, for people.
    pub(super) fn display(&self) -> String {
        escape_line(&self.path.to_string_lossy())
    }

    /// Changes the file: `change` gets its text and what a host makes of it, and returns the new text.
    pub(super) fn change(
        &self,
        change: impl FnOnce(&str, &Config) -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        let real = self.real_path()?;
        let directory = real.parent().context("it lies in no directory")?;
        let unwritable = || format!("{} cannot be written", self.display());
        create_private_directory(directory).with_context(unwritable)?;
        let _lock = lock(&real).with_context(unwritable)?;
        let (text, mode) = self.read(&real)?;
        let config = match mode {
            Some(_) => self.load(&real).with_context(|| {
                format!(
                    "{} is not changed, because a host could not use it as it is",
                    self.display()
                )
            })?,
            None => Config::default_for(self.data.clone()),
        };
        let changed = change(&text, &config)?;
        if changed == text {
            return Ok(());
        }
        let staged = staged_path(&real);
        let written = self.write(&staged, &changed, mode.unwrap_or(NEW_MODE)).and_then(|()| {
            self.load(&staged).context("a host could not use the changed configuration")?;
            fs::rename(&staged, &real)?;
            // Not every file system can, and the file is whole either way.
            let _ = File::open(directory).and_then(|directory| directory.sync_all());
            Ok(())
        });
        if written.is_err() {
            // It may not be there at all.
            let _ = fs::remove_file(&staged);
        }
        written.with_context(unwritable)
    }

    /// Where the file really lies: a link to it must stay one.
    fn real_path(&self) -> anyhow::Result<PathBuf> {
        match fs::canonicalize(&self.path) {
            Ok(real) => Ok(real),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                ensure!(
                    !self.path.is_symlink(),
                    "{} is a link to a file that is not there: create that file, or remove the link",
                    self.display()
                );
                Ok(self.path.clone())
            }
            Err(error) => Err(error).with_context(|| format!("{} cannot be found", self.display())),
        }
    }

    /// The text of the file, and its mode if it is there.
    fn read(&self, real: &Path) -> anyhow::Result<(String, Option<u32>)> {
        let unreadable = || format!("{} cannot be read", self.display());
        let metadata = match fs::metadata(real) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((String::new(), None)),
            Err(error) => return Err(error).with_context(unreadable),
        };
        ensure!(metadata.is_file(), "{} is not a file", self.display());
        ensure!(
            metadata.len() <= FILE_BYTES_MAX,
            "{} has more than {FILE_BYTES_MAX} bytes",
            self.display()
        );
        let mode = metadata.permissions().mode();
        if mode & 0o200 == 0 {
            bail!("{} is read-only: `chmod u+w` makes it writable", self.display());
        }
        let mut text = String::new();
        let mut file = File::open(real).with_context(unreadable)?.take(FILE_BYTES_MAX);
        file.read_to_string(&mut text).with_context(unreadable)?;
        Ok((text, Some(mode)))
    }

    fn load(&self, path: &Path) -> anyhow::Result<Config> {
        let mut config = Config::default_for(self.data.clone());
        config.load_toml(path)?;
        Ok(config)
    }

    fn write(&self, staged: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(NEW_MODE).open(staged)?;
        file.write_all(text.as_bytes())?;
        file.set_permissions(Permissions::from_mode(mode & 0o7777))?;
        file.sync_all()?;
        Ok(())
    }
}

/// Held while the file is changed. A file of its own: the configuration file is replaced by every change.
pub(crate) fn lock(real: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(NEW_MODE)
        .open(hidden_neighbour(real, "lock"))?;
    file.lock()?;
    Ok(file)
}

fn staged_path(real: &Path) -> PathBuf {
    hidden_neighbour(real, &format!("{}.new", std::process::id()))
}

fn hidden_neighbour(real: &Path, ending: &str) -> PathBuf {
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    real.with_file_name(format!(".{name}.{ending}"))
}
