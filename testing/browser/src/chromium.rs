//! Chromium as a process: found, started with a profile of its own, ended with the test.
//!
//! Promises: without Chromium a test says so and passes; with `GREENROOM_BROWSER=require` it fails.
//! Must not know: pages.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::devtools::DevTools;
use crate::page::{Page, Screen};

const STARTS_WITHIN: Duration = Duration::from_secs(60);
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// A browser.
pub struct Browser {
    devtools: DevTools,
    /// Killed when it is dropped.
    _process: Child,
    /// Removed after the process is gone.
    _profile: TempDir,
}

impl Browser {
    /// Starts Chromium; prints why and returns `None` where it is neither found nor required.
    pub async fn start() -> Result<Option<Self>> {
        let Some(program) = find_program() else {
            if std::env::var("GREENROOM_BROWSER").as_deref() == Ok("require") {
                bail!("GREENROOM_BROWSER=require, but none of {} is on the path", NAMES.join(", "));
            }
            eprintln!("SKIPPED: there is no Chromium on the path, so the page is not tested");
            return Ok(None);
        };
        Self::launch(&program).await.map(Some)
    }

    async fn launch(program: &Path) -> Result<Self> {
        let profile = tempfile::tempdir()?;
        let mut process = Command::new(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
            ])
            .args(["--no-first-run", "--disable-background-networking"])
            .args([
                "--disable-component-update",
                "--disable-sync",
                "--disable-dev-shm-usage",
            ])
            .args([
                "--disable-extensions",
                "--remote-debugging-port=0",
                "--hide-scrollbars",
            ])
            // Without a mouse of its own it takes a desktop for a device that cannot point at anything.
            .args([
                "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} does not start", program.display()))?;
        let stderr = process.stderr.take().context("its output is piped")?;
        let mut lines = BufReader::new(stderr).lines();
        let address = timeout(STARTS_WITHIN, async {
            while let Some(line) = lines.next_line().await? {
                if let Some(address) = line.strip_prefix("DevTools listening on ") {
                    return Ok(address.to_owned());
                }
            }
            bail!("Chromium ended at once")
        });
        let address = address.await.context("Chromium says no address")??;
        // It blocks if nobody reads what it says.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self {
            devtools: DevTools::connect(&address).await?,
            _process: process,
            _profile: profile,
        })
    }

    /// Lets pages of an origin do what people are asked about, such as `notifications`.
    pub async fn allow(&self, origin: &str, permission: &str) -> Result<()> {
        let params = json!({"origin": origin, "permissions": [permission]});
        self.devtools.command(None, "Browser.grantPermissions", params).await.map(drop)
    }

    /// A new tab, which shares storage with the others.
    pub async fn page(&self, screen: Screen) -> Result<Page> {
        let blank = json!({"url": "about:blank"});
        let target = self.devtools.command(None, "Target.createTarget", blank).await?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.devtools.command(None, "Target.attachToTarget", attach).await?;
        let session = attached["sessionId"].as_str().context("a session")?;
        Page::prepare(self.devtools.clone(), session.to_owned(), screen).await
    }
}

fn find_program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    NAMES.iter().find_map(|name| {
        let mut places = directories.iter().map(|directory| directory.join(name));
        places.find(|place| place.is_file())
    })
}
