//! Files that an agent reads through the host (AG-50).
//!
//! Promises: only where the configuration offers it; inside the working directories, opened confined each time.

use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use serde_json::{Value, json};
use workspace::{FileError, Workspace, is_binary};

use super::super::rpc::{self, AcpError, RequestId};
use super::TurnStopped;
use super::run::RunningTurn;
use crate::task;

const READ_BYTES_MAX: u64 = 8 * 1_024 * 1_024;

impl RunningTurn<'_> {
    pub(super) async fn read_file(
        &mut self,
        id: RequestId,
        request: acp::ReadTextFileRequest,
    ) -> Result<(), TurnStopped> {
        if !self.turn.core.config.fs {
            self.answer(&id, Err(not_offered("fs/read_text_file")));
            return Ok(());
        }
        let workspace = Arc::clone(&self.directories.workspace);
        let read = task::try_blocking(move || read(&workspace, &request));
        let answer = match read.await {
            Ok(answer) => answer,
            Err(_) => Err(AcpError::new(rpc::INTERNAL_ERROR, "internal error while reading it")),
        };
        self.answer(&id, answer);
        Ok(())
    }
}

pub(super) fn not_offered(method: &str) -> AcpError {
    AcpError::new(rpc::METHOD_NOT_FOUND, format!("Method not found: {method}"))
}

fn read(workspace: &Workspace, request: &acp::ReadTextFileRequest) -> Result<Value, AcpError> {
    let refused = |why: String| AcpError::new(rpc::INVALID_PARAMS, why);
    let path = request.path.to_str().filter(|_| request.path.is_absolute());
    let path = path.ok_or_else(|| refused("the path must be absolute".to_owned()))?;
    let resolved = workspace.resolve(path).map_err(|error| refused(error.to_string()))?;
    let file = match workspace.read_bytes(&resolved, READ_BYTES_MAX) {
        Ok(file) => file,
        Err(FileError::NotFound { .. }) => {
            return Err(AcpError::new(rpc::NOT_FOUND, format!("Resource not found: {path}")));
        }
        Err(error) => return Err(refused(error.to_string())),
    };
    if file.total > READ_BYTES_MAX || is_binary(&file.bytes) {
        return Err(refused(format!("{path} is too large, or no text")));
    }
    let text =
        String::from_utf8(file.bytes.into()).map_err(|_| refused(format!("{path} is no text")))?;
    if let Some(receipt) = &file.receipt {
        workspace.mark_as_read(receipt);
    }
    Ok(json!({"content": some_lines(&text, request.line, request.limit)}))
}

/// From this line on, counted from one, so many of them.
fn some_lines(text: &str, line: Option<u32>, limit: Option<u32>) -> String {
    let skipped = line.unwrap_or(1).saturating_sub(1) as usize;
    let lines = text.split_inclusive('\n').skip(skipped);
    match limit {
        Some(limit) => lines.take(limit as usize).collect(),
        None => lines.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ag_50_lines_are_counted_from_one() {
        let text = "a\nb\nc";
        assert_eq!(some_lines(text, None, None), text);
        assert_eq!(some_lines(text, Some(2), Some(1)), "b\n");
        assert_eq!(some_lines(text, Some(3), Some(9)), "c");
        assert_eq!(some_lines(text, Some(9), None), "");
    }

    #[test]
    fn ag_50_only_text_inside_is_read() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("in");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(outer.path().join("secret"), "s").unwrap();
        std::fs::write(inner.join("a"), "one\ntwo\n").unwrap();
        std::os::unix::fs::symlink(outer.path().join("secret"), inner.join("link")).unwrap();
        let uri = wire::file_uri::uri_of(inner.as_os_str().as_encoded_bytes());
        let workspace = Workspace::open(&[uri], &workspace::Confinement::none()).unwrap();
        let request = |path: &str| {
            let request = json!({"sessionId": "s", "path": path, "line": 2});
            read(&workspace, &serde_json::from_value(request).unwrap())
        };
        let inside = |name: &str| inner.join(name).to_str().unwrap().to_owned();
        assert_eq!(request(&inside("a")).unwrap(), json!({"content": "two\n"}));
        assert_eq!(request(&inside("none")).unwrap_err().code, rpc::NOT_FOUND);
        for path in [inside("link"), inside("../secret"), "a".to_owned(), "/etc/passwd".to_owned()]
        {
            assert_eq!(request(&path).unwrap_err().code, rpc::INVALID_PARAMS, "{path}");
        }
    }
}
