//! `ask_user`: questions to the user in the middle of a turn, with options to choose from or free text.
//!
//! Promises: bounded; an answer names its question, and no answer is said, too.
//! Must not know: how questions are shown and answered.

use agent_api::InputRequest;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wire::Object;
use wire::published::state::ChatInputResponseKind;
use workspace::Workspace;

use super::format::{group_digits, shorten};
use super::input::{self, ToolInput};
use super::{HostTask, Plan, Tool, ToolEffect, ToolError, ToolFacts, ToolOutcome};

pub(crate) const NAME: &str = "ask_user";

const QUESTIONS_MAX: usize = 8;
const OPTIONS_MAX: usize = 16;
const TEXT_CHARS_MAX: usize = 2_000;

/// What the model gets of one answer: a person may paste a log into it.
const ANSWER_BYTES_MAX: usize = 4 * TEXT_CHARS_MAX;

/// Characters of a question in a summary.
const SUMMARY_CHARS_MAX: usize = 80;

/// What the model reads of questions that were not answered.
const UNANSWERED: &str = "The user closed the question without an answer. Do not ask the same again: go on with what you \
     think best and say what you assumed, or end your turn.";

pub(super) struct AskUserTool;

#[derive(Debug, Deserialize)]
struct AskInput {
    #[serde(default)]
    questions: Vec<QuestionInput>,
    /// A single question.
    #[serde(flatten)]
    single: Option<QuestionInput>,
}

#[derive(Debug, Deserialize)]
struct QuestionInput {
    question: String,
    #[serde(alias = "title")]
    header: Option<String>,
    #[serde(default)]
    options: Vec<OptionInput>,
    #[serde(default, alias = "multi_select", alias = "multiSelect")]
    multiple: bool,
    free_text: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OptionInput {
    Label(String),
    Described { label: String, description: Option<String> },
}

impl OptionInput {
    fn label(&self) -> &str {
        match self {
            Self::Label(label) | Self::Described { label, .. } => label,
        }
    }
}

impl ToolInput for AskInput {
    const EXAMPLE: &'static str =
        r#"{"questions": [{"question": "Which database?", "options": ["SQLite", "PostgreSQL"]}]}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "questions": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": QUESTIONS_MAX,
                    "items": {
                        "type": "object",
                        "properties": {
                            "question": {"type": "string"},
                            "header": {"type": "string", "description": "A title of one or two words."},
                            "options": {
                                "type": "array",
                                "maxItems": OPTIONS_MAX,
                                "items": {
                                    "type": "object",
                                    "properties": {
                                        "label": {"type": "string"},
                                        "description": {"type": "string"},
                                    },
                                    "required": ["label"],
                                    "additionalProperties": false,
                                },
                                "description": "What to choose from; without any, the answer is a text.",
                            },
                            "multiple": {"type": "boolean", "description": "Several options may be chosen."},
                            "free_text": {
                                "type": "boolean",
                                "description": "Whether the answer may also be a text of the user's own; true by default.",
                            },
                        },
                        "required": ["question"],
                        "additionalProperties": false,
                    },
                },
            },
            "required": ["questions"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        Vec::new() // nothing of it is run or opened
    }
}

impl AskInput {
    fn parse(input: &Value) -> Result<Vec<QuestionInput>, ToolError> {
        let input: Self = input::parse(input)?;
        let example = Self::EXAMPLE;
        let wrong = |what: String| Err(ToolError(format!("{what}. For example: {example}")));
        let questions = match (input.questions, input.single) {
            (questions, Some(single)) if questions.is_empty() => vec![single],
            (questions, None) => questions,
            (_, Some(_)) => {
                return wrong("give either `question` or `questions`, not both".to_owned());
            }
        };
        if questions.is_empty() {
            return wrong("`questions` is empty".to_owned());
        }
        if questions.len() > QUESTIONS_MAX {
            return wrong(format!("`questions` has more than {QUESTIONS_MAX} entries"));
        }
        for question in &questions {
            let labels = || question.options.iter().map(OptionInput::label);
            let mut texts = labels().chain([question.question.as_str()]);
            if texts.any(|text| text.trim().is_empty()) {
                return wrong("a `question` or a `label` is empty".to_owned());
            }
            if question.options.len() > OPTIONS_MAX {
                return wrong(format!("`options` has more than {OPTIONS_MAX} entries"));
            }
        }
        Ok(questions)
    }
}

