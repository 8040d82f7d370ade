//! Finds the host: at one fixed address, or by a function that is called before every attempt.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{ClientError, Endpoint, Target};

type Locate = dyn Fn() -> Result<Target, ClientError> + Send + Sync;

/// Finds the address of a host, now and after it was restarted.
#[derive(Clone)]
pub struct HostLocator(Arc<Locate>);

impl HostLocator {
    /// Called before each attempt, so that a host which came back on another port or with another token is found.
    pub fn from_fn(
        locate: impl Fn() -> Result<Target, ClientError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(locate))
    }

    /// Wherever the endpoint file of this data directory says.
    pub fn in_data_directory(data: PathBuf) -> Self {
        Self::from_fn(move || Ok(Endpoint::find(&data)?.target()))
    }

    pub(super) fn locate(&self) -> Result<Target, ClientError> {
        (self.0)()
    }
}

impl From<Target> for HostLocator {
    fn from(target: Target) -> Self {
        Self::from_fn(move || Ok(target.clone()))
    }
}

impl fmt::Debug for HostLocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostLocator").finish_non_exhaustive()
    }
}
