//! What a server's refusal of a request is about, as far as its words tell.
//!
//! Promises: words that list what a server takes are not read as a complaint about it; a refusal for the key, for money or
//! for too many requests is none of the kind that a smaller request could mend.
//! Must not know: what was asked.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The kinds of bodies that a request may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaKind {
    Image,
    Document,
    Audio,
    Video,
}

impl MediaKind {
    pub const ALL: [Self; 4] = [Self::Image, Self::Document, Self::Audio, Self::Video];

    /// As decisions of the lowering call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Document => "document",
            Self::Audio => "audio",
            Self::Video => "video",
        }
    }

    /// What people call several of them.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Image => "images",
            Self::Document => "PDFs",
            Self::Audio => "audio",
            Self::Video => "video",
        }
    }

    /// Words by which servers name it, in lower case.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Image => &["image", "picture", "vision", "visual", "photo"],
            Self::Document => &[
                "pdf",
                "document",
                "input_file",
                "file_data",
                "'file'",
                "\"file\"",
                "`file`",
                "type: file",
                "type file",
                "file content",
                "file input",
                "file part",
            ],
            Self::Audio => &["audio"],
            Self::Video => &["video"],
        }
    }
}

/// What a refused request should do without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blame {
    /// The words say nothing of it.
    Unknown,
    /// Whatever is of these kinds: the model or its server takes none.
    Kinds(BTreeSet<MediaKind>),
    /// A body of one of these kinds, or of any if none is named: it is too large, damaged or of a format that is not
    /// known. Another one may do.
    Body(BTreeSet<MediaKind>),
    /// Lists where a text is expected.
    Lists,
    /// What the model itself had added to its answers: signatures, reasoning that only the server can read.
    Signatures,
    /// Thoughts that the model's own server wants back and that are not there: another model wrote that part of the conversation, or
    /// it was told in other words.
    ReasoningMissing,
    /// All of it together: it is longer than what the model can take in.
    TooLong,
}

impl Blame {
    /// Whether to send the same again is of no use: the words say why, or something else can be sent.
    pub(super) fn forbids_repeating(&self, reducible: bool) -> bool {
        match self {
            Self::Lists
            | Self::Signatures
            | Self::ReasoningMissing
            | Self::Kinds(_)
            | Self::TooLong => true,
            Self::Unknown | Self::Body(_) => reducible,
        }
    }
}

/// Statuses of a refusal that a smaller request may mend.
pub(super) fn is_refusal(status: u16) -> bool {
    matches!(status, 400 | 404 | 413 | 415 | 422 | 500 | 501)
}

/// What a refusal is about; none if it is about something that no smaller request mends. `words` are in lower case.
pub(super) fn blame_of(status: Option<u16>, words: &str) -> Option<Blame> {
    if status.is_some_and(|status| !is_refusal(status)) || names_any(words, FOREIGN) {
        return None;
    }
    // A pointer to the documentation is no complaint about documents.
    let words = &words.replace("documentation", "");
    let blame = read_words(words);
    let is_missing = status == Some(404) && blame == Blame::Unknown && names_any(words, MISSING);
    if is_missing {
        return None;
    }
    Some(match (status, blame) {
        (Some(413), Blame::Unknown | Blame::Kinds(_)) => Blame::Body(kinds_in(words)),
        (_, blame) => blame,
    })
}