impl QuestionInput {
    /// `ChatInputQuestion`
    fn to_question(&self, id: &str) -> Value {
        let kind = match (self.options.is_empty(), self.multiple) {
            (true, _) => "text",
            (false, false) => "single-select",
            (false, true) => "multi-select",
        };
        let mut question = json!({
            "kind": kind,
            "id": id,
            "message": cut(&self.question),
            "required": true,
        });
        if let Some(header) = &self.header {
            question["title"] = json!(cut(header));
        }
        if self.options.is_empty() {
            return question;
        }
        let options = self.options.iter().enumerate().map(|(index, option)| {
            let mut entry = json!({"id": option_id(index), "label": cut(option.label())});
            if let OptionInput::Described { description: Some(description), .. } = option {
                entry["description"] = json!(cut(description));
            }
            entry
        });
        question["options"] = options.collect();
        question["allowFreeformInput"] = json!(self.free_text != Some(false));
        question
    }

    /// The user's answers as text.
    fn describe(&self, answer: Option<&Value>) -> String {
        let Some(answer) = answer.filter(|answer| answer["state"] != "skipped") else {
            return "(no answer)".to_owned();
        };
        let value = &answer["value"];
        let chosen = match &value["value"] {
            Value::Array(chosen) => chosen.clone(),
            chosen => vec![chosen.clone()],
        };
        let written = value["freeformValues"].as_array().into_iter().flatten();
        let texts = chosen.iter().chain(written).filter_map(Value::as_str);
        let labels: Vec<&str> = texts
            .map(|text| {
                let mut options = self.options.iter().enumerate();
                let option = options.find(|(index, _)| option_id(*index) == text);
                option.map_or(text, |(_, option)| option.label())
            })
            .filter(|label| !label.is_empty())
            .collect();
        if labels.is_empty() { "(no answer)".to_owned() } else { cut_answer(&labels.join(", ")) }
    }
}

/// An answer as far as the model gets it, with how much is missing.
fn cut_answer(answer: &str) -> String {
    let end = answer.floor_char_boundary(ANSWER_BYTES_MAX);
    match answer.len() - end {
        0 => answer.to_owned(),
        more => format!(
            "{} [the answer is cut here; {} more bytes]",
            &answer[..end],
            group_digits(more as u64)
        ),
    }
}

fn question_id(index: usize) -> String {
    format!("question-{}", index + 1)
}

fn option_id(index: usize) -> String {
    format!("option-{}", index + 1)
}

fn cut(text: &str) -> String {
    text.trim().chars().take(TEXT_CHARS_MAX).collect()
}

/// What the model gets of the user's response.
pub(crate) fn describe_answers(
    input: &Value,
    response: &ChatInputResponseKind,
    answers: &Object,
) -> Result<ToolOutcome, ToolError> {
    let questions = AskInput::parse(input)?;
    if *response != ChatInputResponseKind::Accept {
        return Ok(ToolOutcome {
            text: UNANSWERED.to_owned(),
            summary: "Asked, and got no answer".to_owned(),
            success: false,
            ..ToolOutcome::default()
        });
    }
    let mut text = String::new();
    for (index, question) in questions.iter().enumerate() {
        let answer = question.describe(answers.get(&question_id(index)));
        text.push_str(&format!("{}\nThe user: {answer}\n", cut(&question.question)));
    }
    Ok(ToolOutcome {
        text,
        summary: match questions.len() {
            1 => "Asked a question".to_owned(),
            several => format!("Asked {several} questions"),
        },
        success: true,
        ..ToolOutcome::default()
    })
}

