//! `GET /api/agents/log?id=..`: what the process of an agent last printed, for whoever may see prompts.
//!
//! Promises: nothing is answered without the scope `inspect`: agents print whole requests (AG-18).
//! Must not know: processes.

use serde_json::json;

use super::super::answer::HttpResponse;
use super::super::query::one_value;
use super::{ApiRequest, require, services};
use crate::devices::DeviceScope;
use crate::net::access::Access;

pub(super) fn answer(
    request: &ApiRequest<'_>,
    access: &Access,
) -> Result<HttpResponse, HttpResponse> {
    require(access, DeviceScope::Inspect)?;
    let id = one_value(request.head.query, "id");
    let id = id.ok_or_else(|| HttpResponse::new(400, "which agent? /api/agents/log?id=ID\n"))?;
    match services(request)?.agent_log(&id) {
        Some(log) => Ok(HttpResponse::json(200, &json!({"log": log})).keep_open()),
        None => Err(HttpResponse::new(
            404,
            "this host offers no agent of this id that has a process; `greenroom agents` lists them\n",
        )),
    }
}