/// What is wrong with the asker, or with the moment, and not with what is asked.
const FOREIGN: &[&str] = &[
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
const MISSING: &[&str] = &["not found", "does not exist", "no such"];

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
const REASONING: &str = "reasoning_content";
const REASONING_MISSING: &[&str] = &[
    "missing",
    "passed back",
    "is required",
    "field required",
    "must be provided",
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

fn read_words(words: &str) -> Blame {
    if words.contains(REASONING) && names_any(words, REASONING_MISSING) {
        return Blame::ReasoningMissing;
    }
    if names_any(words, TOO_LONG) {
        return Blame::TooLong;
    }
    if names_any(words, SIGNATURES) {
        return Blame::Signatures;
    }
    if names_any(words, LISTS) {
        return Blame::Lists;
    }
    let listed = LISTED_AFTER.iter().filter_map(|mark| words.find(mark));
    let (complaint, listed) = words.split_at(listed.min().unwrap_or(words.len()));
    let none_is_allowed = complaint.contains("at most 0 ");
    let named = kinds_in(complaint);
    if names_any(complaint, BODY) && !none_is_allowed {
        return Blame::Body(named);
    }
    if !named.is_empty() && !names_any(complaint, MULTIMODAL) {
        return Blame::Kinds(named);
    }
    if names_any(complaint, MULTIMODAL) {
        return Blame::Kinds(match named.is_empty() {
            true => BTreeSet::from(MediaKind::ALL),
            false => named,
        });
    }
    let taken = kinds_in(listed);
    match taken.is_empty() {
        true => Blame::Unknown,
        false => {
            let all = MediaKind::ALL.into_iter();
            Blame::Kinds(all.filter(|kind| !taken.contains(kind)).collect())
        }
    }
}

fn kinds_in(words: &str) -> BTreeSet<MediaKind> {
    let all = MediaKind::ALL.into_iter();
    all.filter(|kind| names_any(words, kind.words())).collect()
}

fn names_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use MediaKind::{Audio, Document, Image, Video};

    fn kinds<const N: usize>(kinds: [MediaKind; N]) -> Option<Blame> {
        Some(Blame::Kinds(BTreeSet::from(kinds)))
    }

    fn body<const N: usize>(kinds: [MediaKind; N]) -> Option<Blame> {
        Some(Blame::Body(BTreeSet::from(kinds)))
    }

    #[track_caller]
    fn check(status: u16, words: &str, expected: Option<Blame>) {
        let found = blame_of(Some(status), &words.to_lowercase());
        assert_eq!(found, expected, "{status} {words}");
    }

    #[test]
    fn servers_that_do_not_take_a_kind_say_which() {
        for (status, words, kind) in [
            (
                400,
                "Invalid content type. image_url is only supported by certain models.",
                Image,
            ),
            (404, "No endpoints found that support image input", Image),
            (
                500,
                "image input is not supported - hint: if this is unexpected, you may need to provide it",
                Image,
            ),
            (
                400,
                "At most 0 image(s) may be provided in one prompt.",
                Image,
            ),
            (400, "Unknown part type: file", Document),
            (
                400,
                "Invalid Value: 'file'. This model does not support file content types.",
                Document,
            ),
            (
                400,
                "Invalid Value: 'file'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', and 'audio'.",
                Document,
            ),
            (
                422,
                "messages[1]: unknown variant `image_url`, expected `text` at line 1 column 912",
                Image,
            ),
            (
                500,
                "audio input is not supported - hint: see the documentation",
                Audio,
            ),
            (400, "video input is not supported by this model", Video),
            (
                400,
                "Model does not support images. Please use a model that does.",
                Image,
            ),
        ] {
            check(status, words, kinds([kind]));
        }
        let all = kinds([Image, Document, Audio, Video]);
        check(400, "opt-125m is not a multimodal model None", all);
    }

    #[test]
    fn what_a_server_lists_as_taken_is_not_blamed() {
        let words = "Invalid 'content': 'content' objects must have a 'type' field that is either 'text' or 'image_url'.";
        check(400, words, kinds([Document, Audio, Video]));
    }

    #[test]
    fn complaints_about_one_body_blame_no_kind() {
        for (status, words, kind) in [
            (
                400,
                "messages.8.content.0.image.source.base64: image exceeds 5 MB maximum: 17 > 5 bytes",
                Image,
            ),
            (
                400,
                "messages.38.content.0.pdf.source.base64.data: A maximum of 100 PDF pages may be provided.",
                Document,
            ),
            (400, "Could not process PDF", Document),
            (400, "Could not process image", Image),
            (
                400,
                "Unable to process input image. Please retry or report in the forum",
                Image,
            ),
            (400, "Provided image is not valid", Image),
            (400, "invalid image input", Image),
            (
                400,
                "Your input image may contain content that is not allowed by our safety system.",
                Image,
            ),
        ] {
            check(status, words, body([kind]));
        }
        let words = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.";
        check(400, words, body([]));
        check(413, "Request Entity Too Large", body([]));
        check(413, "", body([]));
    }

    #[test]
    fn a_conversation_that_is_too_long_is_recognised() {
        for (status, words) in [
            (400, "prompt is too long: 212312 tokens > 200000 maximum"),
            (
                400,
                "input length and `max_tokens` exceed context limit: 199000 + 32000 > 200000",
            ),
            (
                400,
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9010 tokens. context_length_exceeded",
            ),
            (
                400,
                "The input token count (1048600) exceeds the maximum number of tokens allowed (1048576).",
            ),
            (
                400,
                "the request exceeds the available context size (4096 tokens), try increasing it exceed_context_size_error",
            ),
            (
                500,
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
            ),
            (
                400,
                "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            ),
            (
                400,
                "Invalid request: Your request exceeded model token limit: 262144",
            ),
            (
                400,
                "prompt token count of 197763 exceeds the limit of 128000",
            ),
            (
                422,
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
            ),
            (400, "Range of input length should be [1, 129024]"),
        ] {
            check(status, words, Some(Blame::TooLong));
        }
    }

    #[test]
    fn servers_that_want_strings_say_so() {
        for (status, words) in [
            (
                400,
                "json: cannot unmarshal array into Go struct field Message.messages.content of type string",
            ),
            (
                500,
                "[json.exception.type_error.302] type must be string, but is array",
            ),
            (
                400,
                "messages[5]: invalid type: sequence, expected a string at line 1 column 33928",
            ),
            (422, "Input should be a valid string"),
        ] {
            check(status, words, Some(Blame::Lists));
        }
    }

    #[test]
    fn signatures_are_recognised() {
        let words = "messages.1.content.0: Invalid `signature` in `thinking` block";
        check(400, words, Some(Blame::Signatures));
        let words = "The encrypted content gAAA... could not be verified.";
        check(400, words, Some(Blame::Signatures));
    }

    #[test]
    fn thoughts_that_are_missing_are_told_from_those_that_are_not_taken() {
        for words in [
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            "Missing `reasoning_content` field in the assistant message at message index 2.",
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index 13",
            "messages.2: `reasoning_content` is required for this model",
            "messages.2.reasoning_content: Field required",
        ] {
            check(400, words, Some(Blame::ReasoningMissing));
        }
        for words in [
            "'messages.2': property 'reasoning_content' is unsupported",
            "Unknown field reasoning_content; required fields are role and content",
        ] {
            check(400, words, Some(Blame::Signatures));
        }
    }

    #[test]
    fn words_that_say_nothing_blame_nothing() {
        for (status, words) in [
            (500, "Internal Server Error"),
            (400, "Request contains an invalid argument."),
            (
                422,
                "messages[1]: data did not match any variant of untagged enum ChatCompletionRequestContent",
            ),
            (500, "unsupported content[].type"),
            (501, ""),
        ] {
            check(status, words, Some(Blame::Unknown));
        }
    }

    #[test]
    fn keys_money_and_a_missing_model_are_not_about_the_request() {
        check(400, "API key not valid. Please pass a valid API key.", None);
        check(404, "model 'x' not found, try pulling it first", None);
        check(400, "insufficient_quota", None);
        for status in [401, 403, 408, 429, 502, 503, 504, 529] {
            check(status, "image input is not supported", None);
        }
    }
}
