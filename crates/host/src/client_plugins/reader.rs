//! Reads a plugin from the client that has it: its directories are listed and its files are read by requests to that client.
//!
//! Promises: bounded in files, bytes, depth and time; only URIs below the plugin's own are asked for; no name that a client
//! lists can lead out of the plugin.
//! Must not know: what the files are.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt, TryStreamExt, stream};
use kernel::{
    ClientAnswer, ClientFileBody, ClientFileError, ClientQuestion, HostGuard, Input, ListedEntry,
    PluginOffer,
};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use wire::percent::encode_path;

use super::copy::PluginFile;
use crate::kernel_queue::{KernelQueue, QueuedInput};

/// Files of one plugin.
const FILES_MAX: usize = 512;

/// Directories of one plugin.
const DIRECTORIES_MAX: usize = 256;

/// Entries of one directory.
const ENTRIES_MAX: usize = 2_048;

/// Bytes of all its files.
const BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Directories in directories.
const DEPTH_MAX: usize = 16;

/// The longest name of a file.
const NAME_BYTES_MAX: usize = 255;

/// How long all of it may take.
const TIME_MAX: Duration = Duration::from_secs(15);

/// Files that are asked for at a time.
const READS_MAX: usize = 4;

/// How long a client that has much to answer is left alone.
const BUSY_PAUSE: Duration = Duration::from_millis(50);

/// Directories that are no part of a plugin.
const LEFT_OUT: [&str; 1] = [".git"];

/// Why a plugin is not there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UnreadPlugin {
    /// Its client is not connected; it is read when the client is there again.
    Away,
    /// For people.
    Failed(String),
}

pub(crate) type ClientFileAnswer = (Result<ClientAnswer, ClientFileError>, HostGuard);

/// Asks clients about their files, through the kernel. A handle.
#[derive(Clone)]
pub(crate) struct ClientAsker {
    arrivals: KernelQueue,
    asked: Arc<PendingClientQuestions>,
}

#[derive(Default)]
struct PendingClientQuestions {
    last: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<ClientFileAnswer>>>,
}

impl PendingClientQuestions {}

/// Forgets a question when nobody waits for its answer any more.
struct WaitingQuestion<'a>(&'a PendingClientQuestions, u64);

impl Drop for WaitingQuestion<'_> {
    fn drop(&mut self) {
        self.0.waiting.lock().remove(&self.1);
    }
}

impl ClientAsker {
    pub(crate) fn new(arrivals: KernelQueue) -> Self {
        Self { arrivals, asked: Arc::default() }
    }

    /// What a client answers; the room that its answer takes is held as long as it is used. Waits while the client has much to answer.
    pub(crate) async fn ask(&self, client_id: &str, question: ClientQuestion) -> ClientFileAnswer {
        loop {
            let answered = self.ask_once(client_id, question.clone()).await;
            match answered {
                (Err(ClientFileError::Busy), _) => tokio::time::sleep(BUSY_PAUSE).await,
                answered => return answered,
            }
        }
    }

    async fn ask_once(&self, client_id: &str, question: ClientQuestion) -> ClientFileAnswer {
        let ask = self.asked.last.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.asked.waiting.lock().insert(ask, sender);
        let _asking = WaitingQuestion(&self.asked, ask);
        let input = Input::AskClient { ask, client_id: client_id.to_owned(), question };
        let gone = || (Err(ClientFileError::PeerGone), HostGuard::default());
        // Neither fails unless the host goes down.
        match self.arrivals.send(QueuedInput::from(input)).await {
            Ok(()) => answer.await.unwrap_or_else(|_| gone()),
            Err(_) => gone(),
        }
    }

    /// Hands an answer to the task that waits for it, if it still does.
    pub(crate) fn deliver(
        &self,
        ask: u64,
        answer: Result<ClientAnswer, ClientFileError>,
        hold: HostGuard,
    ) {
        let waiting = self.asked.waiting.lock().remove(&ask);
        // One that gave up a moment ago needs no answer.
        let _ = waiting.map(|waiting| waiting.send((answer, hold)));
    }
}

/// Reads all files of a plugin.
pub(crate) async fn read_plugin(
    asker: &ClientAsker,
    offer: &PluginOffer,
) -> Result<Vec<PluginFile>, UnreadPlugin> {
    let reader = PluginReader { asker, offer };
    match tokio::time::timeout(TIME_MAX, reader.read()).await {
        Ok(read) => read,
        Err(_) => Err(UnreadPlugin::Failed(format!(
            "the client took longer than {} s to say what is in it",
            TIME_MAX.as_secs()
        ))),
    }
}

struct PluginReader<'a> {
    asker: &'a ClientAsker,
    offer: &'a PluginOffer,
}

/// A file or directory of the plugin.
struct PluginPath {
    uri: String,
    /// In the plugin.
    path: PathBuf,
}

