//! A host in a process of its own, and the verbs run against it, for tests of the command line.

// Every test binary uses a part of it.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use client::HostTarget;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A data directory, and the host that serves it; both are gone when the test is.
pub struct Host {
    pub data: TempDir,
    pub ready: Value,
    child: Child,
}

impl Host {
    /// Plays the built-in script.
    pub fn start() -> Self {
        Self::start_with(tempfile::tempdir().unwrap(), &[])
    }

    pub fn start_with(data: TempDir, more: &[&str]) -> Self {
        Self::start_in(data, more, &[])
    }

    /// Plays these scenes.
    pub fn scripted(scenes: &Value) -> Self {
        let data = tempfile::tempdir().unwrap();
        let script = json!({"scenes": scenes});
        std::fs::write(data.path().join("script.json"), script.to_string()).unwrap();
        Self::start_with(data, &["--script", "script.json"])
    }

    /// With variables of its own.
    pub fn start_in(data: TempDir, more: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = greenroom(data.path())
            .args(["serve", "--listen", "127.0.0.1:0", "--ready-json"])
            .args(["--workspace", "."])
            .args(more)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self { ready: serde_json::from_str(&line).unwrap(), data, child }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The address and the token that it printed.
    pub fn target(&self) -> HostTarget {
        HostTarget {
            url: self.ready["url"].as_str().unwrap().to_owned(),
            token: self.ready["token"].as_str().map(str::to_owned),
        }
    }

    pub fn greenroom(&self) -> Command {
        greenroom(self.data.path())
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.greenroom().args(arguments).output().unwrap()
    }

    /// Runs a verb that reads `input`.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self.greenroom().args(arguments).stdin(Stdio::piped()).spawn().unwrap();
        // A verb that ends early does not read all of it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Sends one message in a new session; the session's URI.
    pub fn new_session(&self, message: &str) -> String {
        let sent = self.run(&["send", "--json", message]);
        let result = result(&sent.stdout);
        result["session"].as_str().unwrap().to_owned()
    }

    /// The state of a channel.
    pub fn state(&self, channel: &str) -> Value {
        let mut child = self.greenroom().args(["watch", "--json", channel]).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let _ = child.kill();
        let _ = child.wait();
        let mut line_json: Value = serde_json::from_str(&line).unwrap();
        line_json["state"].take()
    }

    /// SIGKILL; the data directory stays.
    pub fn kill(mut self) -> TempDir {
        self.stop();
        std::mem::replace(&mut self.data, tempfile::tempdir().unwrap())
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The binary, away from the data directory and the settings of whoever runs the tests.
pub fn greenroom(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    for variable in [
        "GREENROOM_TOKEN",
        "GREENROOM_LOG",
        "NO_COLOR",
        "EDITOR",
        "VISUAL",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "OPENROUTER_API_KEY",
    ] {
        command.env_remove(variable);
    }
    command
        .env("XDG_DATA_HOME", data)
        // What listens on this machine is nobody's business here.
        .env("GREENROOM_MODEL_PORTS", "")
        .current_dir(data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The host's data directory.
pub fn data_directory(data: &Path) -> PathBuf {
    data.join("greenroom")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The last line of `send --json`.
pub fn result(bytes: &[u8]) -> Value {
    lines(bytes).pop().unwrap()
}

/// JSON Lines.
pub fn lines(bytes: &[u8]) -> Vec<Value> {
    text(bytes).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
