//! Files that only the client has which sent a turn's message (H-259): what an agent may ask for, and the answers.
//!
//! Must not know: how a client is asked, and which.

use crate::host::StoreError;

/// What is wanted of a client's files. Each is a method of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientFileCall {
    Read {
        uri: String,
    },
    List {
        uri: String,
    },
    /// What is there, without what is in it.
    Resolve {
        uri: String,
    },
    Write {
        uri: String,
        text: String,
        /// The version that it replaces, as [`ClientFileCall::Resolve`] returned it.
        if_match: Option<String>,
        /// Nothing may be there.
        create_only: bool,
    },
    Copy {
        source: String,
        destination: String,
    },
    Move {
        source: String,
        destination: String,
    },
    Delete {
        uri: String,
        recursive: bool,
    },
    /// With all directories on the way.
    MakeDirectory {
        uri: String,
    },
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientFileReply {
    Content(Vec<u8>),
    /// Names, and whether each is a directory.
    Entries(Vec<(String, bool)>),
    Facts(ClientFileFacts),
    Done,
}

/// What is at a place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientFileFacts {
    /// `file`, `directory` or `symlink`.
    pub kind: String,
    pub size: Option<u64>,
    /// Names the version.
    pub etag: Option<String>,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFileFailure {
    /// In words for the model.
    pub why: String,
    /// The client was asked to change something and did not answer: the outcome is unknown.
    pub maybe_done: bool,
}

impl From<StoreError> for ClientFileFailure {
    fn from(StoreError(why): StoreError) -> Self {
        Self { why, maybe_done: false }
    }
}

impl ClientFileCall {
    /// The resources that it is about.
    pub fn uris(&self) -> (&str, Option<&str>) {
        match self {
            Self::Read { uri }
            | Self::List { uri }
            | Self::Resolve { uri }
            | Self::Write { uri, .. }
            | Self::Delete { uri, .. }
            | Self::MakeDirectory { uri } => (uri, None),
            Self::Copy { source, destination } | Self::Move { source, destination } => {
                (source, Some(destination))
            }
        }
    }

    /// Whether something of the client's is another afterwards.
    pub fn changes(&self) -> bool {
        !matches!(self, Self::Read { .. } | Self::List { .. } | Self::Resolve { .. })
    }
}
