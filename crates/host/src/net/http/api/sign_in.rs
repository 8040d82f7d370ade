//! `POST /api/sign-in` and `POST /api/sign-in/finish`: the page signs somebody in to an MCP server (ADR 0106).
//!
//! Promises: only whoever may bring tokens begins one; the browser is sent back to the page that asked and to no other; an answer
//! counts for the device that began. The token is in one answer, and nobody on the way stores it.
//! Must not know: how a code becomes a token, what the token is used for.

use hyper::body::Incoming;
use hyper::header::ORIGIN;
use kernel::Role;
use serde::Deserialize;
use serde_json::json;

use super::super::answer::HttpResponse;
use super::super::gate;
use super::{ApiRequest, body, require, require_role, services};
use crate::devices::DeviceScope;
use crate::net::access::Access;
use crate::sign_in::{OAuthClient, PageSignInError, SignInWanted};

/// Longer than what a server may publish of its wish for a token, and than an address of a browser.
const BODY_BYTES_MAX: usize = 64 << 10;
/// Authorisation servers and scopes that are looked at.
const NAMES_MAX: usize = 64;

#[derive(Deserialize)]
struct BeginRequest {
    auth: PublishedAuth,
    /// The address of the page.
    back: String,
}

/// `McpAuthRequirement`, as the host published it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedAuth {
    resource: PublishedResource,
    #[serde(default)]
    required_scopes: Vec<String>,
    oauth_client: Option<PublishedClient>,
}

#[derive(Deserialize)]
struct PublishedResource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublishedClient {
    client_id: String,
    client_secret: Option<String>,
}

impl PublishedAuth {
    /// The host may ask what only it can reach for whoever owns it, and not for accounts: to them its network is a stranger's.
    fn into_wanted(self, access: &Access) -> SignInWanted {
        let client = self
            .oauth_client
            .map(|client| OAuthClient { id: client.client_id, secret: client.client_secret });
        SignInWanted {
            resource: self.resource.resource,
            authorization_servers: self.resource.authorization_servers,
            scopes: self.required_scopes,
            client,
            is_host_here: !matches!(access, Access::Account(_)),
        }
    }
}

/// Begins: the answer has the page to visit.
pub(super) async fn begin(
    request: &ApiRequest<'_>,
    access: &Access,
    body: Incoming,
) -> Result<HttpResponse, HttpResponse> {
    check_may(access)?;
    let given: BeginRequest = body::read_json(request, body, BODY_BYTES_MAX).await?;
    let is_origin = given.back.matches('/').count() == 3 && given.back.ends_with('/');
    if !is_origin || !is_own_page(request, &given.back) {
        let text = "this host does not answer to that name; see allowed_hosts\n";
        return Err(HttpResponse::new(422, text));
    }
    let wanted = given.auth.into_wanted(access);
    if wanted.authorization_servers.len() > NAMES_MAX || wanted.scopes.len() > NAMES_MAX {
        return Err(HttpResponse::new(400, "there are too many servers or scopes\n"));
    }
    let sign_ins = &services(request)?.sign_ins;
    let begun = sign_ins.begin(access.name(), &wanted, &given.back).await;
    let address = begun.map_err(|error| refuse(&error))?;
    let answer = json!({"url": address.url, "host": address.host});
    Ok(HttpResponse::json(200, &answer).keep_open())
}

/// Browsers name the page that asks, and the gate let it in; programs name none, and any address of this host counts.
fn is_own_page(request: &ApiRequest<'_>, back: &str) -> bool {
    match request.head.headers.one(ORIGIN) {
        Ok(Some(origin)) => back.trim_end_matches('/').eq_ignore_ascii_case(origin),
        Ok(None) => gate::answers_to(back, request.admission),
        Err(_) => false,
    }
}

#[derive(Deserialize)]
struct FinishRequest {
    /// What the browser was sent to.
    address: String,
}

/// Ends: the answer has the token, which the page brings by `authenticate` as every client does.
pub(super) async fn finish(
    request: &ApiRequest<'_>,
    access: &Access,
    body: Incoming,
) -> Result<HttpResponse, HttpResponse> {
    check_may(access)?;
    let given: FinishRequest = body::read_json(request, body, BODY_BYTES_MAX).await?;
    let sign_ins = &services(request)?.sign_ins;
    let finished = sign_ins.finish(access.name(), &given.address).await;
    let signed_in = finished.map_err(|error| refuse(&error))?;
    let mut answer = json!({"resource": signed_in.resource, "token": signed_in.grant.token});
    if let Some(seconds) = signed_in.grant.expires_in_s {
        answer["expiresIn"] = json!(seconds);
    }
    Ok(HttpResponse::json(200, &answer).keep_open())
}

/// The same as for `authenticate`.
fn check_may(access: &Access) -> Result<(), HttpResponse> {
    require(access, DeviceScope::Use)?;
    require_role(access, Role::Member)
}

fn refuse(error: &PageSignInError) -> HttpResponse {
    let status = match error {
        PageSignInError::TooMany => 429,
        PageSignInError::NotWaiting => 404,
        PageSignInError::Failed(_) => 502,
    };
    HttpResponse::text(status, format!("{error}\n"))
}
