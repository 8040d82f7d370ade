//! Who is behind a request or a connection, and what that allows.
//!
//! Promises: a scope is granted by name, never by default; a device's access ends when it is signed out.
//! Must not know: HTTP, where a token was found.

use std::net::IpAddr;

use subtle::ConstantTimeEq;

use super::admission::Admission;
use crate::devices::{Device, DeviceAccess, DeviceConnection, DeviceScope};

/// No id of a device looks like this.
const OWNER: &str = "owner";

/// Who it is.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// Whoever has the token of the data directory, or reaches a host that asks for none.
    Owner,
    Device(DeviceAccess),
}

impl Access {
    /// The one that a token belongs to; `None` if it belongs to nobody.
    pub(super) fn of_token(
        admission: &Admission,
        presented: &[u8],
        address: Option<IpAddr>,
    ) -> Option<Self> {
        if let Some(device) = admission.devices.access(presented, address) {
            return Some(Self::Device(device));
        }
        let is_owner = match &admission.token {
            Some(token) => bool::from(presented.ct_eq(token.as_bytes())),
            None => true,
        };
        is_owner.then_some(Self::Owner)
    }

    /// Whether the one of this name may still use the host.
    pub(super) fn is_known(admission: &Admission, name: &str) -> bool {
        let may_use = |device: &Device| device.scopes.contains(&DeviceScope::Use);
        let mut devices = admission.devices.list().into_iter();
        name == OWNER || devices.any(|device| device.id.as_str() == name && may_use(&device))
    }

    pub(crate) fn may(&self, scope: DeviceScope) -> bool {
        match self {
            Self::Owner => true,
            Self::Device(device) => device.may(scope),
        }
    }

    /// What requests of it are counted by, and addresses are signed for.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Owner => OWNER,
            Self::Device(device) => device.id.as_str(),
        }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Owner, Self::Owner) => true,
            (Self::Device(one), Self::Device(other)) => one.id == other.id,
            (Self::Owner, Self::Device(_)) | (Self::Device(_), Self::Owner) => false,
        }
    }

    /// Ends when it is taken away; the owner's never is.
    pub(super) async fn revoked(&self) {
        match self {
            Self::Owner => std::future::pending().await,
            Self::Device(device) => device.revoked.cancelled().await,
        }
    }

    /// Counts a connection of a device while it is open.
    pub(super) fn note_connection(&self, admission: &Admission) -> Option<DeviceConnection> {
        match self {
            Self::Owner => None,
            Self::Device(device) => Some(admission.devices.connect(&device.id)),
        }
    }
}
