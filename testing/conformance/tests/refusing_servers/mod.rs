//! Servers as they answer what they do not take, in their own words.
//!
//! Promises: each refuses by what is really in a request, so that only a request without it gets an answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use testkit::{Answer, CapturedRequest};

use crate::spoken::{Said, Wire};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttachmentKind {
    Image,
    Document,
    Audio,
}

impl AttachmentKind {
    pub(crate) const ALL: [Self; 3] = [Self::Image, Self::Document, Self::Audio];

    fn bytes(self) -> &'static [u8] {
        match self {
            Self::Image => b"\x89PNG\r\n\x1a\n",
            Self::Document => b"%PDF-1.7\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n",
            Self::Audio => b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x44\xac\0\0\x88\x58\x01\0\x02\0\x10\0data\0\0\0\0",
        }
    }

    pub(crate) fn data(self) -> String {
        STANDARD.encode(self.bytes())
    }

    pub(crate) fn attachment(self) -> Value {
        let (label, mime) = match self {
            Self::Image => ("a.png", "image/png"),
            Self::Document => ("a.pdf", "application/pdf"),
            Self::Audio => ("a.wav", "audio/wav"),
        };
        json!({"type": "embeddedResource", "label": label, "contentType": mime, "data": self.data()})
    }

    /// Whether it has a form in the wire format of a server at all.
    pub(crate) fn is_tried_on(self, server: &Server) -> bool {
        self != Self::Audio || matches!(server.wire, Wire::Chat | Wire::Gemini)
    }
}

/// A server that refuses: which requests, and how.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    wire: Wire,
    refuse: fn(&Sent) -> Option<Answer>,
}

/// What a request holds.
pub(crate) struct Sent {
    image: bool,
    file: bool,
    audio: bool,
    lists: bool,
}

impl Sent {
    fn of(wire: Wire, body: &Value) -> Self {
        match wire {
            Wire::Chat => Self::in_chat(body),
            Wire::Anthropic | Wire::Responses | Wire::Gemini => Self::in_words(&body.to_string()),
        }
    }

    /// Where every attachment is in a block of its own.
    fn in_words(body: &str) -> Self {
        let holds = |kind: AttachmentKind| body.contains(&kind.data());
        Self {
            image: holds(AttachmentKind::Image),
            file: holds(AttachmentKind::Document),
            audio: holds(AttachmentKind::Audio),
            lists: false,
        }
    }

    fn in_chat(body: &Value) -> Self {
        let messages = body["messages"].as_array().into_iter().flatten();
        let contents: Vec<&Value> = messages.map(|message| &message["content"]).collect();
        let blocks = contents.iter().filter_map(|content| content.as_array());
        let types: Vec<&str> =
            blocks.flatten().filter_map(|block| block["type"].as_str()).collect();
        Self {
            image: types.contains(&"image_url"),
            file: types.contains(&"file"),
            audio: types.contains(&"input_audio"),
            lists: contents.iter().any(|content| content.is_array()),
        }
    }

    fn media(&self) -> bool {
        self.image || self.file || self.audio
    }
}

impl Server {
    pub(crate) fn configure(&self, model: &mut host::Model) {
        model.api = self.wire.api();
    }

    pub(crate) fn answer(&self, request: &CapturedRequest) -> Answer {
        let sent = Sent::of(self.wire, &request.json());
        let answer = || Answer::raw(self.wire.stream(&Said::text("fine")));
        (self.refuse)(&sent).unwrap_or_else(answer)
    }
}

fn refusal(status: u16, body: &Value) -> Option<Answer> {
    Some(Answer::status(status, &body.to_string()).with_header("content-type", "application/json"))
}

fn openai_error(message: &str, param: &str) -> Option<Answer> {
    let error = json!({"message": message, "type": "invalid_request_error", "param": param, "code": "invalid_value"});
    refusal(400, &json!({"error": error}))
}

fn llama_cpp(status: u16, message: &str) -> Option<Answer> {
    let kind = if status == 500 { "server_error" } else { "invalid_request_error" };
    refusal(status, &json!({"error": {"code": status, "message": message, "type": kind}}))
}

const NO_MMPROJ: &str =
    "input is not supported - hint: if this is unexpected, you may need to provide the mmproj";

