//! A real host on a real socket, for published clients.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends")]

pub mod acp;
pub mod file_tree;
pub mod native;
pub mod vscode;

use std::path::{Path, PathBuf};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A host that serves in this process until it is stopped.
pub struct TestHost {
    pub url: String,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<Result<(), host::ServeError>>,
    data: PathBuf,
}

impl TestHost {
    /// Starts a host on `data` with a script; no token, any free port.
    pub async fn start(data: &Path, script: &serde_json::Value) -> Self {
        Self::start_with(data, script, |_| {}).await
    }

    pub async fn start_with(
        data: &Path,
        script: &serde_json::Value,
        change: impl FnOnce(&mut host::Config),
    ) -> Self {
        let script_file = data.join("script.json");
        std::fs::write(&script_file, script.to_string()).expect("the script can be written");
        let mut config = host::Config::default_for(data.join("data"));
        config.listen = ([127, 0, 0, 1], 0).into();
        config.token = host::TokenChoice::None;
        config.script = Some(script_file);
        config.workspaces = vec![data.to_owned()];
        change(&mut config);
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, is_ready) = oneshot::channel();
        let served = tokio::spawn(host::serve(
            config,
            move |info| {
                let _ = ready.send(info.url);
            },
            async move {
                let _ = stopped.await;
            },
        ));
        let Ok(url) = is_ready.await else {
            let ended = served.await.expect("the host's task lives");
            panic!("the host does not start: {ended:?}");
        };
        Self { url, stop: Some(stop), served, data: data.to_owned() }
    }

    /// The directory the host was started on.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Stops the host gracefully.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        self.served.await.expect("the host's task lives").expect("the host stops well");
    }
}
