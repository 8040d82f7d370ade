//! What clients do: everything they may, and some things they may not.

use serde_json::{Value, json};
use testkit::chance::Chance;
use testkit::mirror::Mirror;
use testkit::{ROOT, default_chat};

use crate::story::Story;

impl Story {
    pub(crate) fn client_does_something(&mut self, client: usize) {
        if !self.world.is_up() {
            return;
        }
        let (linked, ready, waits) = {
            let state = &self.world.clients[client];
            (state.link.is_some(), state.ready, !state.pending.is_empty())
        };
        match (linked, ready, waits) {
            (false, ..) => self.arrives(client),
            (true, false, true) => {}
            (true, false, false) => self.introduces_itself(client),
            (true, true, _) => self.does_a_verb(client),
        }
    }

    pub(crate) fn arrives(&mut self, client: usize) {
        self.world.connect(client);
        self.introduces_itself(client);
    }

    fn introduces_itself(&mut self, client: usize) {
        let state = &self.world.clients[client];
        // One that sees a part of a chat does not forget that it did: whether the whole that it asks for anew ever
        // arrived, nobody could tell.
        let windowed = |mirror: &Mirror| {
            mirror
                .chat()
                .is_some_and(|chat| chat.turns_next_cursor.is_some())
        };
        let anew = !state.mirrors.values().any(windowed) && self.chance.percent(5);
        let state = &self.world.clients[client];
        if state.known && !anew {
            let params = state.reconnect_params();
            return self.asks(client, "reconnect", params);
        }
        let mut wanted: Vec<String> = state.mirrors.keys().cloned().collect();
        wanted.push(ROOT.to_owned());
        let mut params = state.initialize_params(&wanted);
        self.wishes_by_default(&mut params);
        self.asks(client, "initialize", params);
    }

    /// A chat of the session, as far as the client knows; sometimes one that may be anywhere or nowhere.
    fn some_chat(&mut self, client: usize, session: &str) -> String {
        let known: Vec<String> = match self.world.clients[client].mirrors.get(session) {
            Some(Mirror::Session(state)) => state
                .chats
                .iter()
                .map(|chat| chat.resource.clone())
                .collect(),
            _ => Vec::new(),
        };
        match self.chance.below(10) {
            0..=3 => default_chat(session),
            4 => self.named_chat(),
            _ => match self.chance.pick(&known) {
                Some(chat) => chat.clone(),
                None => default_chat(session),
            },
        }
    }

    pub(crate) fn asks(&mut self, client: usize, method: &str, params: Value) {
        let (_, text) = self.world.clients[client].request(method, params);
        self.world.send(client, text);
    }

    pub(crate) fn dispatches(&mut self, client: usize, channel: &str, action: Value) {
        let (_, text) = self.world.clients[client].dispatch(channel, action);
        self.world.send(client, text);
    }

    fn does_a_verb(&mut self, client: usize) {
        if self.chance.percent(60) && self.rewrites(client) {
            return;
        }
        let session = self
            .chance
            .pick(&self.sessions.clone())
            .cloned()
            .unwrap_or_default();
        let chat = self.some_chat(client, &session);
        let id = self.world.clients[client].id.clone();
        match self.chance.below(100) {
            0 | 1 => {
                let mut params = json!({"channel": session});
                if self.chance.percent(30) {
                    params["activeClient"] = json!({"clientId": id, "tools": []});
                    self.wishes(&mut params["activeClient"]);
                }
                self.asks(client, "createSession", params);
            }
            2..=9 => self.subscribes(client, &session, chat),
            10 => self.unsubscribes(client),
            11..=21 => self.starts_a_turn(client, &chat),
            22..=25 => self.ends_or_resumes(client, &chat),
            26..=33 => self.changes_something_small(client, &session, &chat),
            34..=36 => {
                let tools = match self.chance.below(3) {
                    0 => json!([]),
                    1 => json!([{"name": "open"}]),
                    _ => json!([{"name": "edit"}, {"name": "open", "title": "Open"}]),
                };
                let mut entry = json!({"clientId": id, "tools": tools});
                self.wishes(&mut entry);
                let action = json!({"type": "session/activeClientSet", "activeClient": entry});
                self.dispatches(client, &session, action);
            }
            37 => {
                let action = json!({"type": "session/activeClientRemoved", "clientId": id});
                self.dispatches(client, &session, action);
            }
            38..=40 => self.fetches(client, &chat),
            41 if self.chance.percent(20) => {
                self.asks(client, "disposeSession", json!({"channel": session}));
            }
            42..=44 => self.does_what_it_may_not(client, &session, &chat),
            45 => {
                let limit = 1 + self.chance.below(3);
                let params = json!({"channel": ROOT, "limit": limit});
                self.asks(client, "listSessions", params);
            }
            46..=57 => self.lets_wait(client, &chat),
            58..=60 => self.truncates(client, &chat),
            61..=64 => self.opens_a_chat(client, &session, &chat),
            65 => self.closes_a_chat(client, &chat),
            66 => {
                let action = json!({"type": "session/defaultChatChanged", "defaultChat": chat});
                self.dispatches(client, &session, action);
            }
            67 | 68 => self.says_it_again(client),
            69 | 70 => self.opts_in(client, &session),
            _ => self.consents(client, &chat),
        }
    }

    pub(crate) fn subscribes(&mut self, client: usize, session: &str, chat: String) {
        let channel = if self.chance.percent(60) {
            chat
        } else {
            session.to_owned()
        };
        let mut params = json!({"channel": channel});
        if self.windows && self.chance.percent(50) {
            params["view"] = json!({"turns": self.chance.below(4)});
        }
        if self.chance.percent(20) {
            params["delivery"] = json!({"maxLatencyMs": 20});
        }
        self.asks(client, "subscribe", params);
    }

