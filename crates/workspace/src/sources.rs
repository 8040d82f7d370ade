//! What lowering may see: the files of a session's working directories that messages refer to, and a store of whatever
//! lies elsewhere.
//!
//! Promises: every read opens the file anew, confined (C-019), and is bounded by what was asked for, however large the
//! file is or becomes.
//! Must not know: where bodies are stored. That is handed in as a [`ContentStore`].

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::ControlFlow;

use compositor::Part;
use compositor::resolve::{DocumentRead, FileRead, ImageLimits, Scanned, Sources, WhyUnavailable};
use rustix::io::Errno;
use wire::Object;

use crate::confined::Links;
use crate::{FileError, Workspace, picture};

/// How much of a file that is too large is returned, so that its type can be determined.
const HEAD_BYTES: u64 = 8 * 1_024;

const CHUNK_BYTES: usize = 64 * 1_024;

/// What lies outside of the working directories: bodies, copies of them for tools, and entities of whoever embeds the
/// host. All of it is optional.
pub trait ContentStore {
    /// A body of the blob store, checked against its name.
    fn body(&mut self, content_id: &str) -> Option<Vec<u8>>;

    /// The path of a copy of an attachment's body that tools can read.
    fn find_staged_copy(&mut self, part: &Part) -> Option<String>;

    /// Whether a mention names something that exists (G-42).
    fn entity(&mut self, kind: &str, target: &Object) -> bool;

    /// Reads a PDF where that cannot hurt; `None` if nobody does.
    fn read_document(&mut self, _bytes: &[u8]) -> Option<DocumentRead> {
        None
    }
}

/// A store with nothing in it.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmptyStore;

impl ContentStore for EmptyStore {
    fn body(&mut self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn find_staged_copy(&mut self, _: &Part) -> Option<String> {
        None
    }

    fn entity(&mut self, _: &str, _: &Object) -> bool {
        false
    }
}

/// The files of a workspace and a store, as lowering reads them.
pub struct WorkspaceSources<S> {
    /// None if the working directories cannot be opened: then no file is there.
    pub workspace: Option<Workspace>,
    pub store: S,
}

impl<S> WorkspaceSources<S> {
    /// Opens a file by its path in a message: relative to the first directory, or absolute inside any of them. Returns its
    /// size at the time, too.
    fn open(&self, path: &str) -> Result<(File, u64), WhyUnavailable> {
        let workspace = self.workspace.as_ref().ok_or(WhyUnavailable::NotFound)?;
        let path = workspace.resolve_reference(path).map_err(why_unavailable)?;
        let opened = workspace.open_file(&path, Links::Followed);
        let (file, stat) = opened.map_err(why_unavailable)?;
        Ok((file, stat.identity.bytes))
    }
}

impl<S: ContentStore> Sources for WorkspaceSources<S> {
    fn file(&mut self, path: &str, limit_bytes: u64) -> FileRead {
        let (mut file, size) = match self.open(path) {
            Ok(opened) => opened,
            Err(why) => return FileRead::Unavailable(why),
        };
        let read = if size > limit_bytes {
            read_head(&mut file, size)
        } else {
            read_whole(&mut file, limit_bytes)
        };
        // It was there when it was opened; a disk that fails now is as good as a file that is gone.
        read.unwrap_or(FileRead::Unavailable(WhyUnavailable::NotFound))
    }

    fn scan(&mut self, path: &str, each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Scanned {
        let (mut file, size) = match self.open(path) {
            Ok(opened) => opened,
            Err(why) => return Scanned::Unavailable(why),
        };
        let mut buffer = vec![0; CHUNK_BYTES];
        let mut read_bytes = 0;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(bytes) => {
                    read_bytes += bytes as u64;
                    if each(&buffer[..bytes]).is_break() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Scanned::Unavailable(WhyUnavailable::NotFound),
            }
        }
        let size = size.max(read_bytes);
        Scanned::Complete { size }
    }

    fn body(&mut self, content_id: &str) -> Option<Vec<u8>> {
        self.store.body(content_id)
    }

    fn entity(&mut self, kind: &str, target: &Object) -> bool {
        self.store.entity(kind, target)
    }

    fn find_staged_copy(&mut self, part: &Part) -> Option<String> {
        self.store.find_staged_copy(part)
    }

    fn fit_image(
        &mut self,
        mime: &str,
        bytes: &[u8],
        limits: &ImageLimits,
    ) -> Option<(String, Vec<u8>)> {
        picture::fit(mime, bytes, limits)
    }

    fn read_document(&mut self, bytes: &[u8]) -> Option<DocumentRead> {
        self.store.read_document(bytes)
    }

    /// The absolute path that a path of a message means.
    fn absolute(&self, path: &str) -> String {
        let roots = self.workspace.as_ref();
        match roots.and_then(|workspace| workspace.shared.roots.first()) {
            // An absolute path replaces what it is joined to.
            Some(root) => root.path.join(path).to_string_lossy().into_owned(),
            None => path.to_owned(),
        }
    }
}

/// No more is disclosed of what lies outside than that it does.
fn why_unavailable(error: FileError) -> WhyUnavailable {
    match error {
        FileError::LinkOutside { .. }
        | FileError::OutsideRoots { .. }
        | FileError::NoWorkingDirectory => WhyUnavailable::OutsideWorkspace,
        FileError::InvalidPath
        | FileError::IsDirectory { .. }
        | FileError::NotRegular { .. }
        | FileError::PathTooLong
        | FileError::System { errno: Errno::INVAL, .. } => WhyUnavailable::InvalidPath,
        // What may not be read is as good as not there.
        _ => WhyUnavailable::NotFound,
    }
}

fn read_head(file: &mut File, size: u64) -> io::Result<FileRead> {
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(FileRead::TooLarge { size, head })
}

/// It may have grown since it was opened.
fn read_whole(file: &mut File, limit_bytes: u64) -> io::Result<FileRead> {
    let mut bytes = Vec::new();
    file.take(limit_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    let size = bytes.len() as u64;
    if size <= limit_bytes {
        return Ok(FileRead::Bytes { bytes });
    }
    let size = file.metadata()?.len().max(size);
    bytes.truncate(usize::try_from(HEAD_BYTES).unwrap_or(0));
    bytes.shrink_to_fit();
    Ok(FileRead::TooLarge { size, head: bytes })
}
