//! The pictures of the documents, made from the real program: a coding turn with a model, as a person sees it.
//!
//! `PICTURES=1 cargo test -p cli --test cli pictures` writes them to `docs/pictures`; without it the same turn is played and looked at.

use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use testkit::{Answer, Call, ModelServer};

use crate::running::Host;
use crate::terminal::{ScreenSize, Terminal, picture};

const CODE: &str = "/// A greeting for somebody.
pub fn greet(name: &str) -> String {
    format!(\"Hey {name}\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_greeted() {
        assert_eq!(greet(\"Ada\"), \"Good morning, Ada\");
    }
}
";

/// The answer at the end, with what people want to read well: a heading, a list, a table, code.
const ANSWER: &str = "## The greeting is polite now

`greet` began with *Hey*; the test wants **Good morning**. Two places call it:

| caller | where | expects |
|---|---|---|
| `main` | `src/main.rs` | any text |
| tests | `src/lib.rs` | `Good morning, Ada` |

Try it:

```rust
let text = greet(\"Ada\");
assert!(text.starts_with(\"Good morning\"));
```

- [x] the test passes
- [ ] translations, if you want them
";

/// A project whose test fails, and a model that mends it.
async fn start(server: &ModelServer) -> (Host, TempDir) {
    let project = tempfile::Builder::new().prefix("hello-").tempdir().unwrap();
    std::fs::create_dir(project.path().join("src")).unwrap();
    std::fs::write(project.path().join("src/lib.rs"), CODE).unwrap();
    let edit = json!({"path": "src/lib.rs", "edits": [{
        "old_text": "    format!(\"Hey {name}\")",
        "new_text": "    // The whole sentence, as the test wants it.\n    format!(\"Good morning, {name}\")",
    }]});
    server.answers([
        Answer::thinks(["The test wants another greeting than the code gives."])
            .then_streams(["I will look at the code first."])
            .then_calls([Call::new("c1", "read", &json!({"path": "src/lib.rs"}))]),
        Answer::calls([Call::new("c2", "edit", &edit)]),
        Answer::calls([Call::new(
            "c3",
            "bash",
            &json!({"command": "grep -n 'Good morning' src/lib.rs"}),
        )]),
        Answer::streams([ANSWER]).with_usage(18_240, 612),
    ]);
    let model = format!("{}#echo", server.url());
    let root = project.path().to_owned();
    let started = tokio::task::spawn_blocking(move || {
        let root = root.to_str().unwrap().to_owned();
        Host::start_with(tempfile::tempdir().unwrap(), &["--model", &model, "--workspace", &root])
    });
    (started.await.unwrap(), project)
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures")
}

fn take_picture(terminal: &Terminal, name: &str) {
    if std::env::var_os("PICTURES").is_none() {
        return; // the turn is played and looked at, nothing is written
    }
    std::fs::create_dir_all(directory()).unwrap();
    let svg = terminal.with_screen(picture::svg);
    std::fs::write(directory().join(name), svg).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_coding_turn_with_diffs() {
    let server = ModelServer::start().await;
    let (host, project) = start(&server).await;
    let mut command = host.greenroom();
    command.arg("chat").current_dir(project.path());
    let play = move || {
        let mut ann = Terminal::start_sized("ann", command, ScreenSize::new(100, 36));
        ann.sees("›");
        ann.type_line("Make the test in @file:src/lib.rs pass");
        // The diff has line numbers once both contents are there.
        ann.sees("4 +     format!(\"Good morning, {name}\")");
        ann.sees("Approve");
        take_picture(&ann, "coding.svg");
        ann.decide('1');
        ann.sees("allow bash(grep");
        ann.decide('1');
        ann.sees("translations");
        take_picture(&ann, "answer.svg");
        ann.press("/");
        ann.sees("/help");
        take_picture(&ann, "commands.svg");
    };
    tokio::task::spawn_blocking(play).await.unwrap();
    let changed = std::fs::read_to_string(project.path().join("src/lib.rs")).unwrap();
    assert!(changed.contains("Good morning, {name}"), "{changed}");
    assert_eq!(server.requests().len(), 4);
}
