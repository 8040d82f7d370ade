//! A shell of the user in a terminal.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use agent_api::{ShownTerminal, TerminalChange, TerminalHolder};
use async_trait::async_trait;
use kernel::TerminalStart;
use terminals::{
    IntegrationFiles, Mark, Program, RunningTerminal, StartDirectory, TerminalLaunch, TerminalSize,
};

use super::ShellSettings;
use crate::task;

/// Shells that are tried in this order if the user has none.
const SHELLS: [&str; 2] = ["/bin/bash", "/bin/sh"];

/// A terminal that a client made.
pub(super) struct ShellTerminal(RunningTerminal);

/// Starts a shell; the error is for people.
pub(super) async fn open(
    settings: ShellSettings,
    start: TerminalStart,
) -> Result<ShellTerminal, String> {
    let work = task::spawn_blocking(move || plan(&settings, &start));
    let launch = work.await.map_err(|_| "internal error while preparing it".to_owned())??;
    let opened = terminals::open(launch, Mark::unique(), None).await;
    opened.map(ShellTerminal).map_err(|error| error.to_string())
}

fn plan(settings: &ShellSettings, start: &TerminalStart) -> Result<TerminalLaunch, String> {
    let directory = match &start.directory {
        Some(uri) => {
            let path = wire::file_uri::path_of(uri);
            PathBuf::from(OsString::from_vec(path.unwrap_or_default()))
        }
        None => std::env::var_os("HOME").map_or_else(|| "/".into(), PathBuf::from),
    };
    if !directory.is_dir() {
        let directory = directory.display();
        return Err(format!("{directory} is not a directory on this machine"));
    }
    let integration = settings.integration.as_ref().and_then(|directory| {
        // Without it a shell works as well, and says less.
        let installed = IntegrationFiles::install(directory);
        installed
            .inspect_err(|error| tracing::warn!(%error, "shell integration is off: its files cannot be written"))
            .ok()
    });
    let secrets = &settings.secret_variables;
    let is_key = |name: &str| agents::native::is_key_variable(name);
    Ok(TerminalLaunch {
        program: Program::Shell { path: user_shell(), integration },
        directory: StartDirectory::Path(directory),
        variables: terminals::shell_environment(std::env::vars_os(), secrets, &is_key),
        size: TerminalSize::clamped(start.columns, start.rows),
    })
}

fn user_shell() -> PathBuf {
    let own = std::env::var_os("SHELL")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute() && path.is_file());
    let mut others = SHELLS.iter().map(Path::new).filter(|path| path.is_file());
    own.or_else(|| others.next().map(Path::to_owned)).unwrap_or_else(|| PathBuf::from("/bin/sh"))
}

#[async_trait]
impl ShownTerminal for ShellTerminal {
    async fn next(&self) -> Option<Vec<TerminalChange>> {
        let changes = self.0.next().await?.into_iter().map(agents::tool::terminal_change);
        Some(changes.collect())
    }

    fn write(&self, text: &str) -> bool {
        self.0.write(text).is_ok()
    }

    fn resize(&self, columns: i64, rows: i64) {
        self.0.resize(TerminalSize::clamped(columns, rows));
    }

    fn clear(&self) {
        self.0.clear();
    }

    fn redraw(&self) {
        self.0.redraw();
    }

    fn kill(&self) {
        self.0.request_kill();
    }

    /// A shell does not mind who types.
    fn set_holder(&self, _: TerminalHolder) {}
}
