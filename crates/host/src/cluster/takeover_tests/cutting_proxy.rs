//! Passes bytes on between a node and its database, until it is told to lose the answer of a transaction.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// The server has answered all it was asked when it says nothing for so long.
const ANSWERED: Duration = Duration::from_millis(500);
const SOCKET: &str = ".s.PGSQL.5432";

#[derive(Debug, Clone, PartialEq, Eq)]
enum ProxyMode {
    Open,
    /// The next transaction with this text in it is committed, but nobody hears of it.
    CutAfterCommit(String),
    /// Nobody gets through.
    Closed,
    /// Nothing is carried, and nobody is told: what was sent arrives when it is open again.
    Silent,
}

pub(super) struct CuttingProxy {
    directory: tempfile::TempDir,
    mode: Arc<watch::Sender<ProxyMode>>,
}

impl CuttingProxy {
    pub(super) fn start(server: &Path) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let mode = Arc::new(watch::Sender::new(ProxyMode::Open));
        tokio::spawn(accept(listener, server.join(SOCKET), Arc::clone(&mode)));
        Self { directory, mode }
    }

    /// The address of a database on the server, through here.
    pub(super) fn through(&self, url: &str, server: &Path) -> String {
        let (server, here) = (server.display(), self.directory.path().display());
        url.replace(&server.to_string(), &here.to_string())
    }

    /// Others that are written meanwhile pass.
    pub(super) fn cut_after_commit_of(&self, text: &str) {
        let mode = ProxyMode::CutAfterCommit(text.to_owned());
        self.mode.send_replace(mode);
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.mode.borrow() == ProxyMode::Closed
    }

    /// As a network that carries nothing any more.
    pub(super) fn silence(&self) {
        self.mode.send_replace(ProxyMode::Silent);
    }

    pub(super) fn open(&self) {
        self.mode.send_replace(ProxyMode::Open);
    }
}

async fn accept(listener: UnixListener, server: PathBuf, mode: Arc<watch::Sender<ProxyMode>>) {
    while let Ok((near, _)) = listener.accept().await {
        if *mode.borrow() == ProxyMode::Closed {
            continue; // dropped
        }
        let far = UnixStream::connect(&server).await.unwrap();
        tokio::spawn(pass_one(near, far, Arc::clone(&mode)));
    }
}

async fn wait_until_closed(mode: &mut watch::Receiver<ProxyMode>) {
    // The other side is held by whoever asks.
    let _open = mode.wait_for(|mode| *mode == ProxyMode::Closed).await;
}

/// Whether something is carried; waits as long as it is not said.
async fn wait_while_silent(mode: &mut watch::Receiver<ProxyMode>) {
    // The other side is held by whoever asks.
    let _open = mode.wait_for(|mode| *mode != ProxyMode::Silent).await;
}

async fn wait_until_silent(mode: &mut watch::Receiver<ProxyMode>) {
    // The other side is held by whoever asks.
    let _open = mode.wait_for(|mode| *mode == ProxyMode::Silent).await;
}

async fn pass_one(mut near: UnixStream, mut far: UnixStream, mode: Arc<watch::Sender<ProxyMode>>) {
    let mut changed = mode.subscribe();
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    let mut is_meant = false;
    let mut silenced = mode.subscribe();
    loop {
        wait_while_silent(&mut silenced).await;
        tokio::select! {
            biased;
            () = wait_until_silent(&mut silenced) => {}
            read = near.read(&mut asked) => {
                let Ok(read @ 1..) = read else { return };
                far.write_all(&asked[..read]).await.unwrap();
                let has = |text: &[u8]| asked[..read].windows(text.len()).any(|it| it == text);
                let commits = has(b"COMMIT");
                is_meant |= matches!(&*mode.borrow(), ProxyMode::CutAfterCommit(text) if has(text.as_bytes()));
                if commits && std::mem::take(&mut is_meant) {
                    mode.send_replace(ProxyMode::Closed);
                    while let Ok(Ok(1..)) = timeout(ANSWERED, far.read(&mut answered)).await {}
                    return;
                }
            }
            read = far.read(&mut answered) => {
                let Ok(read @ 1..) = read else { return };
                if near.write_all(&answered[..read]).await.is_err() {
                    return;
                }
            }
            () = wait_until_closed(&mut changed) => return,
        }
    }
}
