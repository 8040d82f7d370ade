//! Devices that may use this host: paired by a one-time code, known by a token of their own, signed out one by one (ADR 0080).
//!
//! Promises: a device is on the disk before it learns its token; once it is revoked no request of it is answered, and its
//! connections are told to close at once. Tokens and codes are stored as digests and in no log.
//! Must not know: HTTP, sockets, what a device does.

mod codes;
mod device;
mod file;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use wire::Timestamp;

pub use codes::{CodeGrant, CodePurpose};
pub use device::{Device, DeviceId, DeviceNameError, DeviceScope, DeviceToken, check_name};
use device::{SecretDigest, StoredDevice, make_unique};
pub use file::DevicesError;

use crate::clock::Clock;
use crate::sorted_map::SortedMap;
use codes::{CodeRefusal, PairingCodes};
use file::DeviceFile;

/// Devices that may be paired at a time.
pub const DEVICES_MAX: usize = 64;
/// What a device is called whose owner gave it no name.
const DEFAULT_NAME: &str = "device";

/// All of them.
pub struct Devices {
    clock: Clock,
    state: Mutex<DevicesState>,
    /// Held while devices are added or removed, so that each change is written with all before it; taken before `state`.
    /// `None`: they go with the process.
    file: Mutex<Option<DeviceFile>>,
}

#[derive(Default)]
struct DevicesState {
    by_digest: SortedMap<SecretDigest, PairedDevice>,
    codes: PairingCodes,
    /// A device was used since its file was written.
    has_unsaved_use: bool,
}

struct PairedDevice {
    stored: StoredDevice,
    revoked: CancellationToken,
    connections: usize,
}

/// What a request or a connection with a device's token may do.
#[derive(Debug, Clone)]
pub struct DeviceAccess {
    pub id: DeviceId,
    pub scopes: Vec<DeviceScope>,
    /// Resolves when the device is signed out.
    pub revoked: CancellationToken,
}

impl DeviceAccess {
    pub fn may(&self, scope: DeviceScope) -> bool {
        self.scopes.contains(&scope)
    }
}

