//! Devices over HTTP: pair one by a code, list them, sign one out, and who is asking (ADR 0080).
//!
//! Promises: only the token of the data directory makes codes; a code is tried at most ten times a minute in all; a device's
//! token is in one answer, the one that pairs it. Tokens count in the `Authorization` header alone. Nothing is stored by anyone
//! on the way.
//! Must not know: how devices are stored, how codes are shown.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{HeaderValue, RETRY_AFTER};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::answer::HttpResponse;
use super::super::{gate, local_user};
use super::{ApiRequest, body};
use crate::devices::{
    CodeGrant, CodePurpose, Device, DeviceId, DeviceScope, Devices, PairError, PairingCaller,
    Revocation,
};
use crate::net::access::Access;
use crate::task;

/// Longer than any request about a device.
const BODY_BYTES_MAX: usize = 4_096;

#[derive(Deserialize)]
struct PairRequest {
    code: String,
    /// What the device calls itself.
    name: Option<String>,
}

/// Makes a device of whoever has a code: no token is asked for, the code is the secret.
pub(super) async fn pair(
    request: &ApiRequest<'_>,
    body: Incoming,
) -> Result<HttpResponse, HttpResponse> {
    let given: PairRequest = body::read_json(request, body, BODY_BYTES_MAX).await?;
    let handles = request.head.http_socket.handles.iter();
    let stores: Vec<Arc<Devices>> =
        handles.map(|handle| Arc::clone(&handle.admission.devices)).collect();
    let peer = request.head.http_socket.address;
    let paired = on_disk(move || {
        let caller = PairingCaller {
            address: Some(peer.ip()),
            is_other_user: local_user::is_other_user(peer),
        };
        // The code names the space; a wrong one counts as tried in all of them.
        let mut tried = Err(PairError::WrongCode);
        for store in &stores {
            tried = store.pair(&given.code, given.name.as_deref(), caller);
            if !matches!(tried, Err(PairError::WrongCode)) {
                break;
            }
        }
        tried
    });
    let (token, device) = paired.await?.map_err(|error| refuse_pairing(&error))?;
    tracing::info!(device = device.id.as_str(), "a device was paired");
    let access = Access::Owner;
    Ok(HttpResponse::json(
        200,
        &json!({"token": token.reveal(), "device": to_json(&device, &access)}),
    ))
}

fn refuse_pairing(error: &PairError) -> HttpResponse {
    let status = match error {
        PairError::TooManyTries(_) => 429,
        PairError::WrongCode | PairError::OtherUser => 403,
        PairError::BadName(_) => 400,
        PairError::TooManyDevices => 409,
        PairError::NoRandomBytes(_) | PairError::Unstored(_) => 500,
    };
    let refusal = HttpResponse::text(status, format!("{error}\n"));
    match error {
        PairError::TooManyTries(wait) => {
            refusal.with(RETRY_AFTER, HeaderValue::from(wait.as_secs() + 1))
        }
        PairError::Unstored(_) | PairError::NoRandomBytes(_) => {
            tracing::error!(%error, "a device could not be paired");
            refusal
        }
        PairError::OtherUser => {
            tracing::warn!("another user of this machine tried a code of `greenroom open`");
            refusal
        }
        PairError::WrongCode | PairError::BadName(_) | PairError::TooManyDevices => refusal,
    }
}

#[derive(Deserialize)]
struct CodeParams {
    purpose: String,
    scopes: Vec<String>,
    name: Option<String>,
    /// The address of the page for the device.
    at: Option<String>,
}

