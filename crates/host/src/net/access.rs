//! Who is behind a request or a connection, and what that allows.
//!
//! Promises: a scope is granted by name, never by default; a device's access ends when it is signed out.
//! Must not know: HTTP, where a token was found.

use std::net::IpAddr;
use std::sync::Arc;

use kernel::{HolderName, Role};
use subtle::ConstantTimeEq;

use super::admission::Admission;
use crate::accounts::GrantedToken;
use crate::devices::{Device, DeviceAccess, DeviceConnection, DeviceScope};

/// No id of a device looks like this.
const OWNER: &str = "owner";

/// Who it is.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// Whoever has the token of the data directory, or reaches a host that asks for none.
    Owner,
    Device(DeviceAccess),
    /// Somebody with a token of an account.
    Account(Arc<GrantedToken>),
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
            Self::Account(granted) => match scope {
                DeviceScope::Use => true, // how far, its role says
                DeviceScope::Inspect => granted.role >= Role::Owner,
            },
        }
    }

    /// What it may do in the space. Whoever has the data directory's token, or a device that was paired with it, may do all.
    pub(crate) fn role(&self) -> Role {
        match self {
            Self::Owner | Self::Device(_) => Role::Owner,
            Self::Account(granted) => granted.role,
        }
    }

    /// Whose client ids nobody else may take over; `None` for the owner, who may take over all (H-035).
    pub(super) fn holder(&self) -> Option<HolderName> {
        match self {
            Self::Owner => None,
            Self::Device(device) => Some(HolderName::Device(device.id.as_str().to_owned())),
            // Whatever token they show.
            Self::Account(granted) => Some(HolderName::Principal(granted.principal_name.clone())),
        }
    }

    /// What requests of it are counted by, and addresses are signed for.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Owner => OWNER,
            Self::Device(device) => device.id.as_str(),
            Self::Account(granted) => &granted.name,
        }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Owner, Self::Owner) => true,
            (Self::Device(one), Self::Device(other)) => one.id == other.id,
            (Self::Account(one), Self::Account(other)) => one.id == other.id,
            (Self::Owner | Self::Device(_) | Self::Account(_), _) => false,
        }
    }

    /// Ends when it is taken away; the owner's never is.
    pub(super) async fn wait_until_revoked(&self) {
        match self {
            Self::Owner => std::future::pending().await,
            Self::Device(device) => device.revoked.cancelled().await,
            Self::Account(granted) => granted.revoked.cancelled().await,
        }
    }

    /// Why its connections are closed when it is taken away, as clients read it.
    pub(crate) fn close_reason(&self) -> &'static str {
        match self {
            Self::Owner | Self::Device(_) => "this device was signed out",
            Self::Account(_) => "this token is not valid any more",
        }
    }

    /// Counts a connection of a device while it is open.
    pub(super) fn note_connection(&self, admission: &Admission) -> Option<DeviceConnection> {
        match self {
            Self::Owner | Self::Account(_) => None,
            Self::Device(device) => Some(admission.devices.connect(&device.id)),
        }
    }
}
