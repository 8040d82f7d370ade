//! What agents say between turns, and what they are told and asked outside of them: models, settings, titles, tokens, idle chats.

use kernel::{Input, SessionChange, SessionNews, TokenText};
use serde_json::{Value, json};
use testkit::{ROOT, Scenario, ScenarioClient};
use wire::ChannelUri;

fn says(s: &mut Scenario, session: &str, change: SessionChange) {
    let news = SessionNews {
        provider: "scripted".to_owned(),
        session: ChannelUri::parse(session).unwrap(),
        change,
    };
    s.world().input(Input::News(news));
    s.settles();
}

fn setting(name: &str, value: Value) -> SessionChange {
    SessionChange::Setting { name: name.to_owned(), value }
}

fn title(text: &str) -> SessionChange {
    SessionChange::Title(text.to_owned())
}

fn title_of(client: &ScenarioClient) -> Value {
    client.sees(&client.session())["title"].clone()
}

fn pace_of(client: &ScenarioClient) -> Value {
    client.sees(&client.session())["config"]["values"]["pace"].clone()
}

fn renames(client: &ScenarioClient, title: &str) {
    let action = json!({"type": "session/titleChanged", "title": title});
    client.tries(&client.session(), action).unwrap();
}

/// The host starts anew with an agent that has a setting of dynamic values, and takes tokens.
fn with_dynamic_setting(s: &mut Scenario) {
    s.host_is_killed();
    {
        let mut world = s.world();
        let agent = &mut world.facts.agents[0];
        agent.config_schema["properties"]["agent_mode"] = json!({
            "type": "string", "title": "Mode", "enumDynamic": true, "sessionMutable": true,
        });
        agent.info["protectedResources"] =
            json!([{"resource": "https://api.example", "required": false}]);
        world.agents_heard.values = vec![
            json!({"value": "code", "label": "Write code"}),
            json!({"value": "architect", "label": "Plan"}),
        ];
    }
    s.host_restarts();
}

// H-105
#[test]
fn an_agent_that_changes_while_chats_run_is_announced_and_nothing_stops() {
    let (mut s, ann) = Scenario::with_chat();
    let bob = s.client("bob").arrives();
    s.model().streams(["a"]).asks_for_text("go on?").streams(["b"]);
    ann.sends_message("go");
    let changed = {
        let mut world = s.world();
        let agent = &mut world.facts.agents[0];
        let models = agent.info["models"].as_array_mut().unwrap();
        models.push(json!({"id": "new", "name": "New", "provider": "scripted"}));
        agent.clone()
    };
    s.world().input(Input::AgentChanged(Box::new(changed.clone())));
    s.settles();
    for client in [&ann, &bob] {
        let models = client.sees(ROOT)["agents"][0]["models"].clone();
        assert_eq!(models[2]["id"], "new");
    }
    assert!(bob.received_actions().contains(&"root/agentsChanged".to_owned()));
    s.world().input(Input::AgentChanged(Box::new(changed)));
    s.settles();
    assert_eq!(bob.received_actions(), [""; 0], "nothing changed");
    ann.answers_text("yes").unwrap();
    assert_eq!(ann.reads(), "ab");
}

// G-15
#[test]
fn an_agent_that_changes_while_the_disk_is_full_is_announced_when_it_is_not() {
    let (mut s, ann) = Scenario::with_chat();
    s.faults().break_disk();
    ann.dispatches(&ann.session(), json!({"type": "session/titleChanged", "title": "lost"}));
    s.settles();
    let changed = {
        let mut world = s.world();
        world.facts.agents[0].info["description"] = json!("other");
        world.facts.agents[0].clone()
    };
    s.world().input(Input::AgentChanged(Box::new(changed)));
    let session = ann.session();
    for value in ["typing", "instant", "typing"] {
        says(&mut s, &session, setting("pace", json!(value)));
    }
    says(&mut s, &session, title("by the agent"));
    assert_ne!(ann.sees(ROOT)["agents"][0]["description"], "other");
    s.faults().mend_disk();
    s.advances_in_steps(3_000, 500);
    assert_eq!(ann.sees(ROOT)["agents"][0]["description"], "other");
    assert_eq!((pace_of(&ann), title_of(&ann)), (json!("typing"), json!("by the agent")));
}

