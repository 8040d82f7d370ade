//! `GET /api/prompt?chat=..[&call=..]`: what models were sent, for devices that may see it.
//!
//! Promises: nothing is answered without the scope `inspect` (G-37).
//! Must not know: what is stored.

use std::sync::Arc;

use super::super::answer::HttpResponse;
use super::super::query::one_value;
use super::{ApiRequest, require, services};
use crate::devices::DeviceScope;
use crate::net::access::Access;
use crate::page::PromptError;
use crate::task;

pub(super) async fn answer(
    request: &ApiRequest<'_>,
    access: &Access,
) -> Result<HttpResponse, HttpResponse> {
    require(access, DeviceScope::Inspect)?;
    let Some(prompts) = services(request)?.prompts.clone() else {
        let text = "this host keeps its journal in memory, and nothing of what was sent\n";
        return Err(HttpResponse::new(404, text));
    };
    let chat = one_value(request.head.query, "chat");
    let chat = chat.ok_or_else(|| HttpResponse::new(400, "which chat? /api/prompt?chat=URI\n"))?;
    let call = match super::super::query::values_of(request.head.query, "call").next() {
        None => None,
        Some(_) => {
            let number = one_value(request.head.query, "call").and_then(|text| text.parse().ok());
            let wrong = || HttpResponse::new(400, "`call` is the number of a call\n");
            Some(number.ok_or_else(wrong)?)
        }
    };
    let Ok(reading) = Arc::clone(&services(request)?.prompt_reads).acquire_owned().await else {
        return Err(HttpResponse::new(503, "the host is going down\n"));
    };
    // One at a time: what was sent may be large, and whoever asked may be gone before it is read.
    let read = move || {
        let _held = reading;
        prompts.read(&chat, call)
    };
    let read = task::spawn_blocking(read).await;
    let broken = |reason: String| {
        tracing::error!(reason, "a request to a model cannot be shown");
        HttpResponse::new(500, "what is stored cannot be read; the host's log says why\n")
    };
    match read {
        Ok(Ok(shown)) => Ok(HttpResponse::json(200, &shown).keep_open()),
        Ok(Err(error @ (PromptError::UnknownChat | PromptError::UnknownCall))) => {
            Err(HttpResponse::text(404, format!("{error}\n")))
        }
        Ok(Err(PromptError::Journal(error))) => Err(broken(error.to_string())),
        Err(died) => Err(broken(died.to_string())),
    }
}