impl PluginReader<'_> {
    async fn read(&self) -> Result<Vec<PluginFile>, UnreadPlugin> {
        let root = self.offer.uri.trim_end_matches('/');
        if root.contains(['?', '#']) || !root.contains(':') {
            let why = "its `uri` must be that of a directory, without a query or a fragment";
            return Err(UnreadPlugin::Failed(why.to_owned()));
        }
        let files = self.list(root).await?;
        let mut read = Vec::new();
        let mut bytes = 0;
        let bodies = stream::iter(files).map(|file| self.read_file(file));
        let mut bodies = std::pin::pin!(bodies.buffer_unordered(READS_MAX));
        while let Some(file) = bodies.try_next().await? {
            bytes += file.body.len();
            if bytes > BYTES_MAX {
                return Err(UnreadPlugin::Failed(format!(
                    "it has more than {} MiB",
                    BYTES_MAX >> 20
                )));
            }
            read.push(file);
        }
        Ok(read)
    }

    /// All files, from the top down.
    async fn list(&self, root: &str) -> Result<Vec<PluginPath>, UnreadPlugin> {
        let mut files = Vec::new();
        let mut directories = vec![PluginPath { uri: root.to_owned(), path: PathBuf::new() }];
        let mut listed = 0;
        while let Some(PluginPath { uri, path }) = directories.pop() {
            listed += 1;
            if listed > DIRECTORIES_MAX || path.components().count() > DEPTH_MAX {
                let why = format!(
                    "it has more than {DIRECTORIES_MAX} directories, or more than {DEPTH_MAX} in each other"
                );
                return Err(UnreadPlugin::Failed(why));
            }
            for ListedEntry { name, is_directory } in self.entries(&uri).await? {
                let entry = PluginPath {
                    uri: format!("{uri}/{}", encode_path(name.as_bytes())),
                    path: path.join(&name),
                };
                if !is_directory {
                    files.push(entry)
                } else if LEFT_OUT.contains(&name.as_str()) {
                } else {
                    directories.push(entry)
                }
            }
            if files.len() > FILES_MAX {
                return Err(UnreadPlugin::Failed(format!("it has more than {FILES_MAX} files")));
            }
        }
        Ok(files)
    }

    /// What is in a directory, each name once.
    async fn entries(&self, uri: &str) -> Result<Vec<ListedEntry>, UnreadPlugin> {
        let question = ClientQuestion::List { uri: uri.to_owned() };
        let (answer, _hold) = self.asker.ask(&self.offer.client_id, question).await;
        let mut entries = match answer {
            Ok(ClientAnswer::Entries(entries)) => entries,
            Ok(ClientAnswer::Body(_) | ClientAnswer::Facts(_) | ClientAnswer::Done) => {
                return Err(unread(uri, ClientFileError::Malformed));
            }
            Err(why) => return Err(unread(uri, why)),
        };
        if entries.len() > ENTRIES_MAX {
            let why = format!("a directory of it has more than {ENTRIES_MAX} entries");
            return Err(UnreadPlugin::Failed(why));
        }
        if let Some(bad) = entries.iter().find(|entry| !is_file_name(&entry.name)) {
            let name: String = bad.name.chars().take(80).collect();
            let why = format!("{:?} is not the name of a file", name);
            return Err(UnreadPlugin::Failed(why));
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        entries.dedup_by(|one, other| one.name == other.name);
        Ok(entries)
    }

    async fn read_file(&self, file: PluginPath) -> Result<PluginFile, UnreadPlugin> {
        let PluginPath { uri, path } = file;
        let question = ClientQuestion::Read { uri: uri.clone() };
        let (answer, _hold) = self.asker.ask(&self.offer.client_id, question).await;
        let body = match answer {
            Ok(ClientAnswer::Body(ClientFileBody::Text(text))) => text.as_bytes().to_vec(),
            Ok(ClientAnswer::Body(ClientFileBody::Base64(data))) => {
                let decoded = STANDARD.decode(data.as_bytes());
                decoded.map_err(|_| unread(&uri, ClientFileError::Malformed))?
            }
            Ok(ClientAnswer::Entries(_) | ClientAnswer::Facts(_) | ClientAnswer::Done) => {
                return Err(unread(&uri, ClientFileError::Malformed));
            }
            Err(why) => return Err(unread(&uri, why)),
        };
        Ok(PluginFile { path, body })
    }
}

/// Why something of a plugin was not read: by its last name, the rest is the client's own affair.
fn unread(uri: &str, why: ClientFileError) -> UnreadPlugin {
    if why == ClientFileError::PeerGone {
        return UnreadPlugin::Away;
    }
    let name: String = uri
        .rsplit('/')
        .next()
        .unwrap_or(uri)
        .chars()
        .filter(|c| !c.is_control())
        .take(80)
        .collect();
    UnreadPlugin::Failed(format!("`{name}` could not be read: {why}"))
}

/// Whether a name is that of one file in a directory.
fn is_file_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !matches!(name, "." | "..")
        && !name.contains(|c: char| matches!(c, '/' | '\\') || c.is_control())
}