#[test]
fn a_setting_that_an_agent_changes_is_checked_and_announced() {
    let (mut s, ann, bob) =
        Scenario::with(|limits| limits.channel_idle_ms = 1_000).and_shared_chat();
    let session = ann.session();
    says(&mut s, &session, setting("pace", json!("typing")));
    assert_eq!(pace_of(&bob), "typing");
    for bad in
        [setting("pace", json!("fast")), setting("pace", json!(3)), setting("none", json!(1))]
    {
        says(&mut s, &session, bad);
        assert_eq!(pace_of(&bob), "typing");
    }
    assert_eq!(s.look().agents_heard.settings, [], "it knows what it said itself");
    let other = SessionNews {
        provider: "single".to_owned(),
        session: ChannelUri::parse(&session).unwrap(),
        change: setting("pace", json!("instant")),
    };
    s.world().input(Input::News(other));
    says(&mut s, "ahp-session:/none", setting("pace", json!("instant")));
    says(&mut s, &ann.chat(), setting("pace", json!("instant")));
    assert_eq!(pace_of(&bob), "typing", "it is not theirs");
    ann.sends_message("hi");
    s.advances_in_steps(5_000, 500);
    says(&mut s, &session, setting("pace", json!("instant")));
    assert_eq!(pace_of(&bob), "instant", "a session at rest is loaded for it");
}

#[test]
fn a_title_that_a_client_has_set_is_not_replaced_by_an_agent() {
    let (mut s, ann) = Scenario::with_chat();
    let session = ann.session();
    says(&mut s, &session, title("first"));
    assert_eq!(title_of(&ann), "first");
    says(&mut s, &session, title("second"));
    assert_eq!(title_of(&ann), "second");
    renames(&ann, "mine");
    s.host_is_killed();
    s.host_restarts_for([&ann]);
    says(&mut s, &session, title("third"));
    s.model().emits(agent_api::AgentEvent::Title("fourth".to_owned()));
    ann.sends_message("go");
    assert_eq!(title_of(&ann), "mine");
}

#[test]
fn an_agent_hears_of_settings_that_a_client_changes_in_the_middle_of_a_turn() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().asks_for_text("go on?");
    ann.sends_message("go");
    let change = |pace: &str| json!({"type": "session/configChanged", "config": {"pace": pace}});
    ann.tries(&ann.session(), change("typing")).unwrap();
    let heard = s.look().agents_heard.settings.clone();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].0, ann.session());
    assert_eq!(Value::Object(heard[0].1.clone()), json!({"pace": "typing", "fixed": "f"}));
    ann.tries(&ann.session(), change("typing")).unwrap();
    assert!(ann.tries(&ann.session(), change("fast")).is_err());
    s.faults().break_disk();
    assert!(ann.tries(&ann.session(), change("instant")).is_err());
    assert_eq!(s.look().agents_heard.settings.len(), 1, "what was not recorded is not told");
    s.faults().mend_disk();
    s.advances_in_steps(3_000, 500);
}

// ADR 0004
#[test]
fn an_agent_hears_of_chats_that_leave_memory_and_of_those_that_are_gone() {
    let (mut s, ann) = Scenario::with(|limits| limits.channel_idle_ms = 1_000).and_chat();
    ann.sends_message("hi");
    let second = ann.creates_chat("ahp-chat:/b");
    second.sends_message("hi");
    s.model().asks_for_text("go on?");
    second.sends_message("wait");
    s.advances_in_steps(5_000, 500);
    assert_eq!(s.look().agents_heard.unloaded, [ann.chat()], "one that works stays");
    assert_eq!(s.look().agents_heard.ended, [""; 0]);
    second.answers_text("yes").unwrap();
    ann.disposes_of("ahp-chat:/b").unwrap();
    assert_eq!(s.look().agents_heard.ended, ["ahp-chat:/b"]);
}

