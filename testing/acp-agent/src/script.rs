//! A script: what the agent says of itself, how it answers, and the scenes it plays.

use std::path::Path;

use agent_client_protocol_schema::v1::ToolKind;
use anyhow::{Context as _, Result};
use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Script {
    /// Merged over the usual result of `initialize`.
    pub initialize: Value,
    /// Merged over the usual results of `session/new`, `load`, `resume` and `fork`: modes, options, models.
    pub session: Map<String, Value>,
    /// Played once a session was opened, after the answer: commands, usage.
    pub on_open: Vec<Value>,
    /// Played when the process starts, before anything is read.
    pub on_start: Vec<Value>,
    /// The first that fits decides about a request.
    pub answers: Vec<AnswerRule>,
    pub replay: Replay,
    /// Also `session/resume` sends the past again, before its answer.
    pub resume_replays: bool,
    pub request_ids: RequestIds,
    pub cancel: CancelManner,
    /// A cancel takes back its open questions with `$/cancel_request`.
    pub withdraws_on_cancel: bool,
    pub overlap: Overlap,
    /// Neither the end of its input nor SIGTERM ends it.
    pub stays: bool,
    pub scenes: Vec<Scene>,
}

/// How requests of one method are answered instead of as usual.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerRule {
    pub method: String,
    /// As often as this, counted over all processes on the state directory; always if it is missing.
    pub times: Option<u64>,
    /// Until this process has been asked this method.
    pub until: Option<String>,
    /// Played first.
    #[serde(default)]
    pub steps: Vec<Value>,
    /// As usual if it is missing.
    pub answer: Option<Answer>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Error(Value),
    Result(Value),
    /// None, ever.
    Silence,
}

/// When the past comes after `session/load`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Replay {
    #[default]
    BeforeResponse,
    AfterResponse,
}

/// The ids of the agent's own requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RequestIds {
    /// 0, 1, 2.
    #[default]
    Numbers,
    Strings,
}

/// What `session/cancel` does to a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CancelManner {
    #[default]
    Answered,
    Ignored,
    /// Answered once the file `answer-cancel` is in the state directory.
    Late,
}

/// What a second prompt does to the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Overlap {
    #[default]
    Queues,
    /// The first ends as cancelled.
    Aborts,
    /// The first ends in an error.
    AbortsWithError,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scene {
    when: Option<String>,
    pub steps: Vec<Value>,
}

/// One thing to do: `{"say": [..]}`, or its name alone where nothing is to be said of it (`"hang"`). Strings were filled in before
/// it is read.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    /// Chunks of the answer.
    Say(Vec<String>),
    /// Chunks of thought.
    Think(Vec<String>),
    /// So many chunks of so many digits.
    Stream {
        chunks: u64,
        size: usize,
    },
    Tool(Box<Tool>),
    /// A `session/update` as it is.
    Update(Value),
    /// `elicitation/create` with these parameters; the session is added.
    Ask(Value),
    /// Any request; its answer is awaited.
    Request {
        method: String,
        params: Value,
    },
    /// Any request; nobody waits for its answer.
    Send {
        method: String,
        params: Value,
    },
    Notify {
        method: String,
        params: Value,
    },
    /// So many commands with descriptions of so many bytes, in one line.
    Commands {
        count: usize,
        description_bytes: usize,
    },
    /// Waits for a file of the state directory.
    Await(String),
    /// Makes a file in the state directory.
    Touch(String),
    /// Waits for a steering message.
    AwaitSteering,
    /// Goes on until cancelled.
    Hang,
    /// Writes a file, as an agent's tool does.
    Write(Write),
    Exit(i32),
    /// SIGKILL for itself.
    Kill,
    Stderr {
        text: String,
        times: u64,
    },
    /// Lines that are no JSON.
    Garbage(u64),
    /// So many bytes without an end of line.
    EndlessLine(usize),
    /// A process in the same group that lives on, and ignores SIGTERM if told so.
    Child {
        ignores_term: bool,
    },
    /// Answers the prompt with this error.
    Fail(Value),
    /// Answers the prompt; steps after it come after the end.
    End(Map<String, Value>),
}

/// A tool call, with the ways in which agents speak of one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tool {
    /// Counted within the turn if missing, so ids come again in later turns.
    pub id: Option<String>,
    pub name: Option<String>,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub kind: ToolKind,
    pub input: Option<Value>,
    /// The input in the question, where it is not the announced one.
    pub asked_input: Option<Value>,
    #[serde(default)]
    pub locations: Vec<String>,
    #[serde(default)]
    pub announced: Announced,
    /// Says `in_progress` before it asks, and again afterwards.
    #[serde(default)]
    pub runs_before_asking: bool,
    pub ask: Option<Consent>,
    /// Nothing more is said of a call that was denied.
    #[serde(default)]
    pub silent_after_denial: bool,
    /// Done on disk when the call runs.
    pub write: Option<Write>,
    pub diff: Option<Diff>,
    pub terminal: Option<Terminal>,
    /// Texts of the content, each replacing the one before.
    #[serde(default)]
    pub outputs: Vec<String>,
    pub raw_output: Option<Value>,
    #[serde(default)]
    pub outcome: Outcome,
    #[serde(default)]
    pub meta: Map<String, Value>,
    /// Played while the call runs.
    #[serde(default)]
    pub steps: Vec<Value>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Announced {
    /// As pending, before anything else.
    #[default]
    First,
    /// By its question alone.
    ByQuestion,
    /// After the answer to its question.
    AfterAnswer,
    /// By its last update alone.
    AtTheEnd,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Consent {
    /// Once, always, reject if missing.
    pub options: Option<Vec<Value>>,
    /// `_meta` of the call in the question.
    pub meta: Option<Value>,
    /// Takes the question back once this file is in the state directory.
    pub withdraw: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Diff {
    pub path: String,
    pub old: Option<String>,
    pub new: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    pub path: String,
    pub text: String,
}

/// Output that comes in `_meta` instead of the content.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Terminal {
    pub output: Vec<String>,
    pub exit_code: i32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    #[default]
    Completed,
    Failed,
    /// It runs, and nothing more is said.
    None,
}

impl Script {
    /// Reads a script; everything in it is checked, so that a mistake is heard at the start.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let script: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} is no script", path.display()))?;
        let in_rules = script.answers.iter().flat_map(|rule| &rule.steps);
        let in_scenes = script.scenes.iter().flat_map(|scene| &scene.steps);
        let all = script.on_open.iter().chain(&script.on_start);
        for step in all.chain(in_rules).chain(in_scenes) {
            read_step(step)?;
        }
        for scene in &script.scenes {
            scene.pattern()?;
        }
        Ok(script)
    }

    /// The scene for a prompt, and the groups of its pattern.
    pub(crate) fn scene(&self, prompt: &str) -> Result<Option<(&Scene, Vec<String>)>> {
        for scene in &self.scenes {
            if let Some(found) = scene.pattern()?.captures(prompt) {
                let groups = found.iter().map(|group| group.map_or("", |it| it.as_str()));
                return Ok(Some((scene, groups.map(str::to_owned).collect())));
            }
        }
        Ok(None)
    }
}

impl Scene {
    fn pattern(&self) -> Result<Regex> {
        Ok(Regex::new(self.when.as_deref().unwrap_or(""))?)
    }
}

pub(crate) fn read_step(step: &Value) -> Result<Step> {
    serde_json::from_value(step.clone()).with_context(|| format!("this is no step: {step}"))
}