#[async_trait]
impl Tool for AskUserTool {
    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: NAME,
            display_name: "Ask",
            description: "Asks the user, and waits for the answer. For decisions that are the user's to make and that you cannot find out \
         yourself; put questions that belong together into one call.",
            effect: ToolEffect::Reads,
            kind: None,
        }
    }

    fn parameters(&self) -> Value {
        AskInput::schema()
    }

    async fn plan(&self, input: &Value, _workspace: &Workspace) -> Result<Plan, ToolError> {
        let questions = AskInput::parse(input)?;
        let first = questions.first().map_or("", |first| first.question.as_str());
        Ok(Plan {
            summary: format!("Ask: {}", shorten(first, SUMMARY_CHARS_MAX)),
            ..Plan::default()
        })
    }

    fn host_request(&self, input: &Value) -> Option<Result<HostTask, ToolError>> {
        let request = AskInput::parse(input).map(|questions| {
            let questions =
                questions.iter().enumerate().map(|(index, it)| it.to_question(&question_id(index)));
            HostTask::Question(InputRequest {
                questions: questions.collect(),
                ..InputRequest::default()
            })
        });
        Some(request)
    }

    async fn run(
        &self,
        _input: &Value,
        _workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        Err(ToolError("there is nobody here to ask".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::published::state::ChatInputQuestion;

    fn request(input: &Value) -> Vec<Value> {
        match AskUserTool.host_request(input).unwrap().unwrap() {
            HostTask::Question(request) => request.questions,
            HostTask::Worker(_) | HostTask::ClientFile(_) => unreachable!(),
        }
    }

    fn answers(value: Value) -> Object {
        let answer = json!({"state": "submitted", "value": value});
        Object::from_iter([(question_id(0), answer)])
    }

    #[test]
    fn questions_are_what_the_protocol_publishes() {
        let input = json!({"questions": [
            {"question": "Which?", "options": ["a", {"label": "b", "description": "the other"}]},
            {"question": "All?", "options": ["a"], "multiple": true, "free_text": false, "header": "Scope"},
            {"question": "Why?"},
        ]});
        let questions = request(&input);
        for question in &questions {
            let read: ChatInputQuestion = serde_json::from_value(question.clone()).unwrap();
            assert!(!matches!(read, ChatInputQuestion::Unknown(_)), "{question}");
            assert_eq!(&serde_json::to_value(read).unwrap(), question);
        }
        let kinds: Vec<&Value> = questions.iter().map(|it| &it["kind"]).collect();
        assert_eq!(kinds, ["single-select", "multi-select", "text"]);
        assert_eq!(questions[1]["allowFreeformInput"], false);
        let single = request(&json!({"question": "Which?", "options": ["a"]}));
        assert_eq!(single[0]["options"][0]["label"], "a");
    }

    #[test]
    fn answers_are_told_in_words() {
        let input = json!({"questions": [{"question": "Which?", "options": ["a", "b"]}]});
        for (value, expected) in [
            (json!({"kind": "selected", "value": "option-2"}), "b"),
            (json!({"kind": "selected", "value": "", "freeformValues": ["c"]}), "c"),
            (json!({"kind": "selected", "value": "my own"}), "my own"),
            (json!({"kind": "selected-many", "value": ["option-1", "option-2"]}), "a, b"),
        ] {
            let accepted = ChatInputResponseKind::Accept;
            let answer = describe_answers(&input, &accepted, &answers(value)).unwrap();
            assert_eq!(answer.text, format!("Which?\nThe user: {expected}\n"));
        }
        let long = json!({"kind": "text", "value": "ä".repeat(100_000)});
        let answer =
            describe_answers(&input, &ChatInputResponseKind::Accept, &answers(long)).unwrap().text;
        assert!(answer.len() < ANSWER_BYTES_MAX + 100, "{}", answer.len());
        assert!(answer.contains("cut here; 192,000 more bytes]"), "{answer}");
        let cancelled = ChatInputResponseKind::Cancel;
        let answer = describe_answers(&input, &cancelled, &Object::new()).unwrap();
        assert!(!answer.success && answer.text.contains("without an answer"));
        for wrong in [
            json!({}),
            json!({"questions": []}),
            json!({"questions": [{"question": " "}]}),
            json!({"questions": [{"question": "a"}], "question": "b"}),
        ] {
            let why = AskInput::parse(&wrong).unwrap_err().0;
            assert!(why.contains("For example: {"), "{why}");
        }
    }
}