// G-15: what is still there has not ended
#[test]
fn a_chat_whose_end_could_not_be_written_has_not_ended_for_its_agent() {
    let (mut s, ann) = Scenario::with_chat();
    ann.creates_chat("ahp-chat:/b").sends_message("hi");
    s.faults().break_disk();
    assert!(ann.disposes_of("ahp-chat:/b").is_err());
    assert_eq!(s.look().agents_heard.ended, [""; 0]);
    s.faults().mend_disk();
    s.advances_in_steps(3_000, 500);
    assert_eq!(ann.chats().len(), 2);
    ann.disposes_of("ahp-chat:/b").unwrap();
    assert_eq!(s.look().agents_heard.ended, ["ahp-chat:/b"]);
}

// H-121
#[test]
fn values_of_a_dynamic_setting_come_from_its_agent() {
    let (mut s, ann) = Scenario::with_chat();
    with_dynamic_setting(&mut s);
    ann.reconnects();
    let ask = |params: Value| ann.asks("sessionConfigCompletions", params);
    let all = ask(json!({"property": "agent_mode"})).unwrap();
    assert_eq!(all["items"].as_array().unwrap().len(), 2);
    let plan = ask(json!({"property": "agent_mode", "query": "PLA"})).unwrap();
    assert_eq!(plan["items"], json!([{"value": "architect", "label": "Plan"}]));
    assert_eq!(ask(json!({"property": "agent_mode", "query": "x"})).unwrap()["items"], json!([]));
    assert_eq!(ask(json!({"property": "pace"})).unwrap()["items"], json!([]));
    let code = |params: Value| ask(params).unwrap_err()["code"].clone();
    assert_eq!(code(json!({"property": "none"})), -32602);
    assert_eq!(code(json!({"property": "agent_mode", "provider": "none"})), -32002);
    assert_eq!(code(json!({"property": "agent_mode", "channel": "ahp-session:/none"})), -32001);
    let mine = ann.clone().creates("ahp-session:/dynamic");
    let params = json!({"property": "agent_mode", "channel": mine.session()});
    assert_eq!(ask(params).unwrap()["items"].as_array().unwrap().len(), 2);
    let asked = s.look().agents_heard.asked.clone();
    let sessions: Vec<Option<String>> =
        asked.iter().map(|asked| asked.session.as_ref().map(ToString::to_string)).collect();
    assert_eq!(sessions, [None, None, None, Some(mine.session())]);
    let change = json!({"type": "session/configChanged", "config": {"agent_mode": "code"}});
    mine.tries(&mine.session(), change).unwrap();
}

// H-316, H-318
#[test]
fn a_token_for_an_advertised_resource_reaches_its_agent_and_nothing_else() {
    let (mut s, ann) = Scenario::with_chat();
    with_dynamic_setting(&mut s);
    ann.reconnects();
    let bring = |token: &str, more: Value| {
        let mut params = json!({"resource": "https://api.example", "token": token});
        for (field, value) in more.as_object().unwrap() {
            params[field] = value.clone();
        }
        ann.asks("authenticate", params)
    };
    assert_eq!(bring("sk-1", json!({"expiresIn": 60})), Ok(json!({})));
    assert_eq!(bring("", json!({})), Ok(json!({})));
    let tokens = s.look().agents_heard.tokens.clone();
    let brought: Vec<(&str, &TokenText, Option<u64>)> = tokens
        .iter()
        .map(|brought| (brought.provider.as_str(), &brought.token, brought.expires_in_s))
        .collect();
    assert_eq!(
        brought,
        [
            ("scripted", &TokenText("sk-1".to_owned()), Some(60)),
            ("scripted", &TokenText(String::new()), None),
        ]
    );
    for bad in [
        json!({"resource": "https://other.example"}),
        json!({"expiresIn": 0}),
        json!({"expiresIn": -5}),
        json!({"token": "a\nb"}),
        json!({"token": "t".repeat(17 << 10)}),
        json!({"channel": "ahp-session:/x"}),
    ] {
        let error = bring("sk-2", bad.clone()).unwrap_err();
        assert_eq!(error["code"], -32602, "{bad}");
        assert!(!error.to_string().contains("sk-2"));
    }
    assert_eq!(s.look().agents_heard.tokens.len(), 2);
    s.faults().break_disk();
    assert_eq!(bring("sk-3", json!({})), Ok(json!({})), "nothing is written");
    s.faults().mend_disk();
    let states = testkit::checker::host_states(&mut s.world());
    assert!(!json!(states).to_string().contains("sk-"));
}

