//! Where the host is: one fixed address, or a question that is asked before every attempt.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{ClientError, Endpoint, Target};

type Find = dyn Fn() -> Result<Target, ClientError> + Send + Sync;

/// Where to connect to, now and after the host was restarted.
#[derive(Clone)]
pub struct Place(Arc<Find>);

impl Place {
    /// Asked before each attempt, so that a host which came back on another port or with another token is found.
    pub fn found_by(
        find: impl Fn() -> Result<Target, ClientError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(find))
    }

    /// Wherever the endpoint file of this data directory says.
    pub fn of_data(data: PathBuf) -> Self {
        Self::found_by(move || Ok(Endpoint::find(&data)?.target()))
    }

    pub(super) fn find(&self) -> Result<Target, ClientError> {
        (self.0)()
    }
}

impl From<Target> for Place {
    fn from(target: Target) -> Self {
        Self::found_by(move || Ok(target.clone()))
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}
