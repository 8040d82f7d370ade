//! Devices that may use a host: codes that pair one, the list, signing out.
//!
//! Promises: a refusal carries the host's own message; a code appears in no error and no `Debug`.
//! Must not know: how a code is shown to people.

use std::fmt;

use serde_json::{Value, json};

use crate::http_request::HttpRequest;
use crate::{ClientError, Destination};

/// What a code is wanted for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeRequest {
    /// For the browser of this machine, which uses it at once; else for another device.
    pub opens_here: bool,
    /// What the device is to be called.
    pub name: Option<String>,
    /// Whether the device may see what models were sent.
    pub inspect: bool,
    /// The address under which the device will reach the host, if it is not the host's own.
    pub at: Option<String>,
}

/// A code that pairs one device.
#[derive(Clone, PartialEq, Eq)]
pub struct PairingCode {
    pub code: String,
    /// How long it works.
    pub seconds: u64,
}

impl fmt::Debug for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PairingCode(hidden, {} s)", self.seconds)
    }
}

/// A device that may use the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSummary {
    pub id: String,
    pub name: String,
    pub scopes: Vec<String>,
    pub created_at: String,
    pub last_used_at: String,
    /// Where it was last used from.
    pub address: Option<String>,
    /// Connections of it that are open.
    pub connections: u64,
}

/// Asks a host for a code.
pub async fn request_code(
    destination: &Destination,
    request: &CodeRequest,
) -> Result<PairingCode, ClientError> {
    let scopes = if request.inspect { json!(["use", "inspect"]) } else { json!(["use"]) };
    let purpose = if request.opens_here { "open" } else { "pair" };
    let body = json!({
        "purpose": purpose, "scopes": scopes, "name": request.name, "at": request.at,
    });
    let answer = ask(destination, "POST", "/api/pair/code", Some(body)).await?;
    let unreadable = || ClientError::Unreadable("its answer holds no code".to_owned());
    Ok(PairingCode {
        code: answer["code"].as_str().ok_or_else(unreadable)?.to_owned(),
        seconds: answer["expiresInSeconds"].as_u64().unwrap_or_default(),
    })
}

/// All devices of a host, the oldest first.
pub async fn list_devices(destination: &Destination) -> Result<Vec<DeviceSummary>, ClientError> {
    let answer = ask(destination, "GET", "/api/devices", None).await?;
    let devices: Option<Option<Vec<_>>> =
        answer["devices"].as_array().map(|all| all.iter().map(parse_device)).map(Iterator::collect);
    let unreadable = || ClientError::Unreadable("its answer holds no list of devices".to_owned());
    devices.flatten().ok_or_else(unreadable)
}

/// Signs a device out.
pub async fn revoke_device(destination: &Destination, id: &str) -> Result<(), ClientError> {
    let path = format!("/api/devices/{id}");
    ask(destination, "DELETE", &path, None).await.map(drop)
}

pub(crate) async fn ask(
    destination: &Destination,
    method: &'static str,
    path: &str,
    body: Option<Value>,
) -> Result<Value, ClientError> {
    let request = HttpRequest { method, path, body };
    let (status, body) = request.send(destination).await?;
    match status {
        204 => Ok(Value::Null),
        200 => serde_json::from_str(&body)
            .map_err(|_| ClientError::Unreadable("an answer that is no JSON".to_owned())),
        422 => Err(ClientError::AddressNotAllowed),
        // A host of an earlier version knows no such address.
        426 => Err(ClientError::TooOld),
        _ => Err(ClientError::ActionRefused(body.trim().to_owned())),
    }
}

fn parse_device(device: &Value) -> Option<DeviceSummary> {
    let text = |key: &str| device[key].as_str().map(str::to_owned);
    let scopes = device["scopes"].as_array()?.iter();
    Some(DeviceSummary {
        id: text("id")?,
        name: text("name")?,
        scopes: scopes.filter_map(|it| it.as_str().map(str::to_owned)).collect(),
        created_at: text("createdAt")?,
        last_used_at: text("lastUsedAt")?,
        address: text("address"),
        connections: device["connections"].as_u64().unwrap_or_default(),
    })
}