/// Makes a code, for the owner alone.
pub(super) async fn issue_code(
    request: &ApiRequest<'_>,
    access: &Access,
    body: Incoming,
) -> Result<HttpResponse, HttpResponse> {
    match access {
        Access::Owner => {}
        Access::Device(_) | Access::Account(_) => {
            let text = "a device pairs no other; run `greenroom pair` on the machine of the host\n";
            return Err(HttpResponse::new(403, text));
        }
    }
    let wanted: CodeParams = body::read_json(request, body, BODY_BYTES_MAX).await?;
    let admission = request.admission;
    let purpose = match wanted.purpose.as_str() {
        "open" => CodePurpose::Open,
        "pair" => CodePurpose::Pair,
        _ => return Err(HttpResponse::new(400, "purpose must be open or pair\n")),
    };
    let scopes: Option<Vec<DeviceScope>> =
        wanted.scopes.iter().map(|it| DeviceScope::parse(it)).collect();
    let scopes = scopes.filter(|scopes| scopes.contains(&DeviceScope::Use));
    let Some(scopes) = scopes else {
        let text = "scopes must be a list with use, and perhaps inspect\n";
        return Err(HttpResponse::new(400, text));
    };
    if let Some(at) = &wanted.at
        && !gate::answers_to(at, admission)
    {
        let text = "this host does not answer to that name; see allowed_hosts\n";
        return Err(HttpResponse::new(422, text));
    }
    let grant = CodeGrant { name: wanted.name, scopes };
    let code =
        admission.devices.issue_code(purpose, grant).map_err(|error| refuse_pairing(&error))?;
    let seconds = purpose.lifetime().as_secs();
    Ok(HttpResponse::json(200, &json!({"code": code, "expiresInSeconds": seconds})))
}

/// Signs a device out.
pub(super) async fn revoke(
    request: &ApiRequest<'_>,
    id: &str,
) -> Result<HttpResponse, HttpResponse> {
    let id = DeviceId::from(id);
    let devices = Arc::clone(&request.admission.devices);
    let revoked = id.clone();
    if let Some(page) = &request.admission.page {
        page.sign_ins.forget(id.as_str());
    }
    match on_disk(move || devices.revoke(&revoked)).await? {
        Revocation::Done => {
            tracing::info!(device = id.as_str(), "a device was signed out");
            Ok(HttpResponse::new(204, "").keep_open())
        }
        Revocation::Unknown => Err(HttpResponse::new(404, "there is no such device\n")),
        Revocation::Unsaved(error) => {
            tracing::error!(%error, "a device was signed out, but that could not be written to disk; it is tried again");
            let text = format!(
                "the device is signed out, but that is not on the disk yet: {error}. Free the disk: the host tries again every minute\n"
            );
            Err(HttpResponse::text(500, text))
        }
    }
}

/// All devices.
pub(super) fn list(request: &ApiRequest<'_>, access: &Access) -> HttpResponse {
    let devices: Vec<Value> =
        request.admission.devices.list().iter().map(|it| to_json(it, access)).collect();
    HttpResponse::json(200, &json!({"devices": devices})).keep_open()
}

/// Who asks.
pub(super) fn describe_caller(request: &ApiRequest<'_>, access: &Access) -> HttpResponse {
    let all = [DeviceScope::Use, DeviceScope::Inspect];
    let scopes: Vec<&str> =
        all.into_iter().filter(|scope| access.may(*scope)).map(DeviceScope::name).collect();
    let device = match access {
        Access::Owner | Access::Account(_) => None,
        Access::Device(device) => request.admission.devices.find(&device.id),
    };
    let device = device.map(|device| to_json(&device, access));
    let role = access.role().name();
    HttpResponse::json(
        200,
        &json!({"device": device, "scopes": scopes, "role": role, "version": crate::server::VERSION}),
    )
    .keep_open()
}

fn to_json(device: &Device, access: &Access) -> Value {
    let is_current = match access {
        Access::Owner | Access::Account(_) => false,
        Access::Device(caller) => caller.id == device.id,
    };
    let scopes: Vec<&str> = device.scopes.iter().map(|scope| scope.name()).collect();
    json!({
        "id": device.id.as_str(),
        "name": device.name,
        "scopes": scopes,
        "createdAt": device.created.to_rfc3339(),
        "lastUsedAt": device.last_used.to_rfc3339(),
        "address": device.address,
        "connections": device.connections,
        "current": is_current,
    })
}

/// The store writes files, and nobody else waits for that.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HttpResponse> {
    task::spawn_blocking(work)
        .await
        .map_err(|_| HttpResponse::new(500, "the host could not finish this; see its log\n"))
}