/// Why a device was not paired.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    #[error("too many codes were tried; wait {} s and try again", .0.as_secs() + 1)]
    TooManyTries(Duration),
    #[error("this code is unknown, was used before, or is too old; `greenroom pair` makes another")]
    WrongCode,
    #[error("this code is for the user of this machine who ran `greenroom open`")]
    OtherUser,
    #[error(transparent)]
    BadName(#[from] DeviceNameError),
    #[error(
        "{DEVICES_MAX} devices are paired, which is the most there can be; `greenroom devices revoke NAME` signs one out"
    )]
    TooManyDevices,
    #[error("the system gives no random bytes: {0}")]
    NoRandomBytes(#[from] getrandom::Error),
    #[error("the device cannot be stored: {0}")]
    Unstored(#[from] DevicesError),
}

/// Who asks to be paired.
#[derive(Debug, Clone, Copy, Default)]
pub struct PairingCaller {
    pub address: Option<IpAddr>,
    /// A program of another user of this machine.
    pub is_other_user: bool,
}

/// How a device was signed out.
#[derive(Debug)]
pub enum Revocation {
    Done,
    Unknown,
    /// It is signed out, but would be back after the next start.
    Unsaved(DevicesError),
}

impl Devices {
    /// Those of a data directory. Blocks.
    pub fn open(data: &Path) -> Result<Self, DevicesError> {
        let file = DeviceFile::new(data);
        let mut state = DevicesState::default();
        for stored in file.load()? {
            state.insert(stored);
        }
        Ok(Self { state: Mutex::new(state), file: Mutex::new(Some(file)), ..Self::in_memory() })
    }

    /// Devices that go with the process.
    pub fn in_memory() -> Self {
        Self { clock: Clock::start(), state: Mutex::default(), file: Mutex::default() }
    }

    /// Makes a code that pairs one device.
    pub fn issue_code(&self, purpose: CodePurpose, grant: CodeGrant) -> Result<String, PairError> {
        let name = grant.name.as_deref().map(check_name).transpose()?;
        let mut state = self.state.lock();
        if state.by_digest.len() >= DEVICES_MAX {
            return Err(PairError::TooManyDevices);
        }
        Ok(state.codes.issue(purpose, CodeGrant { name, ..grant })?)
    }

    /// Makes a device of whoever has a code. The name that the code was made with goes before the one that the device gives
    /// itself. A name that is none, or a list that is full, leaves the code usable. Blocks.
    pub fn pair(
        &self,
        code: &str,
        own_name: Option<&str>,
        caller: PairingCaller,
    ) -> Result<(DeviceToken, Device), PairError> {
        let file = self.file.lock();
        let mut state = self.state.lock();
        state.codes.count_try().map_err(PairError::TooManyTries)?;
        let own_name = own_name.map(check_name).transpose()?;
        let refused = |refusal: CodeRefusal| match refusal {
            CodeRefusal::Wrong => PairError::WrongCode,
            CodeRefusal::OtherUser => PairError::OtherUser,
        };
        // First of all whether the code is one of these: that this list is full is no reason against the code of another space.
        state.codes.check(code, caller.is_other_user).map_err(refused)?;
        if state.by_digest.len() >= DEVICES_MAX {
            return Err(PairError::TooManyDevices);
        }
        let grant = state.codes.take(code, caller.is_other_user).map_err(refused)?;
        let name = grant.name.or(own_name);
        let names = state.by_digest.values().map(|it| it.stored.name.as_str());
        let name = make_unique(name.as_deref().unwrap_or(DEFAULT_NAME), names);
        let token = DeviceToken::new()?;
        let now = self.clock.now();
        let stored = StoredDevice {
            id: DeviceId::new()?,
            name,
            digest: SecretDigest::of(token.reveal().as_bytes()),
            scopes: grant.scopes,
            created_ms: now.0,
            last_used_ms: now.0,
            address: caller.address.map(|address| address.to_string()),
        };
        let mut all = state.to_stored();
        all.push(stored.clone());
        drop(state); // requests of others do not wait for the disk
        if let Some(file) = file.as_ref() {
            file.save(all)?;
        }
        let device = self.state.lock().insert(stored).to_device();
        Ok((token, device))
    }

    /// What the bearer of a token may do; `None` if it is no device's.
    pub fn access(&self, token: &[u8], address: Option<IpAddr>) -> Option<DeviceAccess> {
        let mut state = self.state.lock();
        let now = self.clock.now();
        let device = state.by_digest.get_mut(&SecretDigest::of(token))?;
        device.stored.last_used_ms = now.0;
        if let Some(address) = address {
            device.stored.address = Some(address.to_string());
        }
        let access = DeviceAccess {
            id: device.stored.id.clone(),
            scopes: device.stored.scopes.clone(),
            revoked: device.revoked.clone(),
        };
        state.has_unsaved_use = true;
        Some(access)
    }

    /// A device by its id, with what it may do, whether or not it asks; `None` if it is signed out.
    pub fn find(&self, id: &DeviceId) -> Option<Device> {
        let state = self.state.lock();
        let device = state.by_digest.values().find(|it| it.stored.id == *id);
        device.map(PairedDevice::to_device)
    }

    /// All devices, the oldest first.
    pub fn list(&self) -> Vec<Device> {
        let state = self.state.lock();
        let mut devices: Vec<Device> =
            state.by_digest.values().map(PairedDevice::to_device).collect();
        devices.sort_by(|a, b| (a.created.0, &a.id).cmp(&(b.created.0, &b.id)));
        devices
    }

    /// Signs a device out: its token counts no more and its connections close. Blocks.
    pub fn revoke(&self, id: &DeviceId) -> Revocation {
        let file = self.file.lock();
        let mut state = self.state.lock();
        let digest = state
            .by_digest
            .iter()
            .find(|(_, device)| device.stored.id == *id)
            .map(|(digest, _)| digest.clone());
        let Some(device) = digest.and_then(|digest| state.by_digest.remove(&digest)) else {
            return Revocation::Unknown;
        };
        // Before the disk: a device is signed out at once, even if the disk is full.
        device.revoked.cancel();
        let all = state.to_stored();
        drop(state);
        match file.as_ref().map(|file| file.save(all)) {
            None | Some(Ok(())) => Revocation::Done,
            Some(Err(error)) => {
                // Written with the next uses, within a minute: the device must not come back with the host.
                self.state.lock().has_unsaved_use = true;
                Revocation::Unsaved(error)
            }
        }
    }

    /// Writes when and from where devices were used. Blocks.
    pub fn save_uses(&self) -> Result<(), DevicesError> {
        let file = self.file.lock();
        let mut state = self.state.lock();
        if !std::mem::take(&mut state.has_unsaved_use) {
            return Ok(());
        }
        let all = state.to_stored();
        drop(state);
        let saved = file.as_ref().map_or(Ok(()), |file| file.save(all));
        if saved.is_err() {
            self.state.lock().has_unsaved_use = true; // tried again with the next
        }
        saved
    }

    /// Notes a connection of a device for as long as what is returned lives.
    pub fn connect(self: &Arc<Self>, id: &DeviceId) -> DeviceConnection {
        self.state.lock().note_connection(id, |device| device.connections += 1);
        DeviceConnection { devices: Arc::clone(self), id: id.clone() }
    }
}

impl DevicesState {
    fn insert(&mut self, stored: StoredDevice) -> &PairedDevice {
        let device = PairedDevice { stored, revoked: CancellationToken::new(), connections: 0 };
        let digest = device.stored.digest.clone();
        self.by_digest.remove(&digest);
        self.by_digest.get_or_insert_with(digest, || device)
    }

    fn to_stored(&self) -> Vec<StoredDevice> {
        let stored = self.by_digest.values().map(|device| device.stored.clone());
        stored.collect()
    }

    /// One that was signed out meanwhile has nothing to note.
    fn note_connection(&mut self, id: &DeviceId, note: impl FnOnce(&mut PairedDevice)) {
        let device = self.by_digest.values_mut().find(|it| it.stored.id == *id);
        if let Some(device) = device {
            note(device);
            self.has_unsaved_use = true;
        }
    }
}

impl PairedDevice {
    fn to_device(&self) -> Device {
        let StoredDevice { id, name, scopes, created_ms, last_used_ms, address, .. } =
            self.stored.clone();
        Device {
            id,
            name,
            scopes,
            created: Timestamp(created_ms),
            last_used: Timestamp(last_used_ms),
            address,
            connections: self.connections,
        }
    }
}

/// A connection of a device that is open.
pub struct DeviceConnection {
    devices: Arc<Devices>,
    id: DeviceId,
}

impl Drop for DeviceConnection {
    fn drop(&mut self) {
        let now = self.devices.clock.now();
        self.devices.state.lock().note_connection(&self.id, |device| {
            device.connections = device.connections.saturating_sub(1);
            device.stored.last_used_ms = now.0;
        });
    }
}

#[cfg(test)]
mod tests;
