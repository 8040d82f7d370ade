//! Rendering the system prompt: its owner may rewrite what it opted in to, once, within a deadline, and never what is
//! restricted. Whatever goes wrong, the agent gets its sections back as they were (G-33 to G-36).

use std::collections::BTreeMap;

use agent_api::{AgentReply, Section};
use serde_json::{Value, json};
use wire::ext::system_message_transform::{
    self as ext, Carrier, OptIn, SystemMessageTransformParams, SystemMessageTransformResult,
    SystemMessageTransformSection,
};
use wire::state::SessionState;
use wire::{Action, ChannelUri};

use crate::Kernel;
use crate::authority::{Permit, Refusal};
use crate::io::{Effect, PeerId, RunId};
use crate::record::ChannelId;
use crate::rendered::{Asked, NotAsked, Rendered, Transform, TransformFailure};
use crate::request::{Purpose, Reply};
use crate::speak::Sender;

/// A render whose owner was asked.
pub(crate) struct Rendering {
    to: Renderer,
    chat: ChannelId,
    turn_id: Option<String>,
    before: Vec<Section>,
    asked: Asked,
}

/// Who waits for a render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Renderer {
    Run {
        run: RunId,
        render: u64,
    },
    /// A session that begins: nobody but the operator.
    Session(ChannelUri),
}

/// The one client that a render may go through.
struct Owner {
    peer: PeerId,
    client_id: String,
    opt_in: OptIn,
}

/// May this client opt in by an action? Only for itself, and only while it is active (G-34).
pub(crate) fn validate_opt_in(
    session: &SessionState,
    client_id: &str,
    action: Action,
) -> Result<Permit, Refusal> {
    if entry_of(session, client_id).is_none() {
        return Err(Refusal::because(
            "only an active client may opt in to rewriting sections",
        ));
    }
    let listed = action.get("sections").and_then(Value::as_array);
    match listed {
        Some(listed) if listed.iter().all(Value::is_string) => Ok(Permit(action)),
        _ => Err(Refusal::because("`sections` must be a list of section ids")),
    }
}

fn entry_of<'a>(session: &'a SessionState, client_id: &str) -> Option<&'a Value> {
    let mut entries = session.active_clients.iter();
    entries.find(|entry| entry["clientId"] == client_id)
}

impl Kernel {
    /// A client opts in by the action: the entry that follows says it to every mirror (G-34).
    pub(crate) fn opt_in(&mut self, uri: &ChannelUri, action: Action, sender: &Sender) {
        let session = self.session_state(uri);
        let Some(entry) =
            session.and_then(|session| entry_of(session, &sender.origin.client_id).cloned())
        else {
            return;
        };
        let listed = action.get("sections").and_then(Value::as_array);
        let listed = listed.into_iter().flatten().filter_map(Value::as_str);
        let sections: Vec<String> = listed.map(str::to_owned).collect();
        let merged = ext::merged(&entry, &sections);
        if merged == entry {
            return self.answer_unchanged(uri, &action, Some(sender));
        }
        self.act_beside(uri, &action, sender);
        let fields = json!({"activeClient": merged});
        self.act(uri, Action::host("session/activeClientSet", fields), None);
    }

    /// An agent put its sections together for the turn it works on.
    pub(crate) fn render(
        &mut self,
        chat: &ChannelUri,
        run: RunId,
        render: u64,
        before: Vec<Section>,
    ) {
        let author = self.chat(chat).and_then(|chat| chat.author.clone());
        let turn_id = self.active_turn_id(chat);
        let to = Renderer::Run { run, render };
        self.transform(chat, to, turn_id, author.as_deref(), before);
    }

    /// An agent put its sections together when a session began: no turn runs, so the first client that opted in is asked.
    pub(crate) fn render_opening(&mut self, session: &ChannelUri, before: Vec<Section>) {
        let state = self.session_state(session);
        let chat = state.and_then(|state| state.default_chat.as_deref());
        let Some(chat) = chat.and_then(|chat| ChannelUri::parse(chat).ok()) else {
            return;
        };
        let to = Renderer::Session(session.clone());
        self.transform(&chat, to, None, None, before);
    }

    fn transform(
        &mut self,
        chat: &ChannelUri,
        to: Renderer,
        turn_id: Option<String>,
        author: Option<&str>,
        before: Vec<Section>,
    ) {
        let Some(id) = self.channels.get(chat).map(|channel| channel.id) else {
            return;
        };
        let now = self.now;
        let untouched = |transform| Rendered {
            chat: id,
            turn_id: turn_id.clone(),
            at: now,
            before: before.clone(),
            rewritten: BTreeMap::new(),
            transform,
        };
        let Some((session, owner)) = self.owner(chat, author) else {
            let rendered = untouched(Transform::NotAsked(NotAsked::NobodyOptedIn));
            return self.rendered(to, rendered);
        };
        let wanted = self.may_leave(&session, &owner.opt_in, &before);
        if wanted.is_empty() {
            let rendered = untouched(Transform::NotAsked(NotAsked::NothingToRewrite));
            return self.rendered(to, rendered);
        }
        let asked = Asked {
            client_id: owner.client_id,
            method: owner.opt_in.carrier.method(),
            sections: wanted
                .iter()
                .map(|section| section.id.to_string())
                .collect(),
            ms: 0,
        };
        let params = SystemMessageTransformParams {
            channel: session.to_string(),
            sections: wanted.into_iter().map(to_be_rewritten).collect(),
        };
        let (deadline_ms, method) = (self.limits.transform_deadline_ms, asked.method);
        let purpose = Purpose::Render(Box::new(Rendering {
            to,
            chat: id,
            turn_id,
            before,
            asked,
        }));
        if let Err(Purpose::Render(rendering)) =
            self.ask_client(owner.peer, method, &params, deadline_ms, purpose)
        {
            self.passed_through(*rendering, TransformFailure::Busy, 0);
        }
    }

