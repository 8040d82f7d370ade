//! What all spaces of a process have in common, though each has agents of its own: read and made once, however many are loaded.
//!
//! Promises: what is handed out is what the settings name, as it was when it was first asked for; no space can change it for
//! another.
//! Must not know: what any of it is used for.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agents::Script;
use agents::native::SharedModels;
use compositor::lower::CapabilityMap;
use kernel::Kernel;
use wire::state::RootState;

/// A handle: clones share it.
#[derive(Clone, Default)]
pub struct SharedParts(Arc<Mutex<KnownParts>>);

#[derive(Default)]
struct KnownParts {
    /// With the files that they are from.
    script: Option<(PathBuf, Arc<Script>)>,
    capabilities: Option<(PathBuf, Arc<CapabilityMap>)>,
    models: SharedModels,
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

impl SharedParts {
    fn lock(&self) -> MutexGuard<'_, KnownParts> {
        // Every change here is complete before the lock is given back.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn script<E>(
        &self,
        path: &Path,
        load: impl FnOnce(&Path) -> Result<Script, E>,
    ) -> Result<Arc<Script>, E> {
        get_or_load(&mut self.lock().script, path, load)
    }

    pub(crate) fn capabilities<E>(
        &self,
        path: &Path,
        load: impl FnOnce(&Path) -> Result<CapabilityMap, E>,
    ) -> Result<Arc<CapabilityMap>, E> {
        get_or_load(&mut self.lock().capabilities, path, load)
    }

    /// One entry of each model, with its connections and its key.
    pub(crate) fn models(&self) -> SharedModels {
        self.lock().models.clone()
    }

    /// Kernels whose roots are the same have one of it.
    pub(crate) fn share_root(&self, kernel: &mut Kernel) {
        kernel.share_root(&mut self.lock().roots);
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
}
