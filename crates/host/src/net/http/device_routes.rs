//! Devices over HTTP: pair one by a code, list them, sign one out, and who is asking (ADR 0080).
//!
//! Promises: only the token of the data directory makes codes; a code is tried at most ten times a minute in all; a device's
//! token is in one answer, the one that pairs it. Tokens count in the `Authorization` header alone. Nothing is stored by anyone
//! on the way.
//! Must not know: how devices are stored, how codes are shown.

use std::sync::Arc;

use hyper::Method;
use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::HttpResponse;
use super::gate::{self, Headers};
use super::json_body;
use super::token;
use super::visitor::Visitor;
use crate::devices::{
    CodeGrant, CodePurpose, Device, DeviceId, Devices, PairError, Revocation, Scope,
};
use crate::net::access::Access;

/// Longer than any request about a device.
const BODY_BYTES_MAX: usize = 4_096;
const DEVICES: &str = "/api/devices/";

/// Whether an address is one of these.
pub(super) fn are_at(path: &str) -> bool {
    matches!(
        path,
        "/api/pair" | "/api/pair/code" | "/api/devices" | "/api/me"
    ) || path.starts_with(DEVICES)
}

pub(super) async fn answer(
    parts: &Parts,
    headers: &Headers<'_>,
    body: Incoming,
    visitor: &Visitor,
) -> Result<HttpResponse, HttpResponse> {
    let (method, path) = (&parts.method, parts.uri.path());
    if path == "/api/pair" {
        // Without a token: the code is the secret.
        require(method, &Method::POST, "POST")?;
        return pair(
            json_body::read(headers, body, visitor, BODY_BYTES_MAX).await?,
            visitor,
        )
        .await;
    }
    let access = token::check_header(headers, parts.uri.query().unwrap_or(""), visitor)?;
    visitor.admit()?;
    let answered = match (path, path.strip_prefix(DEVICES)) {
        ("/api/pair/code", _) => {
            require(method, &Method::POST, "POST")?;
            let request = json_body::read(headers, body, visitor, BODY_BYTES_MAX).await?;
            issue_code(&access, request, visitor)
        }
        (_, Some(id)) => {
            require(method, &Method::DELETE, "DELETE")?;
            revoke(DeviceId::from(id), visitor).await
        }
        ("/api/devices", _) => {
            require(method, &Method::GET, "GET")?;
            let devices = visitor.admission.devices.list();
            let devices: Vec<Value> = devices.iter().map(|it| to_json(it, &access)).collect();
            Ok(HttpResponse::json(200, &json!({"devices": devices})))
        }
        _ => {
            require(method, &Method::GET, "GET")?;
            Ok(describe_caller(&access, &visitor.admission.devices))
        }
    };
    answered.map(HttpResponse::staying_open)
}

fn require(method: &Method, allowed: &Method, name: &'static str) -> Result<(), HttpResponse> {
    if method == allowed {
        return Ok(());
    }
    let refusal = HttpResponse::new(405, "another method is served here; see Allow\n");
    Err(refusal.with(ALLOW, HeaderValue::from_static(name)))
}

#[derive(Deserialize)]
struct PairRequest {
    code: String,
    /// What the device calls itself.
    name: Option<String>,
}

async fn pair(request: PairRequest, visitor: &Visitor) -> Result<HttpResponse, HttpResponse> {
    let devices = Arc::clone(&visitor.admission.devices);
    let address = visitor.address.ip();
    let paired =
        on_disk(move || devices.pair(&request.code, request.name.as_deref(), Some(address)));
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
        PairError::WrongCode => 403,
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

fn issue_code(
    access: &Access,
    request: CodeParams,
    visitor: &Visitor,
) -> Result<HttpResponse, HttpResponse> {
    match access {
        Access::Owner => {}
        Access::Device(_) => {
            let text = "a device pairs no other; run `greenroom pair` on the machine of the host\n";
            return Err(HttpResponse::new(403, text));
        }
    }
    let purpose = match request.purpose.as_str() {
        "open" => CodePurpose::Open,
        "pair" => CodePurpose::Pair,
        _ => return Err(HttpResponse::new(400, "purpose must be open or pair\n")),
    };
    let scopes: Option<Vec<Scope>> = request.scopes.iter().map(|it| Scope::parse(it)).collect();
    let scopes = scopes.filter(|scopes| scopes.contains(&Scope::Use));
    let Some(scopes) = scopes else {
        let text = "scopes must be a list with use, and perhaps inspect\n";
        return Err(HttpResponse::new(400, text));
    };
    if let Some(at) = &request.at
        && !gate::answers_to(at, &visitor.admission)
    {
        let text = "this host does not answer to that name; see allowed_hosts\n";
        return Err(HttpResponse::new(422, text));
    }
    let grant = CodeGrant {
        name: request.name,
        scopes,
    };
    let code = visitor.admission.devices.issue_code(purpose, grant);
    let code = code.map_err(|error| refuse_pairing(&error))?;
    let seconds = purpose.lifetime().as_secs();
    Ok(HttpResponse::json(
        200,
        &json!({"code": code, "expiresInSeconds": seconds}),
    ))
}

async fn revoke(id: DeviceId, visitor: &Visitor) -> Result<HttpResponse, HttpResponse> {
    let devices = Arc::clone(&visitor.admission.devices);
    let revoked = id.clone();
    match on_disk(move || devices.revoke(&revoked)).await? {
        Revocation::Done => {
            tracing::info!(device = id.as_str(), "a device was signed out");
            Ok(HttpResponse::new(204, ""))
        }
        Revocation::Unknown => Err(HttpResponse::new(404, "there is no such device\n")),
        Revocation::Unsaved(error) => {
            tracing::error!(%error, "that a device was signed out is not on the disk");
            let text = format!(
                "the device is signed out until the host starts again: {error}. Free the disk and sign it out again\n"
            );
            Err(HttpResponse::text(500, text))
        }
    }
}

fn describe_caller(access: &Access, devices: &Devices) -> HttpResponse {
    let all = [Scope::Use, Scope::Inspect];
    let scopes: Vec<&str> = all
        .into_iter()
        .filter(|scope| access.may(*scope))
        .map(Scope::name)
        .collect();
    let device = match access {
        Access::Owner => None,
        Access::Device(device) => devices.find(&device.id),
    };
    let device = device.map(|device| to_json(&device, access));
    HttpResponse::json(
        200,
        &json!({"device": device, "scopes": scopes, "version": crate::server::VERSION}),
    )
}

fn to_json(device: &Device, access: &Access) -> Value {
    let is_current = match access {
        Access::Owner => false,
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
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| HttpResponse::new(500, "the host could not finish this; see its log\n"))
}
