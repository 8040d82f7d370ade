//! Plugins that clients bring along (CU-7): read from the client that has them, copied where tools and programs can open them,
//! and gone with the client.
//!
//! Promises: a session has only plugins that a client of it offers now; one is read once, until its client says that it is
//! another; all copies together are bounded.
//! Must not know: what is in a plugin, who is active where.

mod copy;
mod reader;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_api::ClientPlugin;
use agents::mcp::client_plugins;
use kernel::PluginOffer;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wire::ChannelUri;
use workspace::ClientPluginCopy;
use workspace::discovery::client_plugin_key;

pub(crate) use copy::{PluginFile, copy_files, remove_copies};
pub(crate) use reader::{ClientAsker, UnreadPlugin, read_plugin};

use crate::sorted_map::SortedMap;

/// Plugins of clients in one session.
const PLUGINS_MAX: usize = 32;

/// Bytes of all copies in all sessions.
const BYTES_MAX: u64 = 256 * 1_024 * 1_024;

/// Plugins that are read and copied at a time: each is in memory as a whole until it is copied.
const READS_MAX: usize = 4;

/// The directory among a session's copies that plugins lie in.
pub(crate) const DIRECTORY: &str = "plugins";

/// What is known of the plugins of clients, by session. A handle.
#[derive(Clone)]
pub(crate) struct ClientPlugins {
    offered: Arc<Mutex<OfferedPlugins>>,
    reads: Arc<Semaphore>,
}

impl Default for ClientPlugins {
    fn default() -> Self {
        Self { offered: Arc::default(), reads: Arc::new(Semaphore::new(READS_MAX)) }
    }
}

#[derive(Default)]
struct OfferedPlugins {
    sessions: SortedMap<ChannelUri, Vec<HeldPlugin>>,
    /// The last number that was given.
    last: u64,
    /// The newest look at each session that is not over.
    looks: SortedMap<ChannelUri, u64>,
}

struct HeldPlugin {
    /// Names one attempt to read it.
    number: u64,
    offer: PluginOffer,
    state: PluginState,
}

enum PluginState {
    Reading {
        /// Its client may have come back since the reading began: who finds it away must look once more.
        is_offered_again: bool,
    },
    /// Its client is not connected.
    Away,
    Read {
        plugin: ClientPlugin,
        bytes: u64,
    },
    Failed(String),
    /// Another client brought the same one before.
    Double,
}

/// What is to be done after clients said which plugins they have.
#[derive(Default)]
pub(crate) struct OfferedChange {
    /// To be read, each by its number.
    pub unread: Vec<(u64, PluginOffer)>,
    /// Copies that nothing uses any more.
    pub unused: Vec<PathBuf>,
}

/// A copy that was made.
pub(crate) struct PluginCopy {
    pub directory: PathBuf,
    pub digest: String,
    pub bytes: u64,
}

impl ClientPlugins {
    /// Takes over which plugins a session's clients have now. One without a nonce is another one whenever its client says so.
    pub(crate) fn offer(
        &self,
        session: &ChannelUri,
        offers: Vec<PluginOffer>,
        said_by: Option<&str>,
    ) -> OfferedChange {
        let mut shared = self.offered.lock();
        let mut held = shared.sessions.remove(session).unwrap_or_default();
        let mut change = OfferedChange::default();
        let mut kept: Vec<HeldPlugin> = Vec::new();
        for offer in offers {
            let known = held.iter().position(|held| held.offer == offer).map(|at| held.remove(at));
            let has_failed = |it: &HeldPlugin| matches!(it.state, PluginState::Failed(_));
            let may_differ = offer.nonce.is_none() || known.as_ref().is_some_and(has_failed);
            let is_said_again = said_by == Some(&*offer.client_id) && may_differ;
            let known = match known {
                Some(known) if is_said_again => {
                    held.push(known); // what was read of it goes
                    None
                }
                known => known,
            };
            let state = match (refuse(&kept, &offer), known) {
                (Some(refused), known) => {
                    held.extend(known); // its copy goes, too
                    refused
                }
                (
                    None,
                    Some(HeldPlugin {
                        state:
                            mut state @ (PluginState::Reading { .. }
                            | PluginState::Read { .. }
                            | PluginState::Failed(_)),
                        number,
                        ..
                    }),
                ) => {
                    if let PluginState::Reading { is_offered_again } = &mut state {
                        *is_offered_again = true;
                    }
                    kept.push(HeldPlugin { number, offer, state });
                    continue;
                }
                (None, Some(_) | None) => PluginState::Reading { is_offered_again: false },
            };
            shared.last += 1;
            let number = shared.last;
            if matches!(state, PluginState::Reading { .. }) {
                change.unread.push((number, offer.clone()));
            }
            kept.push(HeldPlugin { number, offer, state });
        }
        let copies = |held: &HeldPlugin| match &held.state {
            PluginState::Read { plugin, .. } => Some(plugin.directory.clone()),
            _ => None,
        };
        let used: Vec<PathBuf> = kept.iter().filter_map(copies).collect();
        let unused = held.iter().filter_map(copies);
        change.unused = unused.filter(|path| !used.contains(path)).collect();
        if !kept.is_empty() {
            shared.sessions.insert(session.clone(), kept);
        }
        change
    }

    /// Waits until a plugin may be read. `None` if nobody wants it any more by then.
    pub(crate) async fn begin_read(
        &self,
        session: &ChannelUri,
        number: u64,
    ) -> Option<OwnedSemaphorePermit> {
        // Nobody closes it.
        let permit = Arc::clone(&self.reads).acquire_owned().await.ok()?;
        let shared = self.offered.lock();
        let mut held = shared.sessions.get(session).into_iter().flatten();
        held.any(|held| held.number == number).then_some(permit)
    }

