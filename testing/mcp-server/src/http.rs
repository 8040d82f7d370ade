//! Streamable HTTP on a free port, with a token if one is asked for.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, LOCATION, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::oauth::Issuer;
use crate::{Switches, TestServer};

/// Serves until the process is killed. The URL is in the file before anybody is answered.
pub(crate) async fn serve(switches: Switches, url_file: &Path) -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let origin = format!("http://{}", listener.local_addr()?);
    // Whoever waits for the file must not read half of it.
    let unfinished = url_file.with_extension("unfinished");
    std::fs::write(&unfinished, format!("{origin}/mcp"))?;
    std::fs::rename(&unfinished, url_file)?;
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(!switches.json)
        .with_json_response(switches.json);
    let token = switches.token.clone();
    let lifetime = Duration::from_secs(switches.token_seconds);
    let issuer = Issuer::new(lifetime, switches.renewals);
    let issuer = switches.oauth.then_some(issuer);
    let service = StreamableHttpService::new(
        move || Ok(TestServer::new(switches.clone())),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    loop {
        let (stream, _) = listener.accept().await?;
        let guard = Guard { token: token.clone(), issuer: issuer.clone(), origin: origin.clone() };
        let service = service.clone();
        let answer = service_fn(move |request: Request<Incoming>| {
            let (service, guard) = (service.clone(), guard.clone());
            async move {
                let answer = match guard.answer(request).await {
                    Ok(answer) => answer,
                    Err(request) => service.handle(request).await,
                };
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        tokio::spawn(async move {
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
            if let Err(error) = served {
                eprintln!("a connection ended: {error}");
            }
        });
    }
}

/// What is answered before the server is asked.
#[derive(Clone)]
struct Guard {
    token: Option<String>,
    issuer: Option<Issuer>,
    origin: String,
}

impl Guard {
    /// The answer, or the request if it may go on.
    async fn answer(&self, request: Request<Incoming>) -> Result<Answer, Request<Incoming>> {
        let path = request.uri().path().to_owned();
        if path == METADATA_PATH {
            let issuer = match &self.issuer {
                Some(_) => self.origin.clone(),
                None => "https://auth.example".to_owned(),
            };
            let metadata = serde_json::json!({
                "resource": format!("{}/mcp", self.origin),
                "authorization_servers": [issuer],
                "scopes_supported": ["read"],
            });
            return Ok(respond(StatusCode::OK, metadata.to_string()));
        }
        if let Some(issuer) = &self.issuer {
            let bad = || respond(StatusCode::BAD_REQUEST, String::new());
            match path.as_str() {
                "/.well-known/oauth-authorization-server" => {
                    let metadata = Issuer::metadata(&self.origin);
                    return Ok(respond(StatusCode::OK, metadata.to_string()));
                }
                "/authorize" => {
                    let query = request.uri().query().unwrap_or_default();
                    let sent_to = issuer.authorize(query, &format!("{}/mcp", self.origin));
                    return Ok(sent_to.map_or_else(bad, |to| redirect(&to)));
                }
                "/token" | "/register" => {
                    let body = request.into_body().collect().await;
                    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
                    let body = String::from_utf8_lossy(&body);
                    let given = match path.as_str() {
                        "/token" => issuer.redeem(&body),
                        _ => issuer.register(&body),
                    };
                    let give =
                        |given: serde_json::Value| respond(StatusCode::OK, given.to_string());
                    return Ok(given.map_or_else(bad, give));
                }
                "/renewals" => return Ok(respond(StatusCode::OK, issuer.renewals().to_string())),
                "/revoke" => {
                    issuer.revoke_all();
                    return Ok(respond(StatusCode::OK, String::new()));
                }
                _ => {}
            }
            if !bearer(&request).is_some_and(|token| issuer.is_token(token)) {
                return Ok(ask_for_token(&self.origin));
            }
        }
        match &self.token {
            Some(token) if bearer(&request) != Some(token) => Ok(ask_for_token(&self.origin)),
            _ => Err(request),
        }
    }
}

fn redirect(to: &str) -> Answer {
    let mut answer = respond(StatusCode::FOUND, String::new());
    if let Ok(to) = to.parse() {
        answer.headers_mut().insert(LOCATION, to);
    }
    answer
}

const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

type Answer =
    Response<http_body_util::combinators::BoxBody<hyper::body::Bytes, std::convert::Infallible>>;

fn bearer(request: &Request<Incoming>) -> Option<&str> {
    let header = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    header.strip_prefix("Bearer ")
}

fn ask_for_token(origin: &str) -> Answer {
    let mut answer = respond(StatusCode::UNAUTHORIZED, String::new());
    let challenge = format!("Bearer resource_metadata=\"{origin}{METADATA_PATH}\", scope=\"read\"");
    if let Ok(challenge) = challenge.parse() {
        answer.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    answer
}

fn respond(status: StatusCode, body: String) -> Answer {
    let mut answer = Response::new(Full::new(body.into()).boxed());
    *answer.status_mut() = status;
    answer
}
