//! The bounds of a space: their names, what an operator set, and what counts where nothing is set.
//!
//! Promises: a bound that is not named here cannot be set; one that was set by a later version is left alone.
//! Must not know: where bounds are kept, and what happens above one.

use tokio_postgres::Row;

use super::{AccountAdmin, AccountError};
use crate::limits::ServerLimits;

/// What a space may take at most; zero is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceLimits {
    /// Clients that are connected at once.
    pub connections: u64,
    /// Turns that run at once; workers count to the turn that started them.
    pub turns: u64,
    /// Messages of all clients together, a second; faster ones wait.
    pub inputs_per_s: u64,
    /// What sessions and content take in the database, in bytes.
    pub stored_bytes: u64,
    /// What is recorded a second, in bytes; what is more waits.
    pub record_bytes_per_s: u64,
    /// For how many days actions are kept for clients that come back.
    pub log_days: u64,
    /// What its channels may take in memory, in bytes; read when it is loaded.
    pub loaded_bytes: u64,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpaceLimitKey {
    Connections,
    Turns,
    InputsPerSecond,
    StoredBytes,
    RecordBytesPerSecond,
    LogDays,
    LoadedBytes,
}

impl SpaceLimitKey {
    pub const ALL: [Self; 7] = [
        Self::Connections,
        Self::Turns,
        Self::InputsPerSecond,
        Self::StoredBytes,
        Self::RecordBytesPerSecond,
        Self::LogDays,
        Self::LoadedBytes,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Turns => "turns",
            Self::InputsPerSecond => "inputs_per_s",
            Self::StoredBytes => "stored_bytes",
            Self::RecordBytesPerSecond => "record_bytes_per_s",
            Self::LogDays => "log_days",
            Self::LoadedBytes => "loaded_bytes",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }
}

impl From<&ServerLimits> for SpaceLimits {
    fn from(limits: &ServerLimits) -> Self {
        Self {
            connections: limits.space_connections_max,
            turns: limits.space_turns_max,
            inputs_per_s: limits.space_inputs_per_s,
            stored_bytes: limits.space_stored_bytes_max,
            record_bytes_per_s: limits.space_record_bytes_per_s,
            log_days: limits.space_log_days,
            loaded_bytes: limits.space_loaded_bytes_max,
        }
    }
}

impl SpaceLimits {
    pub fn get(&self, key: SpaceLimitKey) -> u64 {
        match key {
            SpaceLimitKey::Connections => self.connections,
            SpaceLimitKey::Turns => self.turns,
            SpaceLimitKey::InputsPerSecond => self.inputs_per_s,
            SpaceLimitKey::StoredBytes => self.stored_bytes,
            SpaceLimitKey::RecordBytesPerSecond => self.record_bytes_per_s,
            SpaceLimitKey::LogDays => self.log_days,
            SpaceLimitKey::LoadedBytes => self.loaded_bytes,
        }
    }

    fn set(&mut self, key: SpaceLimitKey, value: u64) {
        match key {
            SpaceLimitKey::Connections => self.connections = value,
            SpaceLimitKey::Turns => self.turns = value,
            SpaceLimitKey::InputsPerSecond => self.inputs_per_s = value,
            SpaceLimitKey::StoredBytes => self.stored_bytes = value,
            SpaceLimitKey::RecordBytesPerSecond => self.record_bytes_per_s = value,
            SpaceLimitKey::LogDays => self.log_days = value,
            SpaceLimitKey::LoadedBytes => self.loaded_bytes = value,
        }
    }

    /// The same, with what an operator set for the space.
    pub(super) fn with_overrides(mut self, rows: &[Row]) -> Result<Self, AccountError> {
        for (key, value) in read_limits(rows)? {
            self.set(key, value);
        }
        Ok(self)
    }
}

/// What was set for a space.
pub(super) const OF_SPACE: &str = "SELECT l.name, l.value FROM greenroom.space_limit l
     JOIN greenroom.space s ON s.id = l.space WHERE s.name = $1 ORDER BY l.name";

const SET: &str = "INSERT INTO greenroom.space_limit (space, name, value) VALUES ($1, $2, $3)
     ON CONFLICT (space, name) DO UPDATE SET value = excluded.value";

fn read_limits(rows: &[Row]) -> Result<Vec<(SpaceLimitKey, u64)>, AccountError> {
    let mut limits = Vec::new();
    for row in rows {
        let (name, value): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
        if let Some(key) = SpaceLimitKey::from_name(&name) {
            limits.push((key, u64::try_from(value).unwrap_or(0)));
        }
    }
    Ok(limits)
}

impl AccountAdmin {
    /// What was set for a space; the settings of each node say what counts beside it.
    pub async fn space_limits(
        &self,
        space: &str,
    ) -> Result<Vec<(SpaceLimitKey, u64)>, AccountError> {
        self.find_space(space).await?;
        let mut connection = self.connection().await?;
        read_limits(&connection.query(OF_SPACE, &[&space]).await?)
    }

    /// Sets a bound of a space, or takes back that it was set. Nodes that serve the space know it within half a minute.
    pub async fn set_space_limit(
        &self,
        space: &str,
        key: SpaceLimitKey,
        value: Option<u64>,
    ) -> Result<(), AccountError> {
        let space = self.find_space(space).await?;
        let mut connection = self.connection().await?;
        match value {
            Some(value) => {
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                connection.execute(SET, &[&space, &key.name(), &value]).await?;
            }
            None => {
                let sql = "DELETE FROM greenroom.space_limit WHERE space = $1 AND name = $2";
                connection.execute(sql, &[&space, &key.name()]).await?;
            }
        }
        Ok(())
    }
}
