//! Streamable HTTP on a free port, with a token if one is asked for.

use std::path::Path;
use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

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
    let service = StreamableHttpService::new(
        move || Ok(TestServer::new(switches.clone())),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    loop {
        let (stream, _) = listener.accept().await?;
        let (service, token, origin) = (service.clone(), token.clone(), origin.clone());
        let answer = service_fn(move |request: Request<Incoming>| {
            let (service, token, origin) = (service.clone(), token.clone(), origin.clone());
            async move {
                if request.uri().path() == METADATA_PATH {
                    let metadata = serde_json::json!({
                        "resource": format!("{origin}/mcp"),
                        "authorization_servers": ["https://auth.example"],
                        "scopes_supported": ["read"],
                    });
                    return Ok::<_, std::convert::Infallible>(respond(
                        StatusCode::OK,
                        metadata.to_string(),
                    ));
                }
                if token.is_some_and(|token| !brings(&request, &token)) {
                    return Ok(ask_for_token(&origin));
                }
                Ok(service.handle(request).await)
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

const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

type Answer =
    Response<http_body_util::combinators::BoxBody<hyper::body::Bytes, std::convert::Infallible>>;

fn brings(request: &Request<Incoming>, token: &str) -> bool {
    let header = request.headers().get(AUTHORIZATION);
    header.is_some_and(|header| header.as_bytes() == format!("Bearer {token}").as_bytes())
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
