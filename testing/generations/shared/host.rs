//! The real binary, in a process of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub struct Host {
    directory: TempDir,
    child: Child,
    pub url: String,
}

/// An agent over ACP that takes tokens and makes worktrees, and a model for the native agent, which reads plugins. Neither has a turn
/// here: no process is started, and no model is asked.
const SETTINGS: &str = r#"
agents_auto = false

[[agents]]
id = "other"
name = "Other"
command = "cat"
auth = { resource = "https://api.example", token_env = "OTHER_TOKEN" }

[[models]]
id = "nobody"
base_url = "http://127.0.0.1:9/v1"
"#;

fn git(directory: &Path, args: &[&str]) {
    let done = Command::new("git").current_dir(directory).args(args).output().expect("git");
    assert!(done.status.success(), "git {args:?}: {done:?}");
}

/// `GREENROOM_BIN` names the binary; without it, the one that the workspace builds for debugging.
fn binary() -> PathBuf {
    let named = std::env::var_os("GREENROOM_BIN").map(PathBuf::from);
    named.unwrap_or_else(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().find(|above| above.join("crates").is_dir());
        root.expect("inside the repository").join("target/debug/greenroom")
    })
}

fn serve(directory: &Path) -> (Child, String) {
    // Shells and agents are not to find what this machine's user has at home.
    let home = directory.join("home");
    std::fs::create_dir_all(&home).expect("a home");
    let mut child = Command::new(binary())
        .env("HOME", home)
        // One whose commands are detected.
        .env("SHELL", "/bin/bash")
        .args(["serve", "--listen", "127.0.0.1:0", "--ready-json"])
        .arg("--workspace")
        .arg(directory.join("work"))
        .arg("--data")
        .arg(directory.join("data"))
        .arg("--script")
        .arg(directory.join("script.json"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut line = String::new();
    let output = child.stdout.as_mut().expect("its output");
    BufReader::new(output).read_line(&mut line).expect("a line");
    let ready: Value = serde_json::from_str(&line).expect("a line of JSON");
    let (url, token) = (ready["url"].as_str(), ready["token"].as_str());
    let (url, token) = (url.expect("an address"), token.expect("a token"));
    (child, format!("{url}?tkn={token}"))
}

// Each test uses a part of it.
#[allow(dead_code)]
impl Host {
    pub fn start(script: &Value) -> Self {
        Self::start_prepared(script, |_, _| {})
    }

    /// With an agent `other` and the native one beside the scripted one, and a repository with a plugin to work in.
    pub fn start_with_agent(script: &Value) -> Self {
        Self::start_prepared(script, |work, data| {
            std::fs::write(data.join("greenroom.toml"), SETTINGS).expect("settings");
            let skill = work.join(".agents/plugins/helper/skills/tidy");
            std::fs::create_dir_all(&skill).expect("a plugin");
            let text = "---\nname: tidy\ndescription: Tidies up\n---\nTidy up.\n";
            std::fs::write(skill.join("SKILL.md"), text).expect("a skill");
            git(work, &["init", "--quiet", "--initial-branch=main"]);
            git(work, &["config", "user.name", "Test"]);
            git(work, &["config", "user.email", "test@example.com"]);
            git(work, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
        })
    }

    /// With these settings.
    pub fn start_with_settings(script: &Value, settings: &str) -> Self {
        Self::start_prepared(script, |_, data| {
            std::fs::write(data.join("greenroom.toml"), settings).expect("settings");
        })
    }

    /// With what is to be in the working directory and in the data directory before it starts.
    fn start_prepared(script: &Value, prepare: impl FnOnce(&Path, &Path)) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        // What the host stores is not for its agents to work in.
        let (work, data) = (directory.path().join("work"), directory.path().join("data"));
        for made in [&work, &data] {
            std::fs::create_dir(made).expect("a directory");
        }
        prepare(&work, &data);
        std::fs::write(directory.path().join("script.json"), script.to_string()).expect("a script");
        let (child, url) = serve(directory.path());
        Self { directory, child, url }
    }

    /// Where sessions work.
    pub fn work(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    pub fn work_uri(&self) -> String {
        format!("file://{}", self.work().display())
    }

    /// A path where no session works.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `kill -9`, and the same data directory again.
    pub fn is_killed_and_starts_again(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ended");
        (self.child, self.url) = serve(self.directory.path());
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended by itself; the directory goes in any case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
