//! The words of servers that refuse something, in lower case: how each complaint is recognised.

use std::collections::BTreeSet;

use super::{MediaKind, RefusalCause};

/// What is wrong with the asker, or with the moment, and not with what is asked.
pub(super) const FOREIGN: &[&str] = &[
    "api key",
    "api_key",
    "authentication",
    "unauthorized",
    "permission denied",
    "insufficient_quota",
    "insufficient_balance",
    "billing",
    "rate limit",
    "rate_limit",
    "too many requests",
    "overloaded",
    "resource_exhausted",
    "timed out",
];

/// What else is missing where something is not found.
pub(super) const MISSING: &[&str] = &["not found", "does not exist", "no such"];

const SIGNATURES: &[&str] = &[
    "signature",
    "thinking block",
    "`thinking`",
    "redacted_thinking",
    "encrypted_content",
    "encrypted content",
    "reasoning item",
    "type 'reasoning'",
    "reasoning_content",
    "reasoning_details",
    "extra_content",
];

/// What servers call thoughts that they want back, and how they say that some are not there.
const REASONING: &[&str] = &["reasoning_content", "thought_signature", "thoughtsignature"];
const REASONING_MISSING: &[&str] =
    &["missing", "passed back", "is required", "field required", "must be provided"];

/// What servers call it that thoughts are shown.
const SHOWN_THOUGHTS: &[&str] = &[
    "reasoning.summary",
    "reasoning summar",
    "include_thoughts",
    "includethoughts",
    "thinking is not enabled",
    "thinkingconfig",
    "thinking_config",
];

const LISTS: &[&str] = &[
    "expected a string",
    "expected string",
    "expects a string",
    "must be a string",
    "must be string",
    "be a valid string",
    "of type string",
    "invalid type: sequence",
    "unmarshal array",
    "not a string",
    "only string",
    "got array",
    "but is array",
];

/// All kinds at once.
const MULTIMODAL: &[&str] = &["multimodal", "multi-modal", "multi modal", "mmproj"];

/// Words about one body, not about its kind.
const BODY: &[&str] = &[
    "exceed",
    "too large",
    "too big",
    "too long",
    "too many",
    "maximum",
    "larger than",
    "pages",
    "dimension",
    "pixels",
    "could not process",
    "unable to process",
    "failed to process",
    "failed to load",
    "cannot identify",
    "not valid",
    "invalid image",
    "base64",
    "corrupt",
    "damaged",
    "decode",
    "password",
    "encrypted",
    "mime",
    "media_type",
    "media type",
    "unsupported image",
    "image format",
    // What one body shows is not allowed; others may be.
    "safety system",
    "content filter",
    "content_filter",
    "content policy",
    "content management policy",
    "moderation",
];

/// What comes after one of these is what the server takes.
const LISTED_AFTER: &[&str] = &[
    "supported values are",
    "supported types",
    "valid values",
    ", expected",
    "expected one of",
    "must be one of",
    "is either",
    "input should be",
    "only supports",
];

/// The whole is longer than the model's context window.
const TOO_LONG: &[&str] = &[
    "context length",
    "context_length",
    "context window",
    "context limit",
    "context size",
    "exceed_context",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input too long",
    "input token count",
    "maximum number of tokens",
    "too many tokens",
    "string_above_max_length",
    "reduce the length",
    "prompt length",
    "prompt token count",
    "model token limit",
    "token limit exceeded",
    "too many input tokens",
    "range of input length",
    "exceeds max length",
    "`inputs` tokens",
    "`inputs` must have less",
];

pub(super) fn read_words(words: &str) -> RefusalCause {
    if names_any(words, REASONING) && names_any(words, REASONING_MISSING) {
        return RefusalCause::ReasoningMissing;
    }
    if names_any(words, SHOWN_THOUGHTS) {
        return RefusalCause::ShownThoughts;
    }
    if names_any(words, TOO_LONG) {
        return RefusalCause::TooLong;
    }
    if names_any(words, SIGNATURES) {
        return RefusalCause::Signatures;
    }
    if names_any(words, LISTS) {
        return RefusalCause::Lists;
    }
    let listed = LISTED_AFTER.iter().filter_map(|mark| words.find(mark));
    let (complaint, listed) = words.split_at(listed.min().unwrap_or(words.len()));
    let none_is_allowed = complaint.contains("at most 0 ");
    let named = kinds_in(complaint);
    if names_any(complaint, BODY) && !none_is_allowed {
        return RefusalCause::Body(named);
    }
    if !named.is_empty() && !names_any(complaint, MULTIMODAL) {
        return RefusalCause::Kinds(named);
    }
    if names_any(complaint, MULTIMODAL) {
        return RefusalCause::Kinds(if named.is_empty() {
            BTreeSet::from(MediaKind::ALL)
        } else {
            named
        });
    }
    let taken = kinds_in(listed);
    if taken.is_empty() {
        RefusalCause::Unknown
    } else {
        let all = MediaKind::ALL.into_iter();
        RefusalCause::Kinds(all.filter(|kind| !taken.contains(kind)).collect())
    }
}

pub(super) fn kinds_in(words: &str) -> BTreeSet<MediaKind> {
    MediaKind::ALL.into_iter().filter(|kind| names_any(words, kind.words())).collect()
}

pub(super) fn names_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// A text without what stands in quotes in it. An apostrophe begins no quote.
pub(super) fn without_quotes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\'', '"', '`']) {
        let (before, quoted) = rest.split_at(at);
        plain.push_str(before);
        let is_apostrophe = before.ends_with(char::is_alphanumeric);
        let end = quoted.get(1..).and_then(|inner| inner.find(&quoted[..1]));
        rest = match end.filter(|_| !is_apostrophe) {
            Some(end) => &quoted[end + 2..],
            None => {
                plain.push_str(&quoted[..1]);
                &quoted[1..]
            }
        };
    }
    plain.push_str(rest);
    plain
}
