//! Plays the steps of a scene.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use crate::agent::{Agent, Ends, await_file};
use crate::connection::Answered;
use crate::fill::Words;
use crate::script::{CancelManner, Overlap, Script, Step, Write, read_step};
use crate::{faults, methods, tool};

/// One play: of a prompt, or of steps beside one.
pub(crate) struct Player {
    pub agent: Arc<Agent>,
    pub session: String,
    pub words: Words,
    /// How many calls the turn had.
    pub calls: u64,
    /// The prompt's request, until it is answered.
    prompt: Option<Value>,
    /// What a later load tells again.
    past: Vec<Value>,
}

/// Plays the scene of a prompt and answers it.
pub(crate) async fn play_prompt(
    agent: &Arc<Agent>,
    session: &str,
    id: &Value,
    params: &Value,
    ends: Ends,
) -> Result<()> {
    let Some(open) = agent.session(session) else {
        let error = methods::lost(session);
        return agent.connection.respond(id, Err(error)).await;
    };
    let turn = open.turn.lock().await;
    let text = text_of(&params["prompt"]);
    let echo =
        json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}});
    let mut history = String::new();
    agent.sessions.change(session, |stored| {
        history = stored.history();
        stored.prompts.push(text.clone());
        stored.past.push(echo);
    })?;
    let script = Script::read(&agent.options.script)?;
    let mut player = Player::new(agent, session);
    player.prompt = Some(id.clone());
    player.words.history = history;
    let scene = script.scene(&text)?;
    player.words.text = text;
    let steps = match scene {
        Some((scene, groups)) => {
            player.words.groups = groups;
            scene.steps.clone()
        }
        None => vec![json!({"say": ["no scene fits this prompt"]})],
    };
    let answer = tokio::select! {
        biased;
        () = ends.abort.cancelled() => Some(abort(agent.script.overlap)),
        () = ends.cancel.cancelled() => None,
        played = player.play(&steps) => {
            played?;
            Some(Ok(json!({"stopReason": "end_turn"})))
        }
    };
    let answer = match answer {
        Some(answer) => answer,
        None => player.take_cancel().await?,
    };
    // Before the answer: the next prompt may come right after it.
    open.finish();
    drop(turn);
    player.answer(answer).await
}

fn abort(overlap: Overlap) -> Answered {
    match overlap {
        Overlap::AbortsWithError => {
            Err(json!({"code": -32603, "message": "Internal error", "data": {}}))
        }
        Overlap::Aborts | Overlap::Queues => Ok(json!({"stopReason": "cancelled"})),
    }
}

/// The texts of a prompt, one under the other; of an embedded file its text.
pub(crate) fn text_of(blocks: &Value) -> String {
    let blocks = blocks.as_array().into_iter().flatten();
    let texts = blocks.filter_map(|block| {
        let text = block["text"].as_str();
        text.or_else(|| block["resource"]["text"].as_str())
    });
    texts.collect::<Vec<_>>().join("\n")
}

impl Player {
    pub(crate) fn new(agent: &Arc<Agent>, session: &str) -> Self {
        Self {
            agent: Arc::clone(agent),
            session: session.to_owned(),
            words: Words { session: session.to_owned(), ..Words::default() },
            calls: 0,
            prompt: None,
            past: Vec::new(),
        }
    }

    pub(crate) async fn play(&mut self, steps: &[Value]) -> Result<()> {
        for step in steps {
            let step = read_step(&self.words.fill(step))?;
            // A call has steps of its own.
            Box::pin(self.play_step(step)).await?;
        }
        Ok(())
    }

    async fn play_step(&mut self, step: Step) -> Result<()> {
        let agent = Arc::clone(&self.agent);
        let state = &agent.options.state;
        match step {
            Step::Say(chunks) => self.say("agent_message_chunk", &chunks).await,
            Step::Think(chunks) => self.say("agent_thought_chunk", &chunks).await,
            Step::Stream { chunks, size } => self.stream(chunks, size).await,
            Step::Tool(tool) => tool::play(self, *tool).await,
            Step::Update(update) => {
                let params = json!({"sessionId": self.session, "update": update});
                agent.connection.notify("session/update", &params).await
            }
            Step::Ask(mut params) => {
                params["sessionId"] = json!(self.session);
                self.request("elicitation/create", &params).await.map(drop)
            }
            Step::Request { method, params } => self.request(&method, &params).await.map(drop),
            Step::Send { method, params } => {
                let sent = agent.connection.request(&self.session, &method, &params);
                sent.await.map(drop)
            }
            Step::Notify { method, params } => agent.connection.notify(&method, &params).await,
            Step::Commands { count, description_bytes } => {
                self.list_commands(count, description_bytes).await
            }
            Step::Await(name) => {
                await_file(state, &name).await;
                Ok(())
            }
            Step::Touch(name) => Ok(std::fs::write(state.join(name), "")?),
            Step::AwaitSteering => self.await_steering().await,
            Step::Hang => std::future::pending().await,
            Step::Write(write) => write_file(&write),
            Step::Fail(error) => self.answer(Err(error)).await,
            Step::End(fields) => self.end(fields).await,
            Step::Exit(_)
            | Step::Kill
            | Step::Stderr { .. }
            | Step::Garbage(_)
            | Step::EndlessLine(_)
            | Step::Child { .. } => faults::play(&agent, step).await,
        }
    }

