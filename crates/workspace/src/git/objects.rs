//! What files held in a commit, as they would lie in the working tree.
//!
//! Promises: at most [`FILE_BYTES_MAX`] of each, a bounded sum in memory. Line ends and encodings are converted as a checkout
//! would; a file that goes through a filter of the repository has no content here, because filters are not run.
//! Must not know: what it is for.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::repository::path_of;
use super::{GitEntry, GitError, Repository};
use crate::{Cancellation, FILE_BYTES_MAX};

/// What is read by one call.
const BATCH_BYTES_MAX: u64 = 32 * 1_024 * 1_024;

/// Files that are converted one by one.
const CONVERTED_MAX: usize = 500;

/// What is asked of files before their content is read.
const ATTRIBUTES: &[&str] = &["filter", "text", "eol", "working-tree-encoding", "ident"];

/// How a file's content differs from what git stores, if it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Conversion {
    /// By git itself.
    Built,
    /// By a program of the repository.
    Filter(String),
}

/// A content that was committed.
#[derive(Debug, Clone, Copy)]
struct Stored<'a> {
    path: &'a Path,
    name: &'a str,
    bytes: u64,
}

impl Repository {
    /// Reads what the commit has of some entries, one after the other; `None` for what cannot be had.
    pub fn read_committed(
        &self,
        entries: &[&GitEntry],
        cancellation: &Cancellation,
        mut each: impl FnMut(&Path, Option<Vec<u8>>),
    ) -> Result<(), GitError> {
        let wanted: Vec<(&Path, &str)> = entries
            .iter()
            .filter(|entry| !entry.is_submodule())
            .filter_map(|entry| {
                let (_, name) = entry.committed.as_ref()?;
                Some((entry.path.as_path(), name.as_str()))
            })
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let paths: Vec<&Path> = wanted.iter().map(|(path, _)| *path).collect();
        let conversions = self.conversions(&paths, cancellation)?;
        let sizes = self.sizes(&wanted, cancellation)?;
        let (mut plain, mut converted) = (Vec::new(), 0);
        for ((path, name), bytes) in wanted.into_iter().zip(sizes) {
            let bytes = bytes.filter(|bytes| *bytes <= FILE_BYTES_MAX);
            match (conversions.get(path), bytes) {
                (None, Some(bytes)) => {
                    plain.push(Stored { path, name, bytes });
                }
                (Some(Conversion::Built), Some(_)) if converted < CONVERTED_MAX => {
                    converted += 1;
                    each(path, self.read_converted(path, name, cancellation)?);
                }
                (Some(Conversion::Built | Conversion::Filter(_)), _) | (_, None) => {
                    each(path, None);
                }
            }
        }
        let mut rest = plain.as_slice();
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(batch_length(rest));
            self.read_batch(batch, cancellation, &mut each)?;
            rest = later;
        }
        Ok(())
    }

    /// How the content of files is converted.
    pub(super) fn conversions(
        &self,
        paths: &[&Path],
        cancellation: &Cancellation,
    ) -> Result<BTreeMap<std::path::PathBuf, Conversion>, GitError> {
        let printed = self
            .call(cancellation)
            .args(["-C"])
            .arg_path(&self.top)
            .args(["check-attr", "-z", "--stdin"])
            .args(ATTRIBUTES)
            .input(join_with_nul(paths.iter().map(|path| path.as_os_str().as_bytes())))
            .output()?;
        let mut fields = printed.split(|byte| *byte == 0);
        let mut conversions = BTreeMap::new();
        let mut never_text = BTreeSet::new();
        while let (Some(path), Some(name), Some(value)) =
            (fields.next(), fields.next(), fields.next())
        {
            let value = String::from_utf8_lossy(value);
            let is_unset = matches!(value.as_ref(), "unspecified" | "unset");
            let path = path_of(path);
            match name {
                b"filter" if !is_unset => {
                    conversions.insert(path, Conversion::Filter(value.into_owned()));
                }
                b"text" if value == "unset" => {
                    never_text.insert(path);
                }
                b"eol" if value == "crlf" => {
                    conversions.entry(path).or_insert(Conversion::Built);
                }
                b"working-tree-encoding" | b"ident" if !is_unset => {
                    conversions.entry(path).or_insert(Conversion::Built);
                }
                _ => {}
            }
        }
        if self.settings.converts_lines {
            let text = paths.iter().filter(|path| !never_text.contains(**path));
            for path in text {
                conversions.entry(path.to_path_buf()).or_insert(Conversion::Built);
            }
        }
        Ok(conversions)
    }

    /// How many bytes objects have; `None` for those that are not there.
    fn sizes(
        &self,
        wanted: &[(&Path, &str)],
        cancellation: &Cancellation,
    ) -> Result<Vec<Option<u64>>, GitError> {
        let names: String = wanted.iter().map(|(_, name)| format!("{name}\n")).collect();
        let printed = self
            .call(cancellation)
            .args(["cat-file", "--batch-check=%(objectsize)"])
            .input(names.into_bytes())
            .output()?;
        let printed = String::from_utf8_lossy(&printed);
        let sizes: Vec<Option<u64>> = printed.lines().map(|size| size.parse().ok()).collect();
        if sizes.len() == wanted.len() { Ok(sizes) } else { Err(GitError::Unreadable) }
    }

    fn read_converted(
        &self,
        path: &Path,
        name: &str,
        cancellation: &Cancellation,
    ) -> Result<Option<Vec<u8>>, GitError> {
        let mut argument = std::ffi::OsString::from("--path=");
        argument.push(path);
        let printed = self
            .call(cancellation)
            .args(["cat-file", "--filters"])
            .arg_path(argument)
            .args([name])
            .output()?;
        Ok((printed.len() as u64 <= FILE_BYTES_MAX).then_some(printed))
    }

    fn read_batch(
        &self,
        batch: &[Stored<'_>],
        cancellation: &Cancellation,
        each: &mut impl FnMut(&Path, Option<Vec<u8>>),
    ) -> Result<(), GitError> {
        let names: String = batch.iter().map(|stored| format!("{}\n", stored.name)).collect();
        let printed = self
            .call(cancellation)
            .args(["cat-file", "--batch=%(objectsize)"])
            .input(names.into_bytes())
            .output()?;
        let mut rest = printed.as_slice();
        for stored in batch {
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or(GitError::Unreadable)?;
            let size = std::str::from_utf8(&rest[..end]).unwrap_or("");
            rest = &rest[end + 1..];
            let Ok(size) = size.parse::<usize>() else {
                each(stored.path, None); // it is not there
                continue;
            };
            let content = rest.get(..size).ok_or(GitError::Unreadable)?;
            each(stored.path, Some(content.to_vec()));
            rest = rest.get(size + 1..).ok_or(GitError::Unreadable)?;
        }
        Ok(())
    }
}

fn batch_length(stored: &[Stored<'_>]) -> usize {
    let mut sum = 0;
    let fits = stored.iter().take_while(|stored| {
        sum += stored.bytes;
        sum <= BATCH_BYTES_MAX
    });
    fits.count().max(1)
}

fn join_with_nul<'a>(items: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut joined = Vec::new();
    for item in items {
        joined.extend_from_slice(item);
        joined.push(0);
    }
    joined
}
