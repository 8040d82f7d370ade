//! The last look at each of a few sets of working directories, so that the next one reads only what was touched since.
//!
//! Promises: the contents that a remembered look names are held, so that none of them is collected while it is remembered. Few are
//! remembered, and not for long: a session whose look was forgotten has its files read again.
//! Must not know: why anybody looks, and what two looks differ in.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use workspace::TreeSnapshot;

use crate::blobs::BodyHold;

/// Sets of directories that are remembered. A look has up to 5,000 files, about a megabyte.
const LOOKS_MAX: usize = 4;

/// How long one is remembered: as long as somebody may think before the next message. Contents of a session that is gone are held no longer.
const LOOK_TIME: Duration = Duration::from_secs(30 * 60);

/// A look, and the hold on what it found.
#[derive(Debug)]
pub(crate) struct RecentLook {
    directories: Vec<String>,
    since: Instant,
    look: TreeSnapshot,
    _hold: BodyHold,
}

impl RecentLook {
    pub(crate) fn look(&self) -> &TreeSnapshot {
        &self.look
    }
}

/// The last looks, the newest at the end. A handle.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentLooks {
    looks: Arc<Mutex<VecDeque<Arc<RecentLook>>>>,
}

impl RecentLooks {
    /// The last look at exactly these directories.
    pub(crate) fn find(&self, directories: &[String]) -> Option<Arc<RecentLook>> {
        let mut looks = self.looks.lock();
        looks.retain(|look| look.since.elapsed() < LOOK_TIME);
        let found = looks.iter().find(|look| look.directories == directories);
        found.map(Arc::clone)
    }

    /// Remembers a look whose contents are kept. `hold` is a hold on nothing yet.
    pub(crate) fn remember(&self, directories: Vec<String>, look: TreeSnapshot, hold: BodyHold) {
        look.contents().for_each(|digest| hold.add(digest));
        let mut looks = self.looks.lock();
        looks.retain(|known| known.directories != directories && known.since.elapsed() < LOOK_TIME);
        if looks.len() == LOOKS_MAX {
            looks.pop_front();
        }
        looks.push_back(Arc::new(RecentLook {
            directories,
            since: Instant::now(),
            look,
            _hold: hold,
        }));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wire::Digest;
    use workspace::{Cancellation, Confinement, Workspace};

    use super::*;
    use crate::blobs::HeldBodies;

    fn look_at(directory: &std::path::Path) -> (Vec<String>, TreeSnapshot) {
        let directories = vec![format!("file://{}", directory.display())];
        let workspace = Workspace::open(&directories, &Confinement::none()).unwrap();
        let mut keep = |_: &Digest, _: &[u8]| Ok(());
        let never = Cancellation::default();
        let look = workspace.look_at_tree(&Confinement::none(), &mut keep, None, &never);
        (directories, look)
    }

    #[test]
    fn few_looks_are_remembered_and_their_contents_are_held() {
        let (recent, held) = (RecentLooks::default(), HeldBodies::default());
        let scratch = tempfile::tempdir().unwrap();
        let mut contents = Vec::new();
        for number in 0..=LOOKS_MAX {
            let directory = scratch.path().join(number.to_string());
            std::fs::create_dir(&directory).unwrap();
            std::fs::write(directory.join("file"), number.to_string()).unwrap();
            let (directories, look) = look_at(&directory);
            let found: BTreeSet<Digest> = look.contents().collect();
            assert_eq!(found.len(), 1);
            recent.remember(directories.clone(), look, held.begin());
            contents.push((directories, found));
        }
        for (number, (directories, found)) in contents.iter().enumerate() {
            let is_remembered = number > 0;
            assert_eq!(recent.find(directories).is_some(), is_remembered);
            let is_held = found.iter().all(|digest| held.contains(digest));
            assert_eq!(is_held, is_remembered, "{number}");
        }
        // A newer look at the same directories takes the place of the older one.
        let (directories, _) = &contents[1];
        std::fs::write(scratch.path().join("1/file"), "changed").unwrap();
        let (_, look) = look_at(&scratch.path().join("1"));
        recent.remember(directories.clone(), look, held.begin());
        assert!(!contents[1].1.iter().any(|digest| held.contains(digest)));
        assert!(recent.find(&contents[2].0).is_some());
    }
}
