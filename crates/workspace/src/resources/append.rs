//! Appending to a file, where it is: programs that hold it open, a logger for example, go on writing to the same file.
//!
//! Promises: the system puts the bytes at the end in one step, wherever that is by then, so that nothing of other appenders is
//! overwritten. If the disk fills up, what was written of them is taken back. Once bytes stay, an error says so, and is none of
//! those after which a write is tried again: they would be there twice.

use std::fs::File;
use std::io::{Seek, Write};

use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;

use super::ResourceError;
use super::resolved_resource::ResolvedResource;
use crate::confined::{Links, Stat};

/// Appends to a file that was `expected`.
pub(super) fn append(
    resource: &ResolvedResource,
    bytes: &[u8],
    expected: &Stat,
) -> Result<(), ResourceError> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = resource.root.open_path(&resource.relative, flags, Links::Refused);
    let mut file = File::from(open.map_err(|errno| resource.failed(errno))?);
    let changed = || ResourceError::Changed { path: resource.display.clone() };
    let now = resource.stat(&file)?;
    if !now.identity.is_of_same_file(&expected.identity) {
        return Err(changed());
    }
    reserve(&file, now.identity.bytes, bytes.len()).map_err(|errno| resource.failed(errno))?;
    let appended = |bytes: usize, why: String| ResourceError::Appended {
        path: resource.display.clone(),
        bytes,
        why,
    };
    write_or_undo(&mut file, bytes).map_err(|failed| match failed.left {
        0 => resource.failed(failed.errno),
        left => appended(left, std::io::Error::from(failed.errno).to_string()),
    })?;
    if bytes.is_empty() {
        return Ok(()); // nothing that could be lost
    }
    let unsure = |why: String| appended(bytes.len(), why);
    file.sync_data().map_err(|error| unsure(format!("the disk may not have them: {error}")))?;
    // Whoever replaced the file meanwhile did so without these bytes, or moved it away with them.
    let there = resource.existing();
    let (_, there) = there.map_err(|error| unsure(error.to_string()))?;
    if there.identity.is_of_same_file(&now.identity) {
        Ok(())
    } else {
        Err(unsure("another file has that name by now".to_owned()))
    }
}

/// Why not all was written.
#[derive(Debug, PartialEq, Eq)]
struct FailedAppend {
    errno: Errno,
    /// Bytes that were written and are not cut off.
    left: usize,
}

/// Makes sure that there is room, where the file system can say so.
fn reserve(file: &File, end: u64, bytes: usize) -> Result<(), Errno> {
    if bytes == 0 {
        return Ok(());
    }
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, end, bytes as u64) {
        Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(errno),
        // Others cannot say: then writing shows it.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes all of it; what was written of a part is cut off again, unless somebody appended to it by then.
fn write_or_undo(file: &mut File, bytes: &[u8]) -> Result<(), FailedAppend> {
    let mut written = 0_usize;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match file.write(rest) {
            Ok(0) => return Err(undo(file, written, Errno::NOSPC)),
            Ok(count) => written += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                return Err(undo(file, written, errno));
            }
        }
    }
    Ok(())
}

fn undo(file: &mut File, written: usize, errno: Errno) -> FailedAppend {
    let is_undone = written == 0 || cut_off(file, written).unwrap_or(false);
    let left = if is_undone { 0 } else { written };
    FailedAppend { errno, left }
}

/// Cuts off what was written last, unless somebody appended to it. Returns whether it is gone.
fn cut_off(file: &mut File, written: usize) -> std::io::Result<bool> {
    let end = file.stream_position()?;
    if Stat::of(file)?.identity.bytes != end {
        return Ok(false);
    }
    rustix::fs::ftruncate(&*file, end.saturating_sub(written as u64))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};

    use super::*;

    #[test]
    fn what_a_full_disk_left_of_a_write_is_cut_off_unless_somebody_appended_to_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        fs::write(&path, "before\n").unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(undo(&mut file, 4, Errno::NOSPC).left, 0);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before\n");
        file.write_all(b"half").unwrap();
        let mut other = OpenOptions::new().append(true).open(&path).unwrap();
        other.write_all(b"|other\n").unwrap();
        assert_eq!(undo(&mut file, 4, Errno::NOSPC).left, 4);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before\nhalf|other\n");
    }
}
