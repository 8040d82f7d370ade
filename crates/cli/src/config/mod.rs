//! `greenroom config`: makes, edits and checks the settings file of the host.
//!
//! Promises: no file is overwritten, and a wrong one replaces a right one only if the user says so.

pub(crate) mod edit;

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use client::endpoint;
use host::{Config, ConfigError};

use crate::exit::Exit;
use crate::output::print;
use crate::private_directory::create_parent_of;
use crate::stop::command_for;
use crate::terminal::escape;

/// Make, edit and check the settings file
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom config init                write a file with every setting as a comment
  greenroom config edit                edit it in $VISUAL or $EDITOR, and check it
  greenroom config check
  greenroom config path

A running host reads the file when it is restarted: `greenroom restart`. Earlier count only `resource_grants`, at once, unless \
clients can change the file, and models that `greenroom models` changes. `greenroom serve --print-config` prints all settings as they \
are.

Exit codes: 0 done, or the file is right; 1 it could not be read or written; 2 it is wrong.")]
pub(crate) struct ConfigOptions {
    #[command(subcommand)]
    action: ConfigAction,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigAction {
    /// Write a file with every setting as a comment
    Init(InitOptions),
    /// Edit the file, and check it
    Edit(FileOptions),
    /// Say what is wrong with the file
    Check(FileOptions),
    /// Print where the file is
    Path(FileOptions),
}

#[derive(Debug, clap::Args)]
struct InitOptions {
    /// Print the file and write nothing
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    file: FileOptions,
}

#[derive(Debug, clap::Args)]
struct FileOptions {
    /// The file [default: greenroom.toml in the data directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data directory of the host [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl FileOptions {
    fn data(&self) -> anyhow::Result<PathBuf> {
        Ok(endpoint::data_directory(self.data.as_deref())?)
    }

    fn path(&self) -> anyhow::Result<PathBuf> {
        match &self.config {
            Some(file) => Ok(file.clone()),
            None => Ok(self.data()?.join(host::CONFIG_FILE)),
        }
    }
}

pub(crate) fn run(options: ConfigOptions) -> anyhow::Result<Exit> {
    match options.action {
        ConfigAction::Init(options) if options.print => {
            print(&host::settings_template())?;
            Ok(Exit::Complete)
        }
        ConfigAction::Init(options) => {
            let path = options.file.path()?;
            create(&path)?;
            print(&format!(
                "Wrote {} with every setting as a comment. `greenroom config edit` opens it.\n",
                path.display()
            ))?;
            Ok(Exit::Complete)
        }
        ConfigAction::Edit(options) => edit::run(&options.data()?, &options.path()?),
        ConfigAction::Check(options) => check(&options.data()?, &options.path()?),
        ConfigAction::Path(options) => {
            print(&format!("{}\n", options.path()?.display()))?;
            Ok(Exit::Complete)
        }
    }
}

/// Writes the file, unless there is one.
fn create(path: &Path) -> anyhow::Result<()> {
    let unwritable = || format!("{} cannot be written", path.display());
    create_parent_of(path).with_context(unwritable)?;
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = match created {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!(
            "{} is there already and was not changed. `greenroom config edit` edits it; `greenroom config init --print` \
             shows every setting",
            path.display()
        ),
        created => created.with_context(unwritable)?,
    };
    file.write_all(host::settings_template().as_bytes()).with_context(unwritable)
}

/// Why a file cannot be used, in words; `None` if it can.
pub(crate) fn find_problem(data: &Path, path: &Path) -> Result<Option<String>, ConfigError> {
    let mut config = Config::default_for(data.to_owned());
    match config.load_toml(path) {
        Err(error @ ConfigError::Unreadable { .. }) => return Err(error),
        Err(error) => return Ok(Some(error.to_string())),
        Ok(()) => {}
    }
    // What only a start would find: files that are named and are not there, sections that no agent has.
    let problem = host::check_config(&config).err();
    Ok(problem.map(|problem| format!("{}: {problem}", path.display())))
}

/// When a running host uses what the file says.
fn when_used(data: &Path) -> String {
    format!(
        "A running host uses it after `{}`; `resource_grants` counts at once, unless clients can change the file.",
        command_for("restart", data)
    )
}

fn check(data: &Path, path: &Path) -> anyhow::Result<Exit> {
    if !path.exists() && path == data.join(host::CONFIG_FILE) {
        print(&format!(
            "There is no {}: every setting has its default. `greenroom config init` writes one.\n",
            path.display()
        ))?;
        return Ok(Exit::Complete);
    }
    if let Some(problem) = find_problem(data, path)? {
        eprintln!("greenroom: {}", escape(&problem));
        return Ok(Exit::Usage);
    }
    print(&format!("{} is valid. {}\n", path.display(), when_used(data)))?;
    Ok(Exit::Complete)
}
