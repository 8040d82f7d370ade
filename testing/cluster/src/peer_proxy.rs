//! What other nodes reach a node through: a relay can be cut here, and nobody gets through until it is mended.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context as _, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Passes connections on to one node.
pub(crate) struct PeerProxy {
    /// Where other nodes connect.
    pub(crate) address: SocketAddr,
    /// Where the node listens.
    pub(crate) target: SocketAddr,
    is_cut: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl PeerProxy {
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr().context("an address")?;
        // A port that nobody else has: it is free again for the node.
        let reserved = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let target = reserved.local_addr().context("an address")?;
        drop(reserved);
        let (is_cut, cut) = watch::channel(false);
        let accepting = tokio::spawn(accept(listener, target, cut));
        Ok(Self { address, target, is_cut, accepting })
    }

    /// Ends what passes here, and lets nobody through.
    pub(crate) fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    pub(crate) fn mend(&self) {
        self.is_cut.send_replace(false);
    }
}

impl Drop for PeerProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn wait_until_cut(cut: &mut watch::Receiver<bool>) {
    // It is not cut any more by a proxy that is gone: the connection ends with the test.
    let _gone = cut.wait_for(|is_cut| *is_cut).await;
}

async fn accept(listener: TcpListener, target: SocketAddr, cut: watch::Receiver<bool>) {
    while let Ok((near, _)) = listener.accept().await {
        if *cut.borrow() {
            continue; // dropped
        }
        let mut cut = cut.clone();
        tokio::spawn(async move {
            // A node that is not there refuses; so does this, by ending the connection.
            let Ok(mut far) = TcpStream::connect(target).await else { return };
            let mut near = near;
            tokio::select! {
                _ended = copy_bidirectional(&mut near, &mut far) => {}
                () = wait_until_cut(&mut cut) => {}
            }
        });
    }
}
