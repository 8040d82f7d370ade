//! Finds the host: at one fixed address, or by a function that is called before every attempt.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{ClientError, Destination, Endpoint, HostTarget};

type Locate = dyn Fn() -> Result<Destination, ClientError> + Send + Sync;

/// Finds the address of a host, now and after it was restarted.
#[derive(Clone)]
pub struct HostLocator(Arc<Locate>);

impl HostLocator {
    /// Called before each attempt, so that a host which came back on another port or with another token is found.
    pub fn from_fn<D: Into<Destination>>(
        locate: impl Fn() -> Result<D, ClientError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move || locate().map(Into::into)))
    }

    /// Wherever the endpoint file of this data directory says.
    pub fn in_data_directory(data: PathBuf) -> Self {
        Self::from_fn(move || Ok(Endpoint::find(&data)?.destination(None)))
    }

    pub(super) fn locate(&self) -> Result<Destination, ClientError> {
        (self.0)()
    }
}

impl From<HostTarget> for HostLocator {
    fn from(target: HostTarget) -> Self {
        Destination::from(target).into()
    }
}

impl From<Destination> for HostLocator {
    fn from(destination: Destination) -> Self {
        Self::from_fn(move || Ok(destination.clone()))
    }
}

impl fmt::Debug for HostLocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostLocator").finish_non_exhaustive()
    }
}