    async fn say(&mut self, kind: &str, chunks: &[String]) -> Result<()> {
        for chunk in chunks {
            let content = json!({"type": "text", "text": chunk});
            self.update(json!({"sessionUpdate": kind, "content": content})).await?;
        }
        Ok(())
    }

    async fn stream(&mut self, chunks: u64, size: usize) -> Result<()> {
        for number in 0..chunks {
            let text = format!("{number:0size$}");
            self.say("agent_message_chunk", &[text]).await?;
        }
        Ok(())
    }

    async fn list_commands(&mut self, count: usize, description_bytes: usize) -> Result<()> {
        let command = |number: usize| {
            let description = "d".repeat(description_bytes);
            json!({"name": format!("command-{number}"), "description": description})
        };
        let commands: Vec<Value> = (0..count).map(command).collect();
        let kind = "available_commands_update";
        let update = json!({"sessionUpdate": kind, "availableCommands": commands});
        self.agent.connection.update(&self.session, &update).await
    }

    async fn await_steering(&mut self) -> Result<()> {
        let open = self.agent.session(&self.session).context("steering needs a session")?;
        self.words.steering = open.steering().await;
        Ok(())
    }

    /// Sends an update of the schema, which becomes a part of the past.
    pub(crate) async fn update(&mut self, update: Value) -> Result<()> {
        self.agent.connection.update(&self.session, &update).await?;
        self.past.push(update);
        Ok(())
    }

    /// Asks the client something and keeps its answer as the last one.
    pub(crate) async fn request(&mut self, method: &str, params: &Value) -> Result<Answered> {
        let agent = Arc::clone(&self.agent);
        let sent = agent.connection.request(&self.session, method, params);
        let (_, answered) = sent.await?;
        let answer = answered.await.context("no answer can come any more")?;
        self.keep_answer(&answer);
        Ok(answer)
    }

    pub(crate) fn keep_answer(&mut self, answer: &Answered) {
        let (Ok(last) | Err(last)) = answer;
        self.words.last = last.to_string();
        if let Some(terminal) = last["terminalId"].as_str() {
            terminal.clone_into(&mut self.words.terminal);
        }
    }

    async fn take_cancel(&mut self) -> Result<Answered> {
        let agent = Arc::clone(&self.agent);
        if agent.script.withdraws_on_cancel {
            for id in agent.connection.open_requests(&self.session) {
                let params = json!({"requestId": id});
                agent.connection.notify("$/cancel_request", &params).await?;
            }
        }
        if agent.script.cancel == CancelManner::Late {
            await_file(&agent.options.state, "answer-cancel").await;
        }
        Ok(Ok(json!({"stopReason": "cancelled"})))
    }

    async fn end(&mut self, fields: Map<String, Value>) -> Result<()> {
        let mut result = json!({"stopReason": "end_turn"});
        for (name, value) in fields {
            result[name] = value;
        }
        self.answer(Ok(result)).await
    }

    /// Answers the prompt, once. The past is on disk before.
    async fn answer(&mut self, answer: Answered) -> Result<()> {
        let past = std::mem::take(&mut self.past);
        if !past.is_empty() && !self.session.is_empty() {
            self.agent.sessions.change(&self.session, |stored| stored.past.extend(past))?;
        }
        match self.prompt.take() {
            Some(id) => self.agent.connection.respond(&id, answer).await,
            None => Ok(()),
        }
    }
}

/// Does what a tool of the agent does on disk.
pub(crate) fn write_file(write: &Write) -> Result<()> {
    std::fs::write(&write.path, &write.text).with_context(|| format!("cannot write {}", write.path))
}