    /// The active client that started the turn if it opted in, else the first that did; who is not connected, or is
    /// older than the gate, is passed over (G-35).
    fn owner(&self, chat: &ChannelUri, author: Option<&str>) -> Option<(ChannelUri, Owner)> {
        let uri = self.chat(chat)?.session.clone();
        let session = self.session_state(&uri)?;
        let author = author.and_then(|author| entry_of(session, author));
        let own = author.and_then(|entry| self.opted_in(entry));
        let mut entries = session.active_clients.iter();
        let owner = own.or_else(|| entries.find_map(|entry| self.opted_in(entry)))?;
        Some((uri, owner))
    }

    fn opted_in(&self, entry: &Value) -> Option<Owner> {
        let client_id = entry["clientId"].as_str()?;
        let peer = *self.clients.get(client_id)?;
        let ready = self.ready(peer)?;
        if self.peers.get(&peer)?.gone || !ext::may_be_asked(ready.version) {
            return None;
        }
        let default = || {
            let sections = ready.transform.clone()?;
            let carrier = Carrier::Extension;
            Some(OptIn { carrier, sections })
        };
        let opt_in = ext::of_entry(entry).or_else(default)?;
        let client_id = client_id.to_owned();
        (!opt_in.sections.is_empty()).then_some(Owner {
            peer,
            client_id,
            opt_in,
        })
    }

    /// Sections of this render that were opted in to, are in the agent's catalogue and not restricted.
    fn may_leave<'a>(
        &self,
        session: &ChannelUri,
        opt_in: &OptIn,
        before: &'a [Section],
    ) -> Vec<&'a Section> {
        let provider = self.session_state(session).map(|state| &state.provider);
        let mut agents = self.facts.agents.iter();
        let agent = agents.find(|agent| Some(&agent.provider) == provider);
        let catalogue = agent.map_or(&[][..], |agent| &agent.sections);
        let open = |id: &str| {
            let mut entries = catalogue.iter().filter(|entry| entry.id == id);
            entries.any(|entry| entry.restricted != Some(true))
        };
        let wanted = before.iter().filter(|section| {
            opt_in.sections.iter().any(|id| *id == section.id) && open(&section.id)
        });
        wanted.take(self.limits.transform_sections_max).collect()
    }

    pub(crate) fn transform_ended(&mut self, rendering: Rendering, reply: Reply, ms: u64) {
        let failure = match reply {
            Reply::Timeout => TransformFailure::Timeout,
            Reply::PeerGone => TransformFailure::PeerGone,
            Reply::Error(error) => TransformFailure::Error(error.code),
            Reply::Result { bytes, .. } if bytes > self.limits.transform_reply_bytes_max => {
                TransformFailure::TooLarge
            }
            Reply::Result { value, .. } => {
                match serde_json::from_value::<SystemMessageTransformResult>(value) {
                    Ok(result) => return self.rewritten(rendering, result, ms),
                    Err(_) => TransformFailure::Malformed,
                }
            }
        };
        self.passed_through(rendering, failure, ms);
    }

    fn rewritten(&mut self, rendering: Rendering, result: SystemMessageTransformResult, ms: u64) {
        let asked = Asked {
            ms,
            ..rendering.asked
        };
        // What nobody asked for does not count.
        let rewritten = result.sections.into_iter();
        let rewritten = rewritten.filter(|(id, _)| asked.sections.contains(id));
        let rendered = Rendered {
            chat: rendering.chat,
            turn_id: rendering.turn_id,
            at: self.now,
            before: rendering.before,
            rewritten: rewritten
                .map(|(id, section)| (id, section.content))
                .collect(),
            transform: Transform::Rewritten(asked),
        };
        self.rendered(rendering.to, rendered);
    }

    fn passed_through(&mut self, rendering: Rendering, failure: TransformFailure, ms: u64) {
        let asked = Asked {
            ms,
            ..rendering.asked
        };
        let rendered = Rendered {
            chat: rendering.chat,
            turn_id: rendering.turn_id,
            at: self.now,
            before: rendering.before,
            rewritten: BTreeMap::new(),
            transform: Transform::PassedThrough(asked, failure),
        };
        self.rendered(rendering.to, rendered);
    }

    /// A render is done. A run that is over hears nothing of it.
    fn rendered(&mut self, to: Renderer, rendered: Rendered) {
        *self.renders.entry(rendered.transform.word()).or_default() += 1;
        match to {
            Renderer::Run { run, render } => {
                let chat = self.runs.get(&run).and_then(|chat| self.chat(chat));
                let Some(session) = chat.map(|chat| chat.session.clone()) else {
                    return; // the run was stopped while a client was asked
                };
                let reply = AgentReply::Rendered {
                    render,
                    sections: rendered.after(),
                };
                self.record_render(session, rendered);
                self.out.effects.push(Effect::Reply { run, reply });
            }
            Renderer::Session(session) => self.record_render(session, rendered),
        }
    }

    fn record_render(&mut self, session: ChannelUri, rendered: Rendered) {
        let rendered = Box::new(rendered);
        let effect = Effect::RecordRender { session, rendered };
        self.out.effects.push(effect);
    }

    /// How often renders ended in what, by the words of [`Transform::word`].
    pub fn renders(&self) -> &BTreeMap<&'static str, u64> {
        &self.renders
    }
}

fn to_be_rewritten(section: &Section) -> (String, SystemMessageTransformSection) {
    let content = section.content.to_string();
    (
        section.id.to_string(),
        SystemMessageTransformSection { content },
    )
}
