//! What was discovered recently, so that files are not searched at every key press.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::known_texts::KnownTexts;
use super::{Container, Discovered, Warning, WarningKind, discover_again, places};
use crate::{ClientPluginCopy, Confinement, UserDirectories, Workspace};

/// How long a result counts: an edit is noticed after this at the latest.
const FRESH: Duration = Duration::from_millis(1_000);

/// Sets of directories remembered.
const SETS_MAX: usize = 64;

/// Is called with the kind of new warnings and how many there are: no path, so that it can be logged.
type Report = fn(WarningKind, usize);

/// The commands and skills of working directories. A handle: clones share the results.
#[derive(Debug, Clone, Default)]
pub struct DiscoveryCache {
    results: Arc<Mutex<HashMap<SearchedPlaces, CachedResult>>>,
    report: Option<Report>,
    confinement: Confinement,
    user: UserDirectories,
    texts: KnownTexts,
}

/// Where is searched beside the user's own directories.
type SearchedPlaces = (Vec<String>, Vec<ClientPluginCopy>);

#[derive(Debug, Clone)]
struct CachedResult {
    at: Instant,
    discovered: Arc<Discovered>,
}

impl DiscoveryCache {
    /// Reports new warnings: each once, until it is gone and comes again.
    pub fn with_report(report: Report) -> Self {
        Self { report: Some(report), ..Self::default() }
    }

    /// Searches no directory that may not be worked in.
    #[must_use]
    pub fn with_confinement(mut self, confinement: Confinement) -> Self {
        self.confinement = confinement;
        self
    }

    /// Searches what the user keeps for agents as well.
    #[must_use]
    pub fn with_user_directories(mut self, user: UserDirectories) -> Self {
        self.user = user;
        self
    }

    pub(crate) fn confinement(&self) -> &Confinement {
        &self.confinement
    }

    /// What is in these directories, and in plugins that clients brought, at most a second old. Blocks.
    pub fn get(
        &self,
        working_directories: &[String],
        brought: &[ClientPluginCopy],
    ) -> Arc<Discovered> {
        self.get_at(working_directories, brought, Instant::now())
    }

    /// What is in these directories now. Others are not kept from looking again. Blocks.
    pub fn look(&self, working_directories: &[String], brought: &[ClientPluginCopy]) -> Discovered {
        let (user, confinement) = (&self.user, &self.confinement);
        let texts = self.texts.clone();
        discover_again(working_directories, user, brought, confinement, texts)
    }

    /// The directories that clients may fill although they are not there yet, one for each of these that can be worked in. Blocks.
    pub fn find_missing_writable(&self, working_directories: &[String]) -> Vec<Container> {
        // What cannot be opened is said by whoever looks for everything.
        let (workspace, _) = Workspace::open_available(working_directories, &self.confinement);
        places::find_missing_writable(&workspace)
    }

    /// How many files were read so far. One that did not change is not read again.
    pub fn files_read(&self) -> u64 {
        self.texts.files_read()
    }

    /// What is in these directories, at most a second old, without what is switched off, by ids. Blocks.
    pub fn get_enabled(
        &self,
        working_directories: &[String],
        brought: &[ClientPluginCopy],
        switched_off: &BTreeSet<String>,
    ) -> Arc<Discovered> {
        let discovered = self.get(working_directories, brought);
        if switched_off.is_empty() {
            discovered
        } else {
            Arc::new(discovered.without(switched_off))
        }
    }

    fn get_at(
        &self,
        working_directories: &[String],
        brought: &[ClientPluginCopy],
        now: Instant,
    ) -> Arc<Discovered> {
        let places = (working_directories.to_vec(), brought.to_vec());
        let cached = self.results.lock().get(&places).cloned();
        if let Some(cached) = &cached
            && now.saturating_duration_since(cached.at) < FRESH
        {
            return Arc::clone(&cached.discovered);
        }
        // Not under the lock: others need not wait for this disk.
        let discovered = self.look(working_directories, brought);
        let known = cached.as_ref().map_or(&[][..], |cached| &cached.discovered.warnings);
        self.report_new(known, &discovered.warnings);
        let discovered = match cached {
            Some(cached) if *cached.discovered == discovered => cached.discovered,
            _ => Arc::new(discovered),
        };
        let mut results = self.results.lock();
        if results.len() >= SETS_MAX && !results.contains_key(&places) {
            let oldest = results
                .iter()
                .min_by_key(|(_, cached)| cached.at)
                .map(|(places, _)| places.clone());
            oldest.map(|places| results.remove(&places));
        }
        debug_assert!(results.len() <= SETS_MAX);
        let entry = CachedResult { at: now, discovered: Arc::clone(&discovered) };
        results.insert(places, entry);
        discovered
    }

    fn report_new(&self, known: &[Warning], warnings: &[Warning]) {
        let mut counts: BTreeMap<WarningKind, usize> = BTreeMap::new();
        for warning in warnings.iter().filter(|warning| !known.contains(warning)) {
            *counts.entry(warning.kind).or_default() += 1;
        }
        if let Some(report) = self.report {
            counts.into_iter().for_each(|(kind, count)| report(kind, count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_noticed_after_a_while_and_nothing_is_searched_before() {
        let directory = tempfile::tempdir().unwrap();
        let commands = directory.path().join(".greenroom/commands");
        std::fs::create_dir_all(&commands).unwrap();
        std::fs::write(commands.join("one.md"), "One.").unwrap();
        let uri = vec![wire::file_uri::uri_of(std::os::unix::ffi::OsStrExt::as_bytes(
            directory.path().as_os_str(),
        ))];
        let (cache, start) = (DiscoveryCache::default(), Instant::now());
        let first = cache.get_at(&uri, &[], start);
        assert!(first.catalogue.lookup("/one").is_some());

        std::fs::write(commands.join("two.md"), "Two.").unwrap();
        let soon = cache.get_at(&uri, &[], start + FRESH / 2);
        assert!(Arc::ptr_eq(&first, &soon));
        let later = cache.get_at(&uri, &[], start + FRESH);
        assert!(later.catalogue.lookup("/two").is_some());
        let unchanged = cache.clone().get_at(&uri, &[], start + FRESH * 3);
        assert!(Arc::ptr_eq(&later, &unchanged));
    }

    #[test]
    fn new_warnings_are_reported_once_by_kind_and_count() {
        static REPORTED: Mutex<Vec<(WarningKind, usize)>> = Mutex::new(Vec::new());
        let cache = DiscoveryCache::with_report(|kind, count| {
            REPORTED.lock().push((kind, count));
        });
        let start = Instant::now();
        let directories = ["file:///not/there", "file:///nor/there"].map(str::to_owned);
        for look in 0..3 {
            let discovered = cache.get_at(&directories, &[], start + FRESH * look);
            // Whoever asks gets the details.
            assert!(discovered.warnings[0].to_string().contains("/not/there"));
        }
        assert_eq!(*REPORTED.lock(), [(WarningKind::Unreadable, 2)]);
    }

    #[test]
    fn only_so_many_sets_of_directories_are_remembered() {
        let (cache, start) = (DiscoveryCache::default(), Instant::now());
        for set in 0..SETS_MAX + 3 {
            let uri = format!("file:///not/there/{set}");
            cache.get_at(&[uri], &[], start + Duration::from_secs(set as u64));
        }
        assert_eq!(cache.results.lock().len(), SETS_MAX);
    }
}