    /// A plugin was not read because its client is away. Returns whether it was offered again since the reading began: then
    /// the client may be back already, and whoever read it must do so once more.
    pub(crate) fn note_away(&self, session: &ChannelUri, number: u64) -> bool {
        let mut shared = self.offered.lock();
        let mut held = shared.sessions.get_mut(session).into_iter().flatten();
        let Some(held) = held.find(|held| held.number == number) else {
            return false; // nobody wants it any more
        };
        let state = std::mem::replace(&mut held.state, PluginState::Away);
        let is_offered_again = matches!(state, PluginState::Reading { is_offered_again: true });
        if is_offered_again {
            held.state = PluginState::Reading { is_offered_again: false };
        }
        is_offered_again
    }

    /// A plugin was read, or why not. Returns the copy if nobody wants it any more.
    pub(crate) fn finish(
        &self,
        session: &ChannelUri,
        number: u64,
        read: Result<PluginCopy, UnreadPlugin>,
    ) -> Option<PathBuf> {
        let mut shared = self.offered.lock();
        let taken = shared.bytes();
        let held = shared.sessions.get_mut(session).into_iter().flatten();
        let Some(held) = held.into_iter().find(|held| held.number == number) else {
            return read.ok().map(|copy| copy.directory); // its client is gone, or has another one by now
        };
        held.state = match read {
            Ok(copy) if taken + copy.bytes > BYTES_MAX => {
                held.state = PluginState::Failed(format!(
                    "plugins of clients take at most {} MiB in all",
                    BYTES_MAX >> 20
                ));
                return Some(copy.directory);
            }
            Ok(copy) => PluginState::Read {
                bytes: copy.bytes,
                plugin: ClientPlugin {
                    client_id: held.offer.client_id.clone(),
                    name: held.offer.name.clone(),
                    uri: held.offer.uri.clone(),
                    directory: copy.directory,
                    digest: copy.digest,
                },
            },
            Err(UnreadPlugin::Away) => PluginState::Away,
            Err(UnreadPlugin::Failed(why)) => PluginState::Failed(why),
        };
        None
    }

    /// A session is gone: so are its plugins. Returns their copies.
    pub(crate) fn forget(&self, session: &ChannelUri) -> Vec<PathBuf> {
        self.offer(session, Vec::new(), None).unused
    }

    /// The plugins of a session that can be used now.
    pub(crate) fn of(&self, session: &ChannelUri) -> Vec<ClientPlugin> {
        let shared = self.offered.lock();
        let held = shared.sessions.get(session).into_iter().flatten();
        let read = held.filter_map(|held| match &held.state {
            PluginState::Read { plugin, .. } => Some(plugin.clone()),
            _ => None,
        });
        read.collect()
    }

    /// The same, as they are searched.
    pub(crate) fn searched_plugins(&self, session: &ChannelUri) -> Vec<ClientPluginCopy> {
        client_plugins(&self.of(session))
    }

    /// The others as clients see them: those that are being read, and those that cannot be.
    pub(crate) fn unread_entries(&self, session: &ChannelUri) -> Vec<Value> {
        let shared = self.offered.lock();
        let held = shared.sessions.get(session).into_iter().flatten();
        let entries = held.filter_map(|HeldPlugin { offer, state, .. }| {
            let load = match state {
                PluginState::Reading { .. } | PluginState::Away => json!({"kind": "loading"}),
                PluginState::Failed(why) => json!({"kind": "error", "message": why}),
                PluginState::Read { .. } | PluginState::Double => return None,
            };
            let key = client_plugin_key(&offer.uri, &offer.name);
            Some(json!({
                "type": "plugin",
                "id": key.id(),
                "uri": offer.uri,
                "name": key.name,
                "clientId": offer.client_id,
                "load": load,
            }))
        });
        entries.collect()
    }

    /// Somebody begins to look what a session has.
    pub(crate) fn begin_look(&self, session: &ChannelUri) -> u64 {
        let mut shared = self.offered.lock();
        shared.last += 1;
        let number = shared.last;
        shared.looks.insert(session.clone(), number);
        number
    }

    /// Whether nobody began to look later: what an earlier look saw may be true no more.
    pub(crate) fn end_look(&self, session: &ChannelUri, number: u64) -> bool {
        let mut shared = self.offered.lock();
        let is_newest = shared.looks.get(session) == Some(&number);
        if is_newest {
            shared.looks.remove(session);
        }
        is_newest
    }
}

impl OfferedPlugins {
    fn bytes(&self) -> u64 {
        let held = self.sessions.values().flatten();
        let bytes = held.map(|held| match held.state {
            PluginState::Read { bytes, .. } => bytes,
            _ => 0,
        });
        bytes.sum()
    }
}

/// Why a plugin is not used beside those that a session has already; `None` if it is.
fn refuse(kept: &[HeldPlugin], offer: &PluginOffer) -> Option<PluginState> {
    let is_double = |other: &HeldPlugin| {
        let is_same = (&other.offer.uri, &other.offer.name) == (&offer.uri, &offer.name);
        is_same || (&other.offer.uri, &other.offer.client_id) == (&offer.uri, &offer.client_id)
    };
    if kept.iter().any(is_double) {
        return Some(PluginState::Double);
    }
    (kept.len() >= PLUGINS_MAX).then(|| {
        let why = format!("a session has at most {PLUGINS_MAX} plugins of clients");
        PluginState::Failed(why)
    })
}

/// Where the copy of a plugin lies: a place of its own for each attempt to read it, so that what goes is not what comes.
pub(crate) fn copy_directory(staging: &Path, session: kernel::ChannelId, number: u64) -> PathBuf {
    staging.join(session.0.to_string()).join(DIRECTORY).join(number.to_string())
}

#[cfg(test)]
mod tests;
