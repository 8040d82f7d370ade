//! What clients do: everything they may, and some things they may not.

use serde_json::{Value, json};
use testkit::mirror::Mirror;
use testkit::rng::SeededRng;
use testkit::{ROOT, default_chat};

use crate::annotations::annotations_of;
use crate::simulation::Simulation;

impl Simulation {
    pub(crate) fn act_as_client(&mut self, client: usize) {
        if !self.world.is_up() {
            return;
        }
        let (linked, ready, waits) = {
            let state = &self.world.clients[client];
            (state.link.is_some(), state.ready, !state.pending.is_empty())
        };
        match (linked, ready, waits) {
            (false, ..) => self.connect_client(client),
            (true, false, true) => {}
            (true, false, false) => self.introduce_client(client),
            (true, true, _) => self.act_when_ready(client),
        }
    }

    pub(crate) fn connect_client(&mut self, client: usize) {
        self.world.connect(client);
        self.introduce_client(client);
    }

    fn introduce_client(&mut self, client: usize) {
        let state = &self.world.clients[client];
        // One that sees a part of a chat does not forget that it did: whether the whole that it asks for anew ever
        // arrived is unknown.
        let windowed =
            |mirror: &Mirror| mirror.chat().is_some_and(|chat| chat.turns_next_cursor.is_some());
        let anew = !state.mirrors.values().any(windowed) && self.rng.percent(5);
        let state = &self.world.clients[client];
        if state.known && !anew {
            let params = state.reconnect_params();
            return self.request(client, "reconnect", params);
        }
        let mut channels: Vec<String> = state.mirrors.keys().cloned().collect();
        channels.push(ROOT.to_owned());
        let mut params = state.initialize_params(&channels);
        self.add_default_transform(&mut params);
        self.request(client, "initialize", params);
    }

    /// A chat of the session, as far as the client knows; sometimes one that may be anywhere or nowhere.
    fn pick_chat(&mut self, client: usize, session: &str) -> String {
        let known: Vec<String> = match self.world.clients[client].mirrors.get(session) {
            Some(Mirror::Session(state)) => {
                state.chats.iter().map(|chat| chat.resource.clone()).collect()
            }
            _ => Vec::new(),
        };
        match self.rng.below(10) {
            0..=3 => default_chat(session),
            4 => self.pick_chat_name(),
            _ => match self.rng.pick(&known) {
                Some(chat) => chat.clone(),
                None => default_chat(session),
            },
        }
    }

    pub(crate) fn request(&mut self, client: usize, method: &str, params: Value) {
        let (_, text) = self.world.clients[client].request(method, params);
        self.world.send(client, text);
    }

    pub(crate) fn dispatch(&mut self, client: usize, channel: &str, action: Value) {
        let (_, text) = self.world.clients[client].dispatch(channel, action);
        self.world.send(client, text);
    }

    fn act_when_ready(&mut self, client: usize) {
        if self.rng.percent(60) && self.answer_transform(client) {
            return;
        }
        let session = self.rng.pick(&self.sessions.clone()).cloned().unwrap_or_default();
        let chat = self.pick_chat(client, &session);
        let id = self.world.clients[client].id.clone();
        match self.rng.below(100) {
            0 | 1 => {
                let mut params = json!({"channel": session});
                if self.rng.percent(30) {
                    params["activeClient"] = json!({"clientId": id, "tools": []});
                    self.add_transform(&mut params["activeClient"]);
                }
                self.request(client, "createSession", params);
            }
            2..=9 => self.subscribe(client, &session, chat),
            10 => self.unsubscribe(client),
            11..=21 => self.start_turn(client, &chat),
            22..=25 => self.end_or_resume_turn(client, &chat),
            26..=33 => self.change_small_state(client, &session, &chat),
            34..=36 => {
                let tools = match self.rng.below(3) {
                    0 => json!([]),
                    1 => json!([{"name": "open"}]),
                    _ => json!([{"name": "edit"}, {"name": "open", "title": "Open"}]),
                };
                let mut entry = json!({"clientId": id, "tools": tools});
                self.add_transform(&mut entry);
                let action = json!({"type": "session/activeClientSet", "activeClient": entry});
                self.dispatch(client, &session, action);
            }
            37 => {
                let action = json!({"type": "session/activeClientRemoved", "clientId": id});
                self.dispatch(client, &session, action);
            }
            38..=40 => self.fetch_turns(client, &chat),
            41 if self.rng.percent(20) => {
                self.request(client, "disposeSession", json!({"channel": session}));
            }
            42..=44 => self.attempt_forbidden_action(client, &session, &chat),
            45 => {
                let limit = 1 + self.rng.below(3);
                let params = json!({"channel": ROOT, "limit": limit});
                self.request(client, "listSessions", params);
            }
            46..=57 => self.change_pending_messages(client, &chat),
            58..=60 => self.truncate(client, &chat),
            61..=64 => self.create_chat(client, &session, &chat),
            65 => self.dispose_chat(client, &chat),
            66 => {
                let action = json!({"type": "session/defaultChatChanged", "defaultChat": chat});
                self.dispatch(client, &session, action);
            }
            67 | 68 => self.repeat_decision(client),
            69 | 70 => self.opt_in(client, &session),
            71..=75 => self.annotate(client, &session),
            _ => self.answer_block(client, &chat),
        }
    }

