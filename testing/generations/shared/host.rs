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

/// `GREENROOM_BIN` names the binary; without it, the one that the workspace builds for debugging.
fn binary() -> PathBuf {
    let named = std::env::var_os("GREENROOM_BIN").map(PathBuf::from);
    named.unwrap_or_else(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().find(|above| above.join("crates").is_dir());
        root.expect("inside the repository")
            .join("target/debug/greenroom")
    })
}

fn serve(directory: &Path) -> (Child, String) {
    // What the host stores is not for its agents to work in.
    let work = directory.join("work");
    std::fs::create_dir_all(&work).expect("a directory to work in");
    let mut child = Command::new(binary())
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--ready-json",
            "--no-token",
        ])
        .arg("--workspace")
        .arg(work)
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
    let url = ready["url"].as_str().expect("an address").to_owned();
    (child, url)
}

impl Host {
    pub fn start(script: &Value) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("script.json"), script.to_string()).expect("a script");
        let (child, url) = serve(directory.path());
        Self {
            directory,
            child,
            url,
        }
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