// H-315
#[test]
fn an_agent_that_needs_a_token_begins_nothing_without_one() {
    let (mut s, ann) = Scenario::with_chat();
    with_dynamic_setting(&mut s);
    s.host_is_killed();
    let resource = json!({"resource": "https://api.example"});
    s.world().facts.agents[0].info["protectedResources"] = json!([resource]);
    s.host_restarts_for([&ann]);
    let create = |id: &str| {
        let params = json!({"channel": format!("ahp-session:/{id}"), "provider": "scripted"});
        ann.asks("createSession", params)
    };
    let assert_wanted = |error: Value| {
        assert_eq!(error["code"], -32007, "{error}");
        assert_eq!(error["data"], json!({"resources": [resource]}));
    };
    assert_wanted(create("early").unwrap_err());
    let config = json!({"provider": "scripted"});
    assert_wanted(ann.asks("resolveSessionConfig", config).unwrap_err());
    let chat = json!({"channel": ann.session(), "chat": "ahp-chat:/more"});
    assert_wanted(ann.asks("createChat", chat.clone()).unwrap_err());

    let bring = |token: &str| {
        let params = json!({"resource": "https://api.example", "token": token, "expiresIn": 60});
        ann.asks("authenticate", params).unwrap();
    };
    bring("sk-1");
    create("signed-in").unwrap();
    ann.asks("createChat", chat).unwrap();
    bring("");
    assert_wanted(create("signed-out").unwrap_err());
    bring("sk-2");
    create("again").unwrap();
    s.world().input(Input::TokenEnded {
        provider: "scripted".to_owned(),
        principal: None,
        resource: "https://api.example".to_owned(),
    });
    s.settles();
    assert_wanted(create("expired").unwrap_err());
}

// H-317
#[test]
fn who_watches_the_root_hears_that_a_token_ran_out() {
    let (mut s, ann) = Scenario::with_chat();
    with_dynamic_setting(&mut s);
    ann.reconnects();
    // Up to 0.7 a resource was named, since then it is described.
    let bob = s.client_of("bob", "0.8.0").arrives();
    let old = s.client_of("old", "0.7.0").arrives();
    let ends = |s: &mut Scenario, resource: &str| {
        s.world().input(Input::TokenEnded {
            provider: "scripted".to_owned(),
            principal: None,
            resource: resource.to_owned(),
        });
        s.settles();
    };
    ends(&mut s, "https://of-a-server.example");
    assert!(ann.notifications("auth/required").is_empty());
    ends(&mut s, "https://api.example");
    for client in [&ann, &bob, &old] {
        let told = client.notifications("auth/required");
        assert_eq!(told.len(), 1);
        assert_eq!(told[0]["reason"], "expired");
    }
    for client in [&ann, &bob] {
        let told = client.notifications("auth/required");
        assert_eq!(told[0]["resource"]["resource"], "https://api.example");
    }
    let named = old.notifications("auth/required");
    assert_eq!(named[0]["resource"], "https://api.example");
}
