//! A small client that keeps what identifies a machine away from the model: it joins a session and replaces every path in
//! `environment_context`, on every render.
//!
//! ```sh
//! cargo run -p client --example redact_environment -- ws://127.0.0.1:4790/ TOKEN SESSION
//! ```

use std::sync::Arc;

use client::transform::{self, Rewrite, TransformHandler};
use client::{HostTarget, Live, Options, Update};
use wire::ChannelUri;
use wire::ext::system_message_transform::{
    SystemMessageTransformParams, SystemMessageTransformResult,
};

struct Redact;

impl TransformHandler for Redact {
    fn sections(&self) -> Vec<String> {
        vec!["environment_context".to_owned()]
    }

    fn transform(&self, mut params: SystemMessageTransformParams) -> Rewrite {
        for section in params.sections.values_mut() {
            section.content = redact(&section.content);
        }
        let sections = params.sections;
        Box::pin(async { Ok(SystemMessageTransformResult { sections }) })
    }
}

/// Hides every word that is an absolute path.
fn redact(text: &str) -> String {
    let hidden =
        |word: &str| if word.starts_with('/') { "[hidden]".to_owned() } else { word.to_owned() };
    let line = |line: &str| line.split(' ').map(hidden).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(token), Some(session)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: redact_environment URL TOKEN SESSION".into());
    };
    let session = ChannelUri::parse(&session)?;
    let token = Some(token).filter(|token| !token.is_empty());
    let client_id = format!("redact-environment-{}", std::process::id());
    let options =
        Options { handler: Some(transform::handler(Arc::new(Redact))), ..Options::default() };
    let target = HostTarget { url, token };
    let (live, mut updates) = Live::connect(target, &client_id, options).await?;
    live.subscribe(&session).await?;
    transform::activate(&live, &session, "Redact environment", &Redact)?;
    println!("Paths are hidden from the model while this runs.");
    while let Some(update) = updates.next().await {
        if let Update::Refused { reason, .. } = update {
            return Err(reason.into());
        }
    }
    Ok(())
}
