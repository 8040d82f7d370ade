//! What a rule is compared with: the tool of a call, and the command, file or host it is about.

use std::path::{Path, PathBuf};

/// A call as rules see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSubject {
    pub tool: String,
    /// It changes a file: rules of `edit` are about it.
    pub is_edit: bool,
    /// It shows a file: rules of `read` are about it.
    pub is_read: bool,
    pub detail: SubjectDetail,
}

/// What a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubjectDetail {
    Command(String),
    Path(FileSubject),
    /// In lower case, without a port.
    Host(String),
    /// The input, as JSON without blanks.
    Input(String),
    /// It is about something that cannot be told from its input.
    Unknown,
}

/// A file, by its name without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSubject {
    /// The working directory that it lies in, without links.
    pub root: PathBuf,
    pub relative: PathBuf,
}

impl FileSubject {
    /// Its path for rules of a directory, or of any; none if it lies elsewhere, or if its name is no text.
    pub(crate) fn relative_to(&self, directory: Option<&Path>) -> Option<&str> {
        match directory.is_none_or(|directory| self.root == directory) {
            true => self.relative.to_str(),
            false => None,
        }
    }
}

/// The host of a URL.
pub fn read_host(url: &str) -> Option<SubjectDetail> {
    let url = reqwest::Url::parse(url).ok()?;
    // `example.com.` is the same host.
    let host = url.host_str()?.trim_end_matches('.');
    Some(SubjectDetail::Host(host.to_ascii_lowercase()))
}
