//! Opens a link in the browser of whoever is at this machine.
//!
//! Promises: a browser never takes over the terminal, nor ends with this program; one that fails at once is told from one that
//! opened.
//! Must not know: what the link is for.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A launcher that has not failed by then has opened a browser, or is one.
const FAILS_WITHIN: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Opens the link; an error says why no browser could be.
pub(super) async fn open(link: &str) -> Result<(), String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let has_screen = variable("DISPLAY").is_some() || variable("WAYLAND_DISPLAY").is_some();
    let commands = commands(variable("BROWSER").as_deref(), has_screen, link);
    if commands.is_empty() {
        return Err("There is no screen here to open a browser on".to_owned());
    }
    for command in commands {
        if launch(&command).await {
            return Ok(());
        }
    }
    Err("No browser could be opened".to_owned())
}

/// What is tried, in this order. Without a screen the launchers of the desktop are not: they would start a browser that takes
/// over the terminal.
fn commands(browser: Option<&str>, has_screen: bool, link: &str) -> Vec<Vec<String>> {
    let chosen = browser.unwrap_or_default().split(':').filter_map(|entry| {
        let mut words = shlex::split(entry).filter(|words| !words.is_empty())?;
        let mut is_placed = false;
        for word in &mut words {
            is_placed |= word.contains("%s");
            *word = word.replace("%s", link);
        }
        if !is_placed {
            words.push(link.to_owned());
        }
        Some(words)
    });
    let launchers: &[&str] = match (cfg!(target_os = "macos"), has_screen) {
        (true, _) => &["open"],
        (false, true) => &["xdg-open", "wslview"],
        (false, false) => &["wslview"],
    };
    let launchers = launchers
        .iter()
        .filter(|name| is_installed(name))
        .map(|name| vec![(*name).to_owned(), link.to_owned()]);
    chosen.chain(launchers).collect()
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(OsStr::new(program)).is_file())
}

async fn launch(command: &[String]) -> bool {
    let Some((program, arguments)) = command.split_first() else {
        return false; // `commands` makes none that is empty
    };
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C in this terminal is not meant for the browser.
        .process_group(0)
        .spawn();
    let Ok(mut child) = started else {
        return false; // not there, or not to be run: the next is tried
    };
    let mut poll = tokio::time::interval(POLL_INTERVAL);
    let ended = tokio::time::timeout(FAILS_WITHIN, async {
        loop {
            poll.tick().await;
            match child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => return status.success(),
                Err(_) => return false,
            }
        }
    });
    ended.await.unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_names_what_is_tried_first() {
        let tried = commands(Some("my-browser --new %s:other 'a b'"), false, "L");
        assert_eq!(tried[0], ["my-browser", "--new", "L"]);
        assert_eq!(tried[1], ["other", "a b", "L"]);
        assert!(commands(None, false, "L").iter().all(|it| it[0] != "xdg-open"));
    }
}