/// Wordings as these servers give them, collected from reports of their users in 2024 to 2026.
pub(crate) const SERVERS: &[Server] = &[
    Server {
        name: "OpenAI, a model with text alone",
        wire: Wire::Chat,
        refuse: |sent| match sent {
            _ if sent.image => openai_error(
                "Invalid content type. image_url is only supported by certain models.",
                "messages.[1].content.[1].type",
            ),
            _ if sent.file => openai_error(
                "Invalid Value: 'file'. This model does not support file content types.",
                "messages[1].content[1].type",
            ),
            _ if sent.audio => openai_error(
                "Invalid value: 'input_audio'. Supported values are: 'text' and 'image_url'.",
                "messages[1].content[1].type",
            ),
            _ => None,
        },
    },
    Server {
        name: "Azure",
        wire: Wire::Chat,
        refuse: |sent| {
            if sent.file {
                openai_error(
                    "Invalid Value: 'file'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', and 'audio'.",
                    "messages[1].content[1].type",
                )
            } else {
                None
            }
        },
    },
    Server {
        name: "OpenRouter",
        wire: Wire::Chat,
        refuse: |sent| match sent {
            _ if sent.image => {
                let message = "No endpoints found that support image input";
                refusal(404, &json!({"error": {"message": message, "code": 404}}))
            }
            _ if sent.audio => {
                let message = "No endpoints found that support input audio";
                refusal(404, &json!({"error": {"message": message, "code": 404}}))
            }
            _ => None,
        },
    },
    Server {
        name: "llama.cpp without a projector",
        wire: Wire::Chat,
        refuse: |sent| match sent {
            _ if sent.image => llama_cpp(500, &format!("image {NO_MMPROJ}")),
            _ if sent.audio => llama_cpp(500, &format!("audio {NO_MMPROJ}")),
            _ if sent.file => llama_cpp(400, "unsupported content[].type"),
            _ => None,
        },
    },
    Server {
        name: "llama.cpp of 2024",
        wire: Wire::Chat,
        refuse: |sent| {
            if sent.lists {
                Some(Answer::status(
                    500,
                    "500 Internal Server Error\n[json.exception.type_error.302] type must be string, but is array",
                ))
            } else {
                None
            }
        },
    },
    Server {
        name: "Ollama",
        wire: Wire::Chat,
        refuse: |sent| {
            let error = |message| json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}});
            match sent {
                _ if sent.image => refusal(400, &error("invalid image input")),
                _ if sent.media() => refusal(400, &error("invalid message format")),
                _ => None,
            }
        },
    },
    Server {
        name: "Ollama of 2024",
        wire: Wire::Chat,
        refuse: |sent| {
            if sent.lists {
                let message = "json: cannot unmarshal array into Go struct field Message.messages.content of type string";
                let error = json!({"message": message, "type": "invalid_request_error"});
                refusal(400, &json!({"error": error}))
            } else {
                None
            }
        },
    },
    Server {
        name: "vLLM, a model with text alone",
        wire: Wire::Chat,
        refuse: |sent| {
            let error = |message: &str| json!({"object": "error", "message": message, "type": "BadRequestError", "param": null, "code": 400});
            match sent {
                _ if sent.file => refusal(400, &error("Unknown part type: file")),
                _ if sent.media() => {
                    refusal(400, &error("Qwen/Qwen3-0.6B is not a multimodal model None"))
                }
                _ => None,
            }
        },
    },
    Server {
        name: "vLLM that fails over it",
        wire: Wire::Chat,
        refuse: |sent| {
            if sent.media() { Some(Answer::status(500, "Internal Server Error")) } else { None }
        },
    },
    Server {
        name: "LM Studio",
        wire: Wire::Chat,
        refuse: |sent| match sent {
            _ if sent.file || sent.audio => {
                let message = "Invalid 'content': 'content' objects must have a 'type' field that is either 'text' or 'image_url'.";
                refusal(400, &json!({"error": message}))
            }
            _ if sent.image => {
                let message = "Model does not support images. Please use a model that does.";
                refusal(400, &json!({"error": message}))
            }
            _ => None,
        },
    },
    Server {
        name: "TGI",
        wire: Wire::Chat,
        refuse: |sent| {
            if sent.media() {
                Some(Answer::status(
                    422,
                    "Failed to deserialize the JSON body into the target type: messages[1]: data did not match any variant of untagged enum MessageContent at line 1 column 912",
                ))
            } else {
                None
            }
        },
    },
    Server {
        name: "DeepSeek",
        wire: Wire::Chat,
        refuse: |sent| {
            if sent.media() {
                let message = "Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text` at line 1 column 912";
                openai_error(message, "")
            } else {
                None
            }
        },
    },
    Server {
        name: "a server that takes strings alone",
        wire: Wire::Chat,
        refuse: |sent| {
            if sent.lists {
                let detail = json!([{"type": "string_type", "loc": ["body", "messages", 1, "content"], "msg": "Input should be a valid string"}]);
                refusal(422, &json!({"detail": detail}))
            } else {
                None
            }
        },
    },
    Server {
        name: "a server that complains in its stream",
        wire: Wire::Chat,
        refuse: |sent| {
            if sent.media() {
                let error = json!({"error": {"message": "image input is not supported", "type": "server_error"}});
                Some(Answer::raw(format!("data: {error}\n\n")))
            } else {
                None
            }
        },
    },
    Server {
        name: "a proxy with a limit",
        wire: Wire::Chat,
        refuse: |sent| {
            if sent.media() {
                Some(Answer::status(
                    413,
                    "<html><head><title>413 Request Entity Too Large</title></head></html>",
                ))
            } else {
                None
            }
        },
    },
    Server {
        name: "Anthropic",
        wire: Wire::Anthropic,
        refuse: |sent| {
            let error = |message: &str| {
                let error = json!({"type": "invalid_request_error", "message": message});
                refusal(400, &json!({"type": "error", "error": error, "request_id": "req_1"}))
            };
            match sent {
                _ if sent.image => error(
                    "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 17699328 bytes > 5242880 bytes",
                ),
                _ if sent.file => error(
                    "messages.0.content.1.pdf.source.base64.data: A maximum of 100 PDF pages may be provided.",
                ),
                _ => None,
            }
        },
    },
    Server {
        name: "OpenAI over Responses",
        wire: Wire::Responses,
        refuse: |sent| match sent {
            _ if sent.image => openai_error(
                "Invalid value: 'input_image'. Supported values are: 'input_text'.",
                "input[0].content[1].type",
            ),
            _ if sent.file => openai_error(
                "Invalid value: 'input_file'. Supported values are: 'input_text' and 'input_image'.",
                "input[0].content[1].type",
            ),
            _ => None,
        },
    },
    Server {
        name: "Gemini",
        wire: Wire::Gemini,
        refuse: |sent| {
            let error = |message: &str| {
                let error = json!({"code": 400, "message": message, "status": "INVALID_ARGUMENT"});
                refusal(400, &json!({"error": error}))
            };
            match sent {
                _ if sent.image => error(
                    "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting",
                ),
                _ if sent.file => error("Request contains an invalid argument."),
                _ if sent.audio => error("Unsupported MIME type: audio/wav"),
                _ => None,
            }
        },
    },
];
