//! What servers say, and what is read from it.

use super::*;
use MediaKind::{Audio, Document, Image, Video};

fn kinds<const N: usize>(kinds: [MediaKind; N]) -> Option<RefusalCause> {
    Some(RefusalCause::Kinds(BTreeSet::from(kinds)))
}

fn body<const N: usize>(kinds: [MediaKind; N]) -> Option<RefusalCause> {
    Some(RefusalCause::Body(BTreeSet::from(kinds)))
}

#[track_caller]
fn check(status: u16, words: &str, expected: Option<RefusalCause>) {
    let found = cause_of_refusal(Some(status), &words.to_lowercase());
    assert_eq!(found, expected, "{status} {words}");
}

#[test]
fn servers_that_do_not_take_a_kind_say_which() {
    for (status, words, kind) in [
        (400, "Invalid content type. image_url is only supported by certain models.", Image),
        (404, "No endpoints found that support image input", Image),
        (
            500,
            "image input is not supported - hint: if this is unexpected, you may need to provide it",
            Image,
        ),
        (400, "At most 0 image(s) may be provided in one prompt.", Image),
        (400, "Unknown part type: file", Document),
        (400, "Invalid Value: 'file'. This model does not support file content types.", Document),
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
        (500, "audio input is not supported - hint: see the documentation", Audio),
        (400, "video input is not supported by this model", Video),
        (400, "Model does not support images. Please use a model that does.", Image),
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
        (400, "Unable to process input image. Please retry or report in the forum", Image),
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
        (400, "input length and `max_tokens` exceed context limit: 199000 + 32000 > 200000"),
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
        (400, "Invalid request: Your request exceeded model token limit: 262144"),
        (400, "prompt token count of 197763 exceeds the limit of 128000"),
        (
            422,
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
        ),
        (400, "Range of input length should be [1, 129024]"),
    ] {
        check(status, words, Some(RefusalCause::TooLong));
    }
}

#[test]
fn servers_that_want_strings_say_so() {
    for (status, words) in [
        (
            400,
            "json: cannot unmarshal array into Go struct field Message.messages.content of type string",
        ),
        (500, "[json.exception.type_error.302] type must be string, but is array"),
        (400, "messages[5]: invalid type: sequence, expected a string at line 1 column 33928"),
        (422, "Input should be a valid string"),
    ] {
        check(status, words, Some(RefusalCause::Lists));
    }
}

#[test]
fn signatures_are_recognised() {
    let words = "messages.1.content.0: Invalid `signature` in `thinking` block";
    check(400, words, Some(RefusalCause::Signatures));
    let words = "The encrypted content gAAA... could not be verified.";
    check(400, words, Some(RefusalCause::Signatures));
}

#[test]
fn thoughts_that_are_missing_are_told_from_those_that_are_not_taken() {
    for words in [
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "Missing `reasoning_content` field in the assistant message at message index 2.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 13",
        "messages.2: `reasoning_content` is required for this model",
        "messages.2.reasoning_content: Field required",
        "Function call is missing a thought_signature in functionCall parts.",
        "Function call `read` in the 2. content block is missing a `thought_signature`.",
    ] {
        check(400, words, Some(RefusalCause::ReasoningMissing));
    }
    for words in [
        "'messages.2': property 'reasoning_content' is unsupported",
        "Unknown field reasoning_content; required fields are role and content",
        "Corrupted thought signature.",
        "Thought signature is not valid.",
    ] {
        check(400, words, Some(RefusalCause::Signatures));
    }
}

#[test]
fn thoughts_that_are_not_shown_to_everybody_are_recognised() {
    for words in [
        "Your organization must be verified to generate reasoning summaries. Please go to: https://a.example and click on Verify Organization.",
        "Unsupported parameter: 'reasoning.summary' is not supported with the 'm-1' model.",
        "Thinking is not enabled for models/m-1",
        "Unable to submit request because Thinking_config.include_thoughts is only enabled when thinking is enabled..",
    ] {
        check(400, words, Some(RefusalCause::ShownThoughts));
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
        check(status, words, Some(RefusalCause::Unknown));
    }
}

/// The name of an attachment is not what a server complains of.
#[test]
fn what_is_quoted_is_no_complaint_about_the_asker() {
    for name in ["billing.pdf", "API key rotation.pdf", "authentication.pdf"] {
        let words = format!("Could not process the PDF '{name}'.");
        check(400, &words, body([Document]));
    }
    check(400, "This account's billing isn't active", None);
    check(400, "Incorrect `api_key` provided: your API key is 'x'", None);
    assert_eq!(without_quotes("it's 'a \"b' and \"c\" isn't `d"), "it's  and  isn't `d");
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