    pub(crate) fn subscribe(&mut self, client: usize, session: &str, chat: String) {
        let channel = if self.rng.percent(60) {
            chat
        } else if self.rng.percent(25) {
            annotations_of(session)
        } else {
            session.to_owned()
        };
        let mut params = json!({"channel": channel});
        if self.windows && self.rng.percent(50) {
            params["view"] = json!({"turns": self.rng.below(4)});
        }
        if self.rng.percent(20) {
            params["delivery"] = json!({"maxLatencyMs": 20});
        }
        self.request(client, "subscribe", params);
    }

    /// Titles, flags, drafts, settings.
    fn change_small_state(&mut self, client: usize, session: &str, chat: &str) {
        let on = self.rng.percent(50);
        let number = self.rng.below(3);
        let (channel, action) = match self.rng.below(8) {
            0 => {
                let channel = if on { chat } else { session };
                let title = format!("named {number}");
                (channel, json!({"type": "session/titleChanged", "title": title}))
            }
            1 => (session, json!({"type": "session/isReadChanged", "isRead": on})),
            2 => (session, json!({"type": "session/isArchivedChanged", "isArchived": on})),
            3 => (chat, json!({"type": "chat/isArchivedChanged", "isArchived": on})),
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
                let pace = self.rng.pick(&paces);
                (session, json!({"type": "session/configChanged", "config": {"pace": pace}}))
            }
            _ => {
                let level = if on { "info" } else { "debug" };
                let config = json!({"logLevel": level, "other": 1});
                (ROOT, json!({"type": "root/configChanged", "config": config}))
            }
        };
        self.dispatch(client, channel, action);
    }

    fn attempt_forbidden_action(&mut self, client: usize, session: &str, chat: &str) {
        match self.rng.below(4) {
            0 => self.request(client, "ping", json!({"channel": ROOT})), // this it may
            1 => {
                let delta =
                    json!({"type": "chat/delta", "turnId": "t", "partId": "p", "content": ""});
                self.dispatch(client, chat, delta);
            }
            2 => self.dispatch(client, session, json!({"type": "x-nobody/knows"})),
            _ => self.request(client, "noSuchMethod", json!({"channel": ROOT})),
        }
    }

    /// Not while the channel's snapshot is on its way: what it means then is the client's own trouble.
    pub(crate) fn is_pending(&self, client: usize, channel: &str) -> bool {
        self.world.clients[client].pending.values().any(|pending| pending.channel == channel)
    }

    fn unsubscribe(&mut self, client: usize) {
        let channels: Vec<String> = self.world.clients[client]
            .mirrors
            .keys()
            .filter(|channel| *channel != ROOT)
            .cloned()
            .collect();
        let Some(channel) = self.rng.pick(&channels).cloned() else { return };
        if self.is_pending(client, &channel) {
            return;
        }
        let message =
            json!({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": channel}});
        self.world.send(client, message.to_string());
        self.world.clients[client].mirrors.remove(&channel);
    }

    fn start_turn(&mut self, client: usize, chat: &str) {
        let script = self.random_script();
        self.world.models.next.push_back(script);
        if !self.rng.percent(10) {
            self.turns += 1; // otherwise an id that was used before
        }
        let mut action = json!({
            "type": "chat/turnStarted",
            "turnId": format!("t{}", self.turns),
            "startedAt": self.world.now.to_rfc3339(),
            "message": {"text": "hello", "origin": {"kind": "user"}},
        });
        if self.rng.percent(30) {
            action["message"]["attachments"] = self.attachments();
        }
        self.dispatch(client, chat, action);
    }

    /// Bodies around the bound above which they are moved out, some of them the same.
    pub(crate) fn attachments(&mut self) -> Value {
        let one = |rng: &mut SeededRng| {
            if rng.percent(15) {
                let uri = format!("vscode-remote://h/{}", rng.below(3));
                return json!({"type": "resource", "label": "l", "uri": uri});
            }
            let data = "ABCD".repeat(rng.index(16));
            json!({"type": "embeddedResource", "label": "l", "contentType": "x/y", "data": data})
        };
        let many = self.rng.below(3);
        (0..many).map(|_| one(&mut self.rng)).collect()
    }

    fn end_or_resume_turn(&mut self, client: usize, chat: &str) {
        let mirror = self.world.clients[client].mirrors.get(chat).and_then(|mirror| mirror.chat());
        let active = mirror.and_then(|chat| chat.active_turn.as_ref()).map(|turn| turn.id.clone());
        let last = mirror.and_then(|chat| chat.turns.last()).map(|turn| turn.id.clone());
        let action = match (active, last) {
            (Some(_), _) if self.rng.percent(60) => return, // most turns are left alone
            (Some(turn), _) => json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 7}),
            (None, Some(turn)) => json!({"type": "chat/turnResume", "turnId": turn}),
            (None, None) => json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": -7}),
        };
        self.dispatch(client, chat, action);
    }

    fn fetch_turns(&mut self, client: usize, chat: &str) {
        if self.is_pending(client, chat) {
            return;
        }
        let mirror = self.world.clients[client].mirrors.get(chat).and_then(|mirror| mirror.chat());
        let Some(mirror) = mirror else { return };
        let mut params = json!({"channel": chat});
        if let Some(cursor) = mirror.turns_next_cursor.clone().filter(|_| self.rng.percent(60)) {
            params["cursor"] = json!(cursor);
        }
        self.request(client, "fetchTurns", params);
    }
}
