//! Composing a message of 50 parts and lowering it for two targets, against serialising the same parts as JSON.
//!
//! All of it is computing: files and bodies lie in memory. The floor is what any host pays to write those parts down
//! once; composing and lowering each look at every byte of them (base64 is decoded and checked, types are sniffed,
//! fences are measure), so a few times that is what there is to reach.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wire::Object;

use super::{median_of, values};
use crate::harness::Harness;
use crate::host_api::compositor::{
    AttachmentBudget, Capabilities, Catalogue, Composed, Environment, FileRead, ImageLimits, Part,
    Sources, SubmittedMessage, Target, WhyUnavailable, compose, lower,
};
use crate::measure::{now_ns, spread};
use crate::table::Figure;

const PARTS: usize = 50;
const FILE_BYTES: usize = 4 * 1_024;
const PICTURE_BYTES: usize = 32 * 1_024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Compose,
    Anthropic,
    OpenaiChat,
    Json,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    use Subject::{Anthropic, Compose, Json, OpenaiChat};
    let results = harness.shuffled(&[Compose, Anthropic, OpenaiChat, Json], measure)?;
    let cost = |cost: &f64| *cost;
    let of = |subject| median_of(&results, subject, cost);
    let both = of(Compose) + of(OpenaiChat);
    let rounds = |subject| spread(&values(&results, subject, cost));
    let figure = Figure::reported(
        "a message of 50 parts composed and lowered, against writing it as JSON",
        "us",
        both,
        of(Json),
    );
    Ok(vec![figure.note(format!(
        "rounds: compose {}, lower for openai_chat {}, for anthropic {}, JSON {}",
        rounds(Compose),
        rounds(OpenaiChat),
        rounds(Anthropic),
        rounds(Json),
    ))])
}

/// Microseconds for one message.
fn measure(harness: &mut Harness, subject: Subject) -> Result<f64> {
    let times: u32 = if harness.quick { 100 } else { 500 };
    let message = message();
    let composed = composed(message.clone())?;
    if composed.parts.len() != PARTS {
        bail!("{} parts instead of {PARTS}", composed.parts.len());
    }
    let mut used_ns = 0;
    for _ in 0..times {
        let input = message.clone();
        let began = now_ns();
        match subject {
            Subject::Compose => {
                std::hint::black_box(self::composed(input)?);
            }
            Subject::Anthropic => lowered(&composed, Target::Anthropic),
            Subject::OpenaiChat => lowered(&composed, Target::OpenaiChat),
            Subject::Json => {
                let parts = composed.parts.iter().map(Part::object);
                std::hint::black_box(serde_json::to_vec(&parts.collect::<Vec<_>>())?);
            }
        }
        used_ns += now_ns() - began;
    }
    Ok(used_ns as f64 / 1_000.0 / f64::from(times))
}

fn composed(message: Object) -> Result<Composed> {
    let around = Environment {
        catalogue: &Catalogue::built_in(),
        skills: &BTreeSet::from(["kit".to_owned()]),
        contexts: &BTreeMap::new(),
        entity_kinds: &BTreeSet::new(),
        roots: &["/ws".to_owned()],
        inline: AttachmentBudget::default(),
        now_ms: 1,
    };
    compose(SubmittedMessage::Ahp(message), &around).context("a message with content is accepted")
}

fn lowered(composed: &Composed, target: Target) {
    let capabilities = Capabilities::built_in(target);
    let none = BTreeMap::new();
    let lowered = lower(&composed.parts, &none, target, &capabilities, &mut Memory);
    std::hint::black_box(lowered);
}

/// 17 pieces of text with 16 mentions between them, and 17 things attached.
fn message() -> Object {
    let mentions = (0..16).map(|n| match n % 2 {
        0 => format!("in @file:src/{n}.rs:10-40 "),
        _ => "use @skill:kit ".to_owned(),
    });
    let text: String = mentions.chain(["and tell".to_owned()]).collect();
    let attachments: Vec<Value> = (0..17).map(attachment).collect();
    let message = json!({"text": text, "origin": {"kind": "user"}, "attachments": attachments});
    match message {
        Value::Object(message) => message,
        _ => unreachable!("it was written as an object"),
    }
}

fn attachment(n: usize) -> Value {
    let embedded = |label: String, mime: &str, body: &[u8]| {
        let data = STANDARD.encode(body);
        json!({"type": "embeddedResource", "label": label, "contentType": mime, "data": data})
    };
    match n % 4 {
        0 => {
            let mut picture = b"\x89PNG\r\n\x1a\n".to_vec();
            picture.resize(PICTURE_BYTES, 0x5a);
            embedded(format!("{n}.png"), "image/png", &picture)
        }
        1 => embedded(format!("{n}.md"), "text/markdown", file().as_bytes()),
        2 => json!({"type": "resource", "label": "a", "uri": format!("file:///ws/src/{n}.rs")}),
        _ => json!({"type": "simple", "label": "a", "modelRepresentation": "what it is"}),
    }
}

fn file() -> String {
    let line = "    let `value` = of(some, call); // and a comment\n";
    line.repeat(FILE_BYTES / line.len() + 1)
}

struct Memory;

impl Sources for Memory {
    fn file(&mut self, _: &str, limit_bytes: u64) -> FileRead {
        let bytes = file().into_bytes();
        if bytes.len() as u64 <= limit_bytes {
            FileRead::Bytes { bytes }
        } else {
            FileRead::Unavailable(WhyUnavailable::NotFound)
        }
    }

    fn body(&mut self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn entity(&mut self, _: &str, _: &Object) -> bool {
        false
    }

    fn find_staged_copy(&mut self, _: &Part) -> Option<String> {
        None
    }

    fn fit_image(&mut self, _: &str, _: &[u8], _: &ImageLimits) -> Option<(String, Vec<u8>)> {
        None
    }

    fn absolute(&self, path: &str) -> String {
        format!("/ws/{path}")
    }
}
