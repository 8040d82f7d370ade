//! What all spaces of a process have in common, though each has agents of its own: read and made once, however many are loaded.
//!
//! Promises: what is handed out is what the settings name, as it was when it was first asked for; no space can change it for
//! another.
//! Must not know: what any of it is used for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agents::Script;
use agents::native::SharedModels;
use compositor::lower::CapabilityMap;
use kernel::Kernel;
use parking_lot::Mutex;
use wire::state::RootState;

use crate::limits::ServerLimits;

/// A handle: clones share it.
#[derive(Clone, Default)]
pub struct SharedParts(Arc<Mutex<KnownParts>>);

#[derive(Default)]
struct KnownParts {
    /// With the files that they are from.
    script: Option<(PathBuf, Arc<Script>)>,
    capabilities: Option<(PathBuf, Arc<CapabilityMap>)>,
    models: SharedModels,
    limits: (Vec<Arc<kernel::Limits>>, Vec<Arc<ServerLimits>>),
    /// Of kernels that run.
    roots: Vec<Arc<RootState>>,
}

/// What is known of a file, or what `load` makes of it.
fn get_or_load<T, E>(
    known: &mut Option<(PathBuf, Arc<T>)>,
    path: &Path,
    load: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<Arc<T>, E> {
    if let Some((of, value)) = known
        && of == path
    {
        return Ok(Arc::clone(value));
    }
    let value = Arc::new(load(path)?);
    *known = Some((path.to_owned(), Arc::clone(&value)));
    Ok(value)
}

/// More kinds are not worth a comparison.
const KINDS_MAX: usize = 16;

/// The one that is equal; it is known from now on if there was none.
fn keep_once<T: PartialEq>(known: &mut Vec<Arc<T>>, value: T) -> Arc<T> {
    // What nobody has any more but this list.
    known.retain(|one| Arc::strong_count(one) > 1);
    if let Some(same) = known.iter().find(|one| ***one == value) {
        return Arc::clone(same);
    }
    let value = Arc::new(value);
    if known.len() < KINDS_MAX {
        known.push(Arc::clone(&value));
    }
    value
}

impl SharedParts {
    pub(crate) fn script<E>(
        &self,
        path: &Path,
        load: impl FnOnce(&Path) -> Result<Script, E>,
    ) -> Result<Arc<Script>, E> {
        get_or_load(&mut self.0.lock().script, path, load)
    }

    pub(crate) fn capabilities<E>(
        &self,
        path: &Path,
        load: impl FnOnce(&Path) -> Result<CapabilityMap, E>,
    ) -> Result<Arc<CapabilityMap>, E> {
        get_or_load(&mut self.0.lock().capabilities, path, load)
    }

    /// One entry of each model, with its connections and its key.
    pub(crate) fn models(&self) -> SharedModels {
        self.0.lock().models.clone()
    }

    /// Limits that some space has already are kept once.
    pub(crate) fn kernel_limits(&self, limits: kernel::Limits) -> Arc<kernel::Limits> {
        keep_once(&mut self.0.lock().limits.0, limits)
    }

    pub(crate) fn server_limits(&self, limits: ServerLimits) -> Arc<ServerLimits> {
        keep_once(&mut self.0.lock().limits.1, limits)
    }

    /// Kernels whose roots are the same have one of it.
    pub(crate) fn share_root(&self, kernel: &mut Kernel) {
        kernel.share_root(&mut self.0.lock().roots);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_and_another_is_another() {
        let parts = SharedParts::default();
        let get = |parts: &SharedParts, path: &str, model: Option<&str>| {
            parts.script(Path::new(path), |_| {
                let model = model.ok_or("it was not to be read")?;
                let script = format!(r#"{{"model": "{model}", "scenes": []}}"#);
                Script::parse(&script).map_err(|_| "no script")
            })
        };
        let first = get(&parts, "a", Some("one")).unwrap();
        let again = get(&parts.clone(), "a", None).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        let other = get(&parts, "b", Some("two")).unwrap();
        assert!(!Arc::ptr_eq(&first, &other));
        assert!(get(&parts, "c", None).is_err());
        let other_again = get(&parts, "b", None).unwrap();
        assert!(Arc::ptr_eq(&other, &other_again), "what failed is not kept");
    }

    #[test]
    fn equal_limits_are_kept_once() {
        let parts = SharedParts::default();
        let with = |turns| ServerLimits { space_turns_max: turns, ..ServerLimits::default() };
        let [one, same, other] = [1, 1, 2].map(|turns| parts.server_limits(with(turns)));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        drop((one, same, other));
        assert_eq!(parts.server_limits(with(3)).space_turns_max, 3);
        assert_eq!(parts.0.lock().limits.1.len(), 1, "what nobody has is forgotten");
    }
}
