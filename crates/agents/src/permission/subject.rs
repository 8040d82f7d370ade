//! What a rule is compared with: the tool of a call, and the command, file or host it is about.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A call as rules see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSubject {
    pub tool: String,
    /// It changes a file: rules of `edit` are about it.
    pub is_edit: bool,
    /// It shows what is in a file: rules of `read` are about it.
    pub is_read: bool,
    /// A client carries it out, under a name of its choice.
    pub is_clients: bool,
    pub detail: SubjectDetail,
}

impl CallSubject {
    /// The call of a tool that is known by its name alone.
    pub fn new(tool: &str, detail: SubjectDetail) -> Self {
        let kind = ArgumentKind::of_tool(tool);
        Self {
            tool: tool.to_owned(),
            is_edit: kind == ArgumentKind::File(FileUse::Changes),
            is_read: kind == ArgumentKind::File(FileUse::Shows),
            is_clients: false,
            detail,
        }
    }
}

/// What a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubjectDetail {
    Command(String),
    Path(FileSubject),
    /// In lower case, without a port.
    Host(String),
    Input(Value),
    /// It is about something that cannot be told from its input.
    Unknown,
}

/// What stands between the brackets of a rule about a tool, and what its calls are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    Command,
    File(FileUse),
    /// The host of a page.
    Page,
    /// The whole input, as JSON.
    Input,
}

/// What a tool does with the file, or with the directory, that it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileUse {
    Changes,
    /// Shows what is in it.
    Shows,
    /// Shows the names of files.
    Names,
}

impl ArgumentKind {
    /// By the name of a tool. Of tools that clients and servers bring nothing but the input is known.
    pub fn of_tool(tool: &str) -> Self {
        match tool {
            "bash" => Self::Command,
            "edit" | "write" => Self::File(FileUse::Changes),
            "read" | "view_image" | "grep" => Self::File(FileUse::Shows),
            "glob" | "list" => Self::File(FileUse::Names),
            "web_fetch" => Self::Page,
            _ => Self::Input,
        }
    }
}

/// A file, by its name without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSubject {
    /// The working directory that it lies in, without links.
    pub root: PathBuf,
    pub relative: PathBuf,
}

/// A file as the rules of a directory see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathInDirectory<'a> {
    /// It lies in another one.
    Elsewhere,
    Text(&'a str),
    /// Its name is no text: no pattern can be compared with it.
    NoText,
}

impl FileSubject {
    /// Its path for rules of a directory, or of any.
    pub(crate) fn relative_to(&self, directory: Option<&Path>) -> PathInDirectory<'_> {
        if directory.is_some_and(|directory| self.root != directory) {
            return PathInDirectory::Elsewhere;
        }
        self.relative.to_str().map_or(PathInDirectory::NoText, PathInDirectory::Text)
    }
}

/// The host of a URL.
pub fn read_host(url: &str) -> Option<SubjectDetail> {
    let url = reqwest::Url::parse(url).ok()?;
    // `example.com.` is the same host.
    let host = url.host_str()?.trim_end_matches('.');
    Some(SubjectDetail::Host(host.to_ascii_lowercase()))
}
