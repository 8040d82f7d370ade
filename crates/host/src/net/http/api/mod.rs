//! Routes below `/api`: JSON in and out, the token in a header alone.
//!
//! Promises: an address never holds a token here, so none gets into a browser's history; a body is bounded in size and in time, and
//! has its share of the memory for what comes in.
//! Must not know: how answers are made.

mod agent_log;
mod body;
mod devices;
mod markup;
mod prompt;
mod put_content;
mod sign_in;

use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue};
use kernel::Role;

use super::answer::HttpResponse;
use super::http_socket::refuse_silent;
use super::request_head::HttpRequestHead;
use super::token;
use crate::devices::DeviceScope;
use crate::net::Admission;
use crate::net::access::Access;
use crate::page::PageServices;

/// Below it each device has its address.
const DEVICES: &str = "/api/devices/";

/// A request below `/api`, without its body.
#[derive(Clone, Copy)]
pub(super) struct ApiRequest<'a> {
    pub(super) head: &'a HttpRequestHead<'a>,
    /// Of the space that it is for, as far as that is known.
    pub(super) admission: &'a Admission,
}

/// Answers a request below `/api`.
pub(super) async fn answer(
    request: &ApiRequest<'_>,
    body: Incoming,
) -> Result<HttpResponse, HttpResponse> {
    match (request.head.method.as_str(), request.head.path) {
        ("POST", "/api/pair") => return devices::pair(request, body).await,
        (_, "/api/pair") => return Err(refuse_method("POST")),
        _ => {}
    }
    let http_socket = request.head.http_socket;
    let (handle, access) = token::identify_by_header(request.head).await?;
    refuse_silent(&handle)?;
    http_socket.admit()?;
    let request = &ApiRequest { admission: &handle.admission, ..*request };
    match (request.head.method.as_str(), request.head.path) {
        ("POST", "/api/markup") => markup::answer(request, &access, body).await,
        ("PUT", "/api/content") => put_content::answer(request, &access, body).await,
        ("POST", "/api/content/addresses") => {
            put_content::answer_addresses(request, &access, body).await
        }
        ("GET", "/api/prompt") => prompt::answer(request, &access).await,
        ("GET", "/api/agents/log") => agent_log::answer(request, &access),
        ("POST", "/api/sign-in") => sign_in::begin(request, &access, body).await,
        ("POST", "/api/sign-in/finish") => sign_in::finish(request, &access, body).await,
        (_, "/api/markup" | "/api/content/addresses" | "/api/sign-in" | "/api/sign-in/finish") => {
            Err(refuse_method("POST"))
        }
        (_, "/api/content") => Err(refuse_method("PUT")),
        (_, "/api/prompt" | "/api/agents/log") => Err(refuse_method("GET")),
        (_, path) if is_about_devices(path) && access.role() < Role::Owner => {
            Err(HttpResponse::new(403, "devices are for owners of the space\n"))
        }
        ("POST", "/api/pair/code") => devices::issue_code(request, &access, body).await,
        (_, "/api/pair/code") => Err(refuse_method("POST")),
        ("GET", "/api/devices") => Ok(devices::list(request, &access)),
        ("GET", "/api/me") => Ok(devices::describe_caller(request, &access)),
        (_, "/api/devices" | "/api/me") => Err(refuse_method("GET")),
        (method, path) if path.starts_with(DEVICES) => match method {
            "DELETE" => devices::revoke(request, path.trim_start_matches(DEVICES)).await,
            _ => Err(refuse_method("DELETE")),
        },
        _ => Err(HttpResponse::new(404, "there is nothing at this address\n")),
    }
}

fn is_about_devices(path: &str) -> bool {
    path == "/api/pair/code" || path == "/api/devices" || path.starts_with(DEVICES)
}

/// Whoever may only read brings nothing along.
fn require_role(access: &Access, needed: Role) -> Result<(), HttpResponse> {
    let role = access.role();
    if role >= needed {
        Ok(())
    } else {
        Err(HttpResponse::text(
            403,
            format!(
                "this takes the role {}, and your token has the role {}\n",
                needed.name(),
                role.name()
            ),
        ))
    }
}

fn refuse_method(allowed: &'static str) -> HttpResponse {
    let refusal = HttpResponse::new(405, "this address is not asked like that; see Allow\n");
    refusal.with(ALLOW, HeaderValue::from_static(allowed))
}

/// A device may do only what it was paired for.
fn require(access: &Access, scope: DeviceScope) -> Result<(), HttpResponse> {
    if access.may(scope) {
        return Ok(());
    }
    let text = match scope {
        DeviceScope::Use => "this device may not use sessions; pair it again\n",
        DeviceScope::Inspect => {
            "this device may not see prompts; pair it again with `greenroom pair --inspect`\n"
        }
    };
    Err(HttpResponse::new(403, text))
}

fn services<'a>(request: &ApiRequest<'a>) -> Result<&'a PageServices, HttpResponse> {
    request.admission.page.as_deref().ok_or_else(HttpResponse::not_ready)
}
