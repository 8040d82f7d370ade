//! The service of one data directory: where its unit lies, and the commands of the service manager for it.
//!
//! Promises: a command that fails is an error with what it printed. Every data directory has a service of its own.
//! Must not know: what is in a unit.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, bail};
use client::endpoint;

use super::{launchd, systemd};

const NAME: &str = "greenroom";

/// What starts services on this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Manager {
    Systemd,
    Launchd,
}

impl Manager {
    fn of_this_system() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }
}

/// The service of a data directory, installed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Service {
    manager: Manager,
    name: String,
    data: PathBuf,
    home: PathBuf,
    /// `$XDG_CONFIG_HOME`, or where it is by default.
    config: PathBuf,
}

impl Service {
    /// `None` without a home directory.
    pub(crate) fn for_data(data: &Path) -> Option<Self> {
        let directory = |name: &str| {
            let path = std::env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let home = directory("HOME")?;
        let data = std::path::absolute(data).ok()?;
        let is_default = endpoint::data_directory(None).is_ok_and(|default| default == data);
        Some(Self {
            manager: Manager::of_this_system(),
            name: if is_default {
                NAME.to_owned()
            } else {
                format!("{NAME}-{:08x}", hash(data.as_os_str()))
            },
            data,
            config: directory("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            home,
        })
    }

    /// The service of a data directory, if it is installed.
    pub(crate) fn installed_for(data: &Path) -> Option<Self> {
        Self::for_data(data).filter(Self::is_installed)
    }

    pub(super) fn with_manager(self, manager: Manager) -> Self {
        Self { manager, ..self }
    }

    /// As its manager calls it.
    pub(crate) fn name(&self) -> String {
        match self.manager {
            Manager::Systemd => format!("{}.service", self.name),
            Manager::Launchd => format!("{}.host", self.name),
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        match self.manager {
            Manager::Systemd => self.config.join("systemd/user").join(self.name()),
            Manager::Launchd => {
                let file = format!("{}.plist", self.name());
                self.home.join("Library/LaunchAgents").join(file)
            }
        }
    }

    /// Whether there is a unit for this data directory. What the default directory is depends on the environment, so that a
    /// unit of this name may be another's.
    pub(crate) fn is_installed(&self) -> bool {
        let data = match self.manager {
            Manager::Systemd => systemd::argument(&self.data),
            Manager::Launchd => launchd::argument(&self.data),
        };
        let written = fs::read_to_string(self.file());
        written.is_ok_and(|written| data.is_ok_and(|data| written.contains(&data)))
    }

    /// Whether the unit is the one that this executable would write.
    pub(crate) fn is_current(&self) -> bool {
        let unit = || self.describe(&std::env::current_exe()?);
        let written = fs::read_to_string(self.file());
        written.is_ok_and(|written| unit().is_ok_and(|unit| unit == written))
    }

    /// The unit that starts this program with this data directory.
    pub(super) fn describe(&self, program: &Path) -> anyhow::Result<String> {
        match self.manager {
            Manager::Systemd => systemd::unit(program, &self.data),
            Manager::Launchd => {
                launchd::property_list(&self.name(), program, &self.data, &self.home)
            }
        }
    }

    pub(super) fn write(&self, unit: &str) -> anyhow::Result<()> {
        let file = self.file();
        if file.exists() && !self.is_installed() {
            bail!(
                "{} is there already and is not for the data directory {}; remove it first",
                file.display(),
                self.data.display()
            );
        }
        let written = file.parent().map_or(Ok(()), fs::create_dir_all);
        written
            .and_then(|()| fs::write(&file, unit))
            .with_context(|| format!("{} cannot be written", file.display()))
    }

    pub(super) fn remove(&self) -> anyhow::Result<()> {
        let file = self.file();
        fs::remove_file(&file).with_context(|| format!("{} cannot be removed", file.display()))?;
        match self.manager {
            // What it still knows of the unit is forgotten when it is asked the next time at the latest.
            Manager::Systemd => run_quietly(&["systemctl", "--user", "daemon-reload"]).map(drop),
            Manager::Launchd => Ok(()),
        }
    }

    /// Starts it now and whenever the user logs in.
    pub(super) fn enable(&self) -> anyhow::Result<()> {
        let (name, file) = (self.name(), self.file());
        match self.manager {
            Manager::Systemd => {
                run(&["systemctl", "--user", "daemon-reload"])?;
                run(&["systemctl", "--user", "enable", "--now", &name])
            }
            Manager::Launchd => {
                // An agent that is loaded cannot be loaded again, and keeps its old list. Most often there is none.
                let _none_loaded = run_quietly(&["launchctl", "bootout", &self.launchd_target()])?;
                let file = file.to_string_lossy();
                run(&["launchctl", "bootstrap", &launchd::domain(), &file])
            }
        }
    }

    pub(super) fn disable(&self) -> anyhow::Result<()> {
        match self.manager {
            Manager::Systemd => run(&["systemctl", "--user", "disable", "--now", &self.name()]),
            Manager::Launchd => run(&["launchctl", "bootout", &self.launchd_target()]),
        }
    }

    pub(crate) fn start(&self) -> anyhow::Result<()> {
        match self.manager {
            Manager::Systemd => run(&["systemctl", "--user", "start", &self.name()]),
            Manager::Launchd => run(&["launchctl", "kickstart", &self.launchd_target()]),
        }
    }

    /// Asks it to stop, until it is started again or the user logs in anew.
    pub(crate) fn stop(&self) -> anyhow::Result<()> {
        match self.manager {
            Manager::Systemd => {
                // The manager itself would wait; whoever called this does.
                run(&["systemctl", "--user", "stop", "--no-block", &self.name()])
            }
            Manager::Launchd => run(&["launchctl", "kill", "SIGTERM", &self.launchd_target()]),
        }
    }

    fn launchd_target(&self) -> String {
        format!("{}/{}", launchd::domain(), self.name())
    }

    pub(crate) fn is_active(&self) -> bool {
        if !self.is_installed() {
            return false; // what runs under this name is another's
        }
        let asked = match self.manager {
            Manager::Systemd => run_quietly(&["systemctl", "--user", "is-active", &self.name()]),
            Manager::Launchd => run_quietly(&["launchctl", "print", &self.launchd_target()]),
        };
        asked.is_ok_and(|output| output.status.success())
    }

    /// In a word or two.
    pub(crate) fn state(&self) -> &'static str {
        match (self.is_installed(), self.is_active()) {
            (false, _) => "not installed",
            (true, true) => "installed, active",
            (true, false) => "installed, not active",
        }
    }

    /// What to know about it once it is installed.
    pub(super) fn hint(&self) -> &'static str {
        match self.manager {
            Manager::Systemd => {
                "It starts when you log in; `loginctl enable-linger` lets it run without you.\n"
            }
            Manager::Launchd => "It starts when you log in.\n",
        }
    }
}

/// FNV-1a: a short name for a path, the same in every version.
fn hash(text: &OsStr) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    text.as_bytes().iter().fold(0x811c_9dc5, step)
}

fn run_quietly(command: &[&str]) -> anyhow::Result<Output> {
    let (program, arguments) = command.split_first().context("no command")?;
    let output = Command::new(program).args(arguments).output();
    output.with_context(|| format!("`{program}` cannot be run; is it installed?"))
}

fn run(command: &[&str]) -> anyhow::Result<()> {
    let output = run_quietly(command)?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed: {}", command.join(" "), words.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_data_directory_has_its_own_name() {
        assert_eq!(hash(OsStr::new("")), 0x811c_9dc5);
        assert_eq!(hash(OsStr::new("a")), 0xe40c_292c);
        assert_ne!(hash(OsStr::new("/srv/a")), hash(OsStr::new("/srv/b")));
    }

    #[test]
    fn a_command_that_fails_says_what_it_printed() {
        let failed = run(&["sh", "-c", "echo no such unit >&2; exit 5"]).unwrap_err();
        assert!(failed.to_string().ends_with("failed: no such unit"), "{failed}");
        let missing = run(&["no-such-program-anywhere"]).unwrap_err();
        assert!(format!("{missing:#}").contains("is it installed?"), "{missing:#}");
    }
}
