//! `GET /spaces`: the spaces that the token's principal is a member of.
//!
//! Promises: nobody learns of a space that they are no member of.
//! Must not know: how accounts are stored.

use serde_json::{Value, json};

use super::answer::HttpResponse;
use super::http_socket::HttpSocket;
use super::token;
use crate::net::SpaceHandle;
use crate::net::access::Access;

pub(super) async fn answer(
    handle: &SpaceHandle,
    access: &Access,
    http_socket: &HttpSocket,
) -> Result<HttpResponse, HttpResponse> {
    let (Access::Account(granted), Some(accounts)) = (access, http_socket.handles.accounts())
    else {
        // The token of a data directory is for its space alone, and nobody's in particular.
        let space = json!({"name": &*handle.name, "role": access.role().name(), "current": true});
        return Ok(list(&Value::Null, &json!([space])));
    };
    let spaces = accounts.spaces_of(granted.principal).await;
    let spaces = spaces.map_err(|error| {
        tracing::warn!(%error, "spaces cannot be listed");
        token::refuse_unread_accounts()
    })?;
    let spaces = spaces.iter().map(|member| {
        json!({
            "name": member.space,
            "role": member.role.name(),
            "current": member.space == granted.space_name,
        })
    });
    Ok(list(&json!(granted.principal_name), &spaces.collect()))
}

fn list(principal: &Value, spaces: &Value) -> HttpResponse {
    HttpResponse::json(200, &json!({"principal": principal, "spaces": spaces})).keep_open()
}
