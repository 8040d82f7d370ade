//! What was found lately, so that nobody looks for it at every key somebody presses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Discovered, discover};

/// How long what was found counts: an edit is seen after this at the latest.
const FRESH: Duration = Duration::from_millis(1_000);

/// Sets of directories remembered.
const SETS_MAX: usize = 64;

/// What is in working directories. A handle: clones share what was found.
#[derive(Debug, Clone, Default)]
pub struct Catalogues {
    found: Arc<Mutex<HashMap<Vec<String>, Found>>>,
    tell: Option<fn(&str)>,
}

#[derive(Debug, Clone)]
struct Found {
    at: Instant,
    what: Arc<Discovered>,
}

impl Catalogues {
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells every warning once, until it is gone and comes again.
    pub fn telling(tell: fn(&str)) -> Self {
        Self {
            tell: Some(tell),
            ..Self::default()
        }
    }

    /// What is in these directories, as it was a second ago at the most. Blocks.
    pub fn of(&self, working_directories: &[String]) -> Arc<Discovered> {
        self.at(working_directories, Instant::now())
    }

    fn at(&self, working_directories: &[String], now: Instant) -> Arc<Discovered> {
        let known = self.lock().get(working_directories).cloned();
        if let Some(known) = &known
            && now.saturating_duration_since(known.at) < FRESH
        {
            return Arc::clone(&known.what);
        }
        // Not under the lock: others need not wait for this disk.
        let what = discover(working_directories);
        if let Some(tell) = self.tell {
            let told = known.as_ref().map_or(&[][..], |known| &known.what.warnings);
            let new = what
                .warnings
                .iter()
                .filter(|warning| !told.contains(warning));
            new.for_each(|warning| tell(warning));
        }
        let what = match known {
            Some(known) if *known.what == what => known.what,
            _ => Arc::new(what),
        };
        let mut found = self.lock();
        if found.len() >= SETS_MAX && !found.contains_key(working_directories) {
            let oldest = found.iter().min_by_key(|(_, found)| found.at);
            let oldest = oldest.map(|(directories, _)| directories.clone());
            oldest.map(|directories| found.remove(&directories));
        }
        let entry = Found {
            at: now,
            what: Arc::clone(&what),
        };
        found.insert(working_directories.to_vec(), entry);
        what
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Vec<String>, Found>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_seen_after_a_while_and_nothing_is_looked_for_before() {
        let directory = tempfile::tempdir().unwrap();
        let commands = directory.path().join(".greenroom/commands");
        std::fs::create_dir_all(&commands).unwrap();
        std::fs::write(commands.join("one.md"), "One.").unwrap();
        let uri = vec![wire::file_uri::uri_of(
            std::os::unix::ffi::OsStrExt::as_bytes(directory.path().as_os_str()),
        )];
        let (catalogues, start) = (Catalogues::new(), Instant::now());
        let first = catalogues.at(&uri, start);
        assert!(first.catalogue.lookup("/one").is_some());

        std::fs::write(commands.join("two.md"), "Two.").unwrap();
        let soon = catalogues.at(&uri, start + FRESH / 2);
        assert!(Arc::ptr_eq(&first, &soon));
        let later = catalogues.at(&uri, start + FRESH);
        assert!(later.catalogue.lookup("/two").is_some());
        let unchanged = catalogues.clone().at(&uri, start + FRESH * 3);
        assert!(Arc::ptr_eq(&later, &unchanged));
    }

    #[test]
    fn a_warning_is_told_once() {
        static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let catalogues = Catalogues::telling(|warning| {
            TOLD.lock().unwrap().push(warning.to_owned());
        });
        let start = Instant::now();
        for look in 0..3 {
            catalogues.at(&["file:///not/there".to_owned()], start + FRESH * look);
        }
        let told = TOLD.lock().unwrap();
        assert!(
            told.len() == 1 && told[0].contains("/not/there"),
            "{told:?}"
        );
    }

    #[test]
    fn only_so_many_sets_of_directories_are_remembered() {
        let (catalogues, start) = (Catalogues::new(), Instant::now());
        for set in 0..SETS_MAX + 3 {
            let uri = format!("file:///not/there/{set}");
            catalogues.at(&[uri], start + Duration::from_secs(set as u64));
        }
        assert_eq!(catalogues.lock().len(), SETS_MAX);
    }
}
