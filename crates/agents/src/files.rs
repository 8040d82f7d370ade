//! What lowering may see of the session's working directories: the files that messages refer to.
//!
//! Promises: every read opens anew and is confined by the kernel (C-019); it is bounded by what was asked for, however
//! large the file is or becomes; it never waits for a pipe. Reading blocks: it is for threads that may.
//! Must not know: messages, models, where bodies are kept. Those are handed in as a [`Store`].

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::ControlFlow;

use compositor::Part;
use compositor::resolve::{FileRead, ImageLimits, Scanned, Sources, WhyUnavailable};
use wire::Object;

use crate::picture;
use crate::tool::{Unopened, Workspace, WorkspaceError};

/// How much of a file that is too large is shown to whoever wants to know what it is.
const HEAD_BYTES: u64 = 8 * 1_024;

const PIECE_BYTES: usize = 64 * 1_024;

/// The files of a session. A handle.
#[derive(Debug, Clone)]
pub struct Files(Workspace);

/// What lies outside of the working directories: bodies, copies of them for tools, and entities of whoever embeds the
/// host. All of it is optional.
pub trait Store {
    /// A body of the blob store, checked against its name.
    fn body(&mut self, content_id: &str) -> Option<Vec<u8>>;

    /// The path of a copy of an attachment's body that tools can read.
    fn staged(&mut self, part: &Part) -> Option<String>;

    /// Whether a mention names something that is there (G-42).
    fn entity(&mut self, kind: &str, target: &Object) -> bool;
}

/// Nothing but files.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nothing;

impl Store for Nothing {
    fn body(&mut self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn staged(&mut self, _: &Part) -> Option<String> {
        None
    }

    fn entity(&mut self, _: &str, _: &Object) -> bool {
        false
    }
}

/// All that lowering may see.
pub struct Reach<S> {
    /// None if the working directories cannot be opened: then no file is there.
    pub files: Option<Files>,
    pub store: S,
}

impl Files {
    /// Of directories that `file:` URIs name, the default one first.
    pub fn open(working_directories: &[String]) -> Result<Self, WorkspaceError> {
        Workspace::open(working_directories).map(Self)
    }

    /// Of directories that are already open.
    pub fn of(workspace: &Workspace) -> Self {
        Self(workspace.clone())
    }

    /// A file whole, if it is no larger than that.
    pub fn read(&self, path: &str, limit_bytes: u64) -> FileRead {
        let (mut file, size) = match self.0.open_given(path) {
            Ok(opened) => opened,
            Err(why) => return FileRead::Unavailable(unavailable(why)),
        };
        let read = match size > limit_bytes {
            true => head(&mut file, size),
            false => whole(&mut file, limit_bytes),
        };
        // It was there when it was opened; a disk that fails now is as good as a file that is gone.
        read.unwrap_or(FileRead::Unavailable(WhyUnavailable::NotFound))
    }

    /// Lets a file pass by in pieces until nobody wants more.
    pub fn scan(&self, path: &str, each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Scanned {
        let (mut file, size) = match self.0.open_given(path) {
            Ok(opened) => opened,
            Err(why) => return Scanned::Unavailable(unavailable(why)),
        };
        let mut buffer = vec![0; PIECE_BYTES];
        let mut seen_bytes = 0;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(bytes) => {
                    seen_bytes += bytes as u64;
                    if each(&buffer[..bytes]).is_break() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Scanned::Unavailable(WhyUnavailable::NotFound),
            }
        }
        let size = size.max(seen_bytes);
        Scanned::Complete { size }
    }

    /// The absolute path that a path of a message means.
    pub fn absolute(&self, path: &str) -> String {
        self.0.absolute_given(path).to_string_lossy().into_owned()
    }
}

impl<S: Store> Sources for Reach<S> {
    fn file(&mut self, path: &str, limit_bytes: u64) -> FileRead {
        match &self.files {
            Some(files) => files.read(path, limit_bytes),
            None => FileRead::Unavailable(WhyUnavailable::NotFound),
        }
    }

    fn scan(&mut self, path: &str, each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Scanned {
        match &self.files {
            Some(files) => files.scan(path, each),
            None => Scanned::Unavailable(WhyUnavailable::NotFound),
        }
    }

    fn body(&mut self, content_id: &str) -> Option<Vec<u8>> {
        self.store.body(content_id)
    }

    fn entity(&mut self, kind: &str, target: &Object) -> bool {
        self.store.entity(kind, target)
    }

    fn staged(&mut self, part: &Part) -> Option<String> {
        self.store.staged(part)
    }

    fn fit_image(
        &mut self,
        mime: &str,
        bytes: &[u8],
        limits: &ImageLimits,
    ) -> Option<(String, Vec<u8>)> {
        picture::fit(mime, bytes, limits)
    }

    fn absolute(&self, path: &str) -> String {
        match &self.files {
            Some(files) => files.absolute(path),
            None => path.to_owned(),
        }
    }
}

fn unavailable(why: Unopened) -> WhyUnavailable {
    match why {
        Unopened::Outside => WhyUnavailable::OutsideWorkspace,
        Unopened::Missing => WhyUnavailable::NotFound,
        Unopened::Invalid => WhyUnavailable::InvalidPath,
    }
}

fn head(file: &mut File, size: u64) -> io::Result<FileRead> {
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(FileRead::TooLarge { size, head })
}

/// It may have grown since it was opened.
fn whole(file: &mut File, limit_bytes: u64) -> io::Result<FileRead> {
    let mut bytes = Vec::new();
    file.take(limit_bytes.saturating_add(1))
        .read_to_end(&mut bytes)?;
    let size = bytes.len() as u64;
    if size <= limit_bytes {
        return Ok(FileRead::Bytes { bytes });
    }
    let size = file.metadata()?.len().max(size);
    bytes.truncate(usize::try_from(HEAD_BYTES).unwrap_or(0));
    bytes.shrink_to_fit();
    Ok(FileRead::TooLarge { size, head: bytes })
}
