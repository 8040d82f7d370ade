//! Real processes.

use std::path::Path;

use tokio::io::{AsyncBufReadExt, BufReader};

use super::*;

fn shell(script: &str, directory: &Path) -> Launch {
    Launch {
        program: "/bin/sh".into(),
        args: vec!["-c".to_owned(), script.to_owned()],
        variables: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: directory.to_owned(),
    }
}

async fn first_line(stdout: ChildStdout) -> String {
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).await.unwrap();
    line.trim().to_owned()
}

/// Whether a process runs; one that nobody reaped does not.
fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim();
    !state.is_empty() && !state.starts_with('Z')
}

#[tokio::test]
async fn it_runs_in_its_directory_with_its_environment_alone() {
    let directory = tempfile::tempdir().unwrap();
    let mut launch = shell("echo \"$(pwd) $ONE ${HOME-none}\"", directory.path());
    launch.variables.push(("ONE".into(), "1".into()));
    let (mut process, pipes) = ChildProcess::start(&launch).unwrap();
    let line = first_line(pipes.stdout).await;
    let real = directory.path().canonicalize().unwrap();
    assert_eq!(line, format!("{} 1 none", real.display()));
    let status = process.wait().await.unwrap();
    assert_eq!(describe_exit(Some(status)), "exit code 0");
}

#[tokio::test]
async fn an_agent_that_goes_with_its_input_is_stopped_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let launch = shell("echo $$; cat >/dev/null; exit 7", directory.path());
    let (process, pipes) = ChildProcess::start(&launch).unwrap();
    let pid = first_line(pipes.stdout).await;
    assert!(is_running(&pid));
    drop(pipes.stdin);
    let status = process.stop().await;
    assert_eq!(describe_exit(status), "exit code 7");
    assert!(!is_running(&pid));
}

#[tokio::test]
async fn a_child_that_ignores_the_end_is_killed_with_the_group() {
    let directory = tempfile::tempdir().unwrap();
    let script = "(trap '' TERM; sleep 1000) & echo $!; cat >/dev/null";
    let (process, pipes) = ChildProcess::start(&shell(script, directory.path())).unwrap();
    let grandchild = first_line(pipes.stdout).await;
    assert!(is_running(&grandchild));
    drop(pipes.stdin);
    process.stop().await;
    wait_until_gone(&grandchild).await;
}

#[tokio::test]
async fn dropping_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let script = "trap '' TERM; sleep 1000 & echo $!; wait";
    let (process, pipes) = ChildProcess::start(&shell(script, directory.path())).unwrap();
    let grandchild = first_line(pipes.stdout).await;
    drop(process);
    wait_until_gone(&grandchild).await;
}

async fn wait_until_gone(pid: &str) {
    let mut looks = tokio::time::interval(Duration::from_millis(10));
    for _ in 0..1_000 {
        if !is_running(pid) {
            return;
        }
        looks.tick().await;
    }
    panic!("process {pid} is left");
}