    /// Titles, flags, drafts, settings.
    fn changes_something_small(&mut self, client: usize, session: &str, chat: &str) {
        let on = self.chance.percent(50);
        let number = self.chance.below(3);
        let (channel, action) = match self.chance.below(8) {
            0 => {
                let channel = if on { chat } else { session };
                let title = format!("named {number}");
                (
                    channel,
                    json!({"type": "session/titleChanged", "title": title}),
                )
            }
            1 => (
                session,
                json!({"type": "session/isReadChanged", "isRead": on}),
            ),
            2 => (
                session,
                json!({"type": "session/isArchivedChanged", "isArchived": on}),
            ),
            3 => (
                chat,
                json!({"type": "chat/isArchivedChanged", "isArchived": on}),
            ),
            4 => (chat, json!({"type": "chat/isReadChanged", "isRead": on})),
            5 => {
                let mut action = json!({"type": "chat/draftChanged"});
                if on {
                    action["draft"] = json!({"text": "dra", "origin": {"kind": "user"}});
                }
                (chat, action)
            }
            6 => {
                let paces = ["instant", "typing", "never"];
                let pace = self.chance.pick(&paces);
                (
                    session,
                    json!({"type": "session/configChanged", "config": {"pace": pace}}),
                )
            }
            _ => {
                let level = if on { "info" } else { "debug" };
                let config = json!({"logLevel": level, "other": 1});
                (
                    ROOT,
                    json!({"type": "root/configChanged", "config": config}),
                )
            }
        };
        self.dispatches(client, channel, action);
    }

    fn does_what_it_may_not(&mut self, client: usize, session: &str, chat: &str) {
        match self.chance.below(4) {
            0 => self.asks(client, "ping", json!({"channel": ROOT})), // this it may
            1 => {
                let delta =
                    json!({"type": "chat/delta", "turnId": "t", "partId": "p", "content": ""});
                self.dispatches(client, chat, delta);
            }
            2 => self.dispatches(client, session, json!({"type": "x-nobody/knows"})),
            _ => self.asks(client, "noSuchMethod", json!({"channel": ROOT})),
        }
    }

    /// Not while the channel's snapshot is on its way: what it means then is the client's own trouble.
    pub(crate) fn is_pending(&self, client: usize, channel: &str) -> bool {
        self.world.clients[client]
            .pending
            .values()
            .any(|pending| pending.channel == channel)
    }

    fn unsubscribes(&mut self, client: usize) {
        let channels: Vec<String> = self.world.clients[client]
            .mirrors
            .keys()
            .filter(|channel| *channel != ROOT)
            .cloned()
            .collect();
        let Some(channel) = self.chance.pick(&channels).cloned() else {
            return;
        };
        if self.is_pending(client, &channel) {
            return;
        }
        let message =
            json!({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": channel}});
        self.world.send(client, message.to_string());
        self.world.clients[client].mirrors.remove(&channel);
    }

    fn starts_a_turn(&mut self, client: usize, chat: &str) {
        let mood = self.mood();
        self.world.models.next.push_back(mood);
        if !self.chance.percent(10) {
            self.turns += 1; // otherwise an id that was used before
        }
        let mut action = json!({
            "type": "chat/turnStarted",
            "turnId": format!("t{}", self.turns),
            "startedAt": self.world.now.to_rfc3339(),
            "message": {"text": "hello", "origin": {"kind": "user"}},
        });
        if self.chance.percent(30) {
            action["message"]["attachments"] = self.attachments();
        }
        self.dispatches(client, chat, action);
    }

    /// Bodies around the bound above which they are moved out, some of them the same.
    pub(crate) fn attachments(&mut self) -> Value {
        let one = |chance: &mut Chance| {
            let data = "ABCD".repeat(chance.index(16));
            json!({"type": "embeddedResource", "label": "l", "contentType": "x/y", "data": data})
        };
        let many = self.chance.below(3);
        (0..many).map(|_| one(&mut self.chance)).collect()
    }

    fn ends_or_resumes(&mut self, client: usize, chat: &str) {
        let mirror = self.world.clients[client]
            .mirrors
            .get(chat)
            .and_then(|mirror| mirror.chat());
        let active = mirror
            .and_then(|chat| chat.active_turn.as_ref())
            .map(|turn| turn.id.clone());
        let last = mirror
            .and_then(|chat| chat.turns.last())
            .map(|turn| turn.id.clone());
        let action = match (active, last) {
            (Some(_), _) if self.chance.percent(60) => return, // most turns are left alone
            (Some(turn), _) => json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 7}),
            (None, Some(turn)) => json!({"type": "chat/turnResume", "turnId": turn}),
            (None, None) => json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": -7}),
        };
        self.dispatches(client, chat, action);
    }

    fn fetches(&mut self, client: usize, chat: &str) {
        if self.is_pending(client, chat) {
            return;
        }
        let mirror = self.world.clients[client]
            .mirrors
            .get(chat)
            .and_then(|mirror| mirror.chat());
        let Some(mirror) = mirror else { return };
        let mut params = json!({"channel": chat});
        if let Some(cursor) = mirror
            .turns_next_cursor
            .clone()
            .filter(|_| self.chance.percent(60))
        {
            params["cursor"] = json!(cursor);
        }
        self.asks(client, "fetchTurns", params);
    }
}
