//! A host inside of this process, for a verb that changes sessions while no host runs.
//!
//! Promises: it holds the data directory's lock as any host does, so that nothing else changes it; it is gone when the verb is done.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context, anyhow};
use client::{Live, Updates};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wire::ChannelUri;

use crate::serve::settings;
use crate::start_host::is_host_missing;
use crate::target::HostOptions;

/// What this host takes in one message: whole sessions are imported.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// The host; it stops when [`OwnHost::stop`] is called.
pub(crate) struct OwnHost {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), host::ServeError>>,
}

/// A connection to the host that runs, else to one of this process.
pub(crate) struct HostConnection {
    pub live: Live,
    pub updates: Updates,
    own: Option<OwnHost>,
}

impl HostConnection {
    pub(crate) async fn open(options: &HostOptions) -> anyhow::Result<Self> {
        let root = [ChannelUri::root()];
        let (own, (live, updates)) = match options.live(&root).await {
            Err(error) if options.named_host().is_none() && is_host_missing(&error) => {
                let own = OwnHost::start(&options.data_directory()?).await?;
                let connected = options.live(&root).await;
                match connected {
                    Ok(connected) => (Some(own), connected),
                    Err(error) => {
                        own.stop().await?;
                        return Err(error);
                    }
                }
            }
            connected => (None, connected?),
        };
        Ok(Self { live, updates, own })
    }

    /// Whether the host is this process.
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.live.close().await;
        match self.own {
            Some(own) => own.stop().await,
            None => Ok(()),
        }
    }
}

impl OwnHost {
    async fn start(data: &Path) -> anyhow::Result<Self> {
        if !data.join("journal.sqlite").exists() {
            return Err(anyhow!(
                "no host runs, and {} holds no sessions; name the data directory with --data",
                data.display()
            ));
        }
        let mut config = settings(data.to_owned(), None)?;
        config.listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let limits = &mut config.limits.server;
        limits.frame_in_bytes = limits.frame_in_bytes.max(MESSAGE_BYTES_MAX);
        limits.inbound_bytes_max = limits.inbound_bytes_max.max(2 * MESSAGE_BYTES_MAX);
        let (stop, stopped) = oneshot::channel();
        let (is_ready, ready) = oneshot::channel();
        let task = tokio::spawn(host::serve(
            config,
            move |_| {
                // Whoever waits for it may have given up.
                let _ = is_ready.send(());
            },
            async move {
                // The sender is gone if nobody waits for the host any more.
                let _ = stopped.await;
            },
        ));
        let own = Self { stop, task };
        match ready.await {
            Ok(()) => Ok(own),
            // It ended before it was ready, and says why.
            Err(_) => match own.stop().await {
                Err(error) => {
                    Err(error.context("no host runs, and the data directory cannot be used"))
                }
                Ok(()) => Err(anyhow!("the data directory cannot be used: its host ended at once")),
            },
        }
    }

    async fn stop(self) -> anyhow::Result<()> {
        // One that ended by itself does not listen any more.
        let _ = self.stop.send(());
        let ended = self.task.await.context("the host in this process ended unexpectedly")?;
        Ok(ended?)
    }
}
