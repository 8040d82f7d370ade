//! Sessions that are opened, reopened, lost and begun anew.

use agent_api::{Agent, AgentEvent};
use serde_json::{Value, json};

use super::harness::{Place, Played, until, user};

fn echo() -> Value {
    json!({"scenes": [{"steps": [{"say": ["[{{text}}] after [{{history}}]"]}]}]})
}

#[tokio::test]
async fn ag_42_a_new_process_goes_on_with_the_session() {
    for (without, method) in [
        (json!({}), "session/resume"),
        (json!({"agentCapabilities": {"sessionCapabilities": {"resume": null}}}), "session/load"),
    ] {
        let mut script = echo();
        script["initialize"] = without;
        script["replay"] = json!("after-response");
        script["resume_replays"] = json!(true);
        let place = Place::new(&script);
        let first = place.turn(&place.agent(), user("t1", "one")).await;
        assert_eq!(first.result, Ok(()));
        let agent = place.agent();
        let next = place.turn(&agent, user("t2", "two").after("t1", &first)).await;
        assert_eq!(next.result, Ok(()), "{method}");
        assert_eq!(place.count(method), 1, "{method}");
        assert_eq!(next.texts().len(), 1, "nothing of the replay is shown: {:?}", next.texts());
        assert!(next.texts()[0].starts_with("[two] after [[\"one\""), "{:?}", next.texts());
        assert_eq!(next.notices(), Vec::<&str>::new());
    }
}

#[tokio::test]
async fn ag_44_a_lost_session_begins_anew_with_a_transcript() {
    for error in [
        json!({"code": -32002, "message": "Resource not found"}),
        json!({"code": -32603, "message": "Internal error", "data": {"details": "no rollout found for thread id x"}}),
        json!({"code": -32603, "message": "Internal error: failure"}),
    ] {
        let place = Place::new(&echo());
        let first = place.turn(&place.agent(), user("t1", "one")).await;
        let mut script = echo();
        script["answers"] = json!([
            {"method": "session/resume", "answer": {"error": error}},
            {"method": "session/load", "answer": {"error": error}},
        ]);
        place.set_script(&script);
        let input = user("t2", "two").after("t1", &first).with_history("one", "I said this");
        let next = place.turn(&place.agent(), input).await;
        assert_eq!(next.result, Ok(()));
        assert!(next.notices()[0].contains("started anew"), "{:?}", next.notices());
        let prompt = place.frames("session/prompt").pop().unwrap();
        let blocks = &prompt["params"]["prompt"];
        assert_eq!(blocks[0]["resource"]["uri"], "greenroom:transcript");
        assert!(blocks[0]["resource"]["text"].as_str().unwrap().contains("I said this"));
        assert_eq!(blocks[1]["text"], "two");
    }
}

#[tokio::test]
async fn ag_42_a_method_that_is_offered_and_not_there_is_not_there() {
    let mut script = echo();
    let unknown = json!({"error": {"code": -32601, "message": "Method not found"}});
    script["answers"] = json!([{"method": "session/resume", "answer": unknown}]);
    let place = Place::new(&script);
    let first = place.turn(&place.agent(), user("t1", "one")).await;
    let next = place.turn(&place.agent(), user("t2", "two").after("t1", &first)).await;
    assert_eq!(next.result, Ok(()));
    assert_eq!((place.count("session/load"), place.count("session/new")), (1, 1));
}

#[tokio::test]
async fn ag_44_turns_that_were_taken_back_are_not_known() {
    let place = Place::new(&echo());
    let agent = place.agent();
    let first = place.turn(&agent, user("t1", "one")).await;
    let second = place.turn(&agent, user("t2", "two").after("t1", &first)).await;
    // The second turn was taken back.
    let third = user("t3", "three").after("t1", &second).with_history("one", "answer");
    let third = place.turn(&agent, third).await;
    assert_eq!(third.result, Ok(()));
    assert_eq!(place.count("session/new"), 2);
    assert!(third.texts()[0].ends_with("after [[]]"), "{:?}", third.texts());
    assert!(third.notices()[0].contains("taken back"), "{:?}", third.notices());

    // A fork has turns and no notes; it is not said.
    let fork = user("f1", "four").in_chat("fork").with_history("one", "answer");
    let mut fork = fork;
    fork.turn.last_turn_id = Some("t1".to_owned());
    let fork = place.turn(&agent, fork).await;
    assert_eq!(fork.notices(), Vec::<&str>::new());
    let prompt = place.frames("session/prompt").pop().unwrap();
    assert_eq!(prompt["params"]["prompt"][0]["resource"]["uri"], "greenroom:transcript");
    assert_eq!(place.starts(), 1, "chats share the process of the directory");
}

#[tokio::test]
async fn a_session_that_is_lost_in_a_live_process_is_reopened_once() {
    let mut script = echo();
    let lost = json!({"error": {"code": -32002, "message": "Resource not found"}});
    script["answers"] = json!([{"method": "session/prompt", "times": 1, "answer": lost}]);
    let place = Place::new(&script);
    let turn = place.turn(&place.agent(), user("t1", "one")).await;
    assert_eq!(turn.result, Ok(()));
    assert_eq!(place.count("session/prompt"), 2);
    assert!(turn.texts()[0].starts_with("[one]"));
}

#[tokio::test]
async fn ag_29_sign_in_is_tried_once_and_then_said() {
    let wanted = json!({"error": {"code": -32000, "message": "Authentication required"}});
    let methods = json!([{"id": "login", "name": "Login", "type": "terminal", "args": ["login"]}]);
    for method in ["session/new", "session/prompt"] {
        let mut script = echo();
        script["initialize"] = json!({"authMethods": methods});
        script["answers"] = json!([{"method": method, "until": "authenticate", "answer": wanted}]);
        let place = Place::new(&script);
        let error = place.turn(&place.agent(), user("t1", "one")).await.result.unwrap_err();
        assert_eq!((error.error_type.as_str(), error.resumable), ("agentSignIn", true), "{method}");
        assert!(error.message.contains(" login"), "{}", error.message);
        assert_eq!(place.count("authenticate"), 0);

        let agent = place.agent_with(|config| {
            config.auth = Some(crate::acp::AcpAuth::Method("login".to_owned()))
        });
        let turn = place.turn(&agent, user("t1", "one")).await;
        assert_eq!(turn.result, Ok(()), "{method}");
        assert_eq!(place.count("authenticate"), 1);
    }
}

#[tokio::test]
async fn ag_29_what_a_sign_in_misses_is_said() {
    let wanted = json!({"error": {"code": -32000, "message": "Authentication required"}});
    let refused = json!({"error": {"code": -32603, "message": "Internal error",
        "data": {"details": "no key is set", "envVars": ["SOME_API_KEY"]}}});
    for method in ["session/new", "session/prompt"] {
        let mut script = echo();
        script["initialize"] = json!({"authMethods": [{"id": "api-key", "name": "API Key"}]});
        script["answers"] = json!([
            {"method": method, "answer": wanted}, {"method": "authenticate", "answer": refused},
        ]);
        let place = Place::new(&script);
        let agent = place.agent_with(|config| {
            config.auth = Some(crate::acp::AcpAuth::Method("api-key".to_owned()))
        });
        let error = place.turn(&agent, user("t1", "one")).await.result.unwrap_err();
        assert_eq!(error.error_type, "agentSignIn", "{method}");
        for words in ["no key is set", "SOME_API_KEY", "`env_from`", "was tried"] {
            assert!(error.message.contains(words), "{method}: {}", error.message);
        }
        assert_eq!(place.count("authenticate"), 1, "{method}");
    }
}

#[tokio::test]
async fn ag_29_what_an_agent_says_of_its_sign_in_is_listed_later() {
    for (kind, expected) in [("api_key", true), ("none", false)] {
        let mut script = echo();
        let status = json!({"authStatus": {"kind": kind}});
        script["on_start"] =
            json!([{"notify": {"method": "_auth/status_update", "params": status}}]);
        let place = Place::new(&script);
        let turn = place.turn(&place.agent(), user("t1", "one")).await;
        assert_eq!(turn.result, Ok(()));
        // As another program reads it, which has no process of the agent.
        until(|| place.agent().report().signed_in == Some(expected)).await;
    }
}

#[tokio::test]
async fn ag_29_who_is_answered_is_signed_in() {
    let mut script = echo();
    let wanted = json!({"error": {"code": -32000, "message": "Authentication required"}});
    script["answers"] = json!([{"method": "session/prompt", "times": 1, "answer": wanted}]);
    let place = Place::new(&script);
    let agent = place.agent();
    let first = place.turn(&agent, user("t1", "one")).await;
    assert_eq!(first.result.clone().unwrap_err().error_type, "agentSignIn");
    assert_eq!(agent.report().signed_in, Some(false));
    let resumed = user("t1", "one").resumed(&first, "");
    assert_eq!(place.turn(&agent, resumed).await.result, Ok(()));
    assert_eq!(agent.report().signed_in, Some(true));
}

#[tokio::test]
async fn a_notice_between_turns_is_shown_once_with_the_next() {
    let notice = json!({"update": {"sessionUpdate": "notice", "severity": "warning", "title": "The quota is low"}});
    let steps = json!([{"say": ["x"]}, {"end": {}}, notice, notice, {"touch": "told"}]);
    let place = Place::new(&json!({"scenes": [{"steps": steps}]}));
    let agent = place.agent();
    let first = place.turn(&agent, user("t1", "x")).await;
    assert_eq!(first.notices(), Vec::<&str>::new());
    place.wait_for_file("told").await;
    let next = place.turn(&agent, user("t2", "x").after("t1", &first));
    assert_eq!(next.await.notices(), ["The quota is low"]);
}

#[tokio::test]
async fn the_model_is_named_where_the_agent_says_nothing_of_a_sign_in() {
    let mut script = echo();
    script["session"] = json!({"configOptions": [{"id": "model", "name": "Model", "category": "model", "type": "select",
        "currentValue": "free", "options": [{"value": "free", "name": "Free Pickle"}, {"value": "b", "name": "B"}]}]});
    let place = Place::new(&script);
    let agent = place.agent_with(|config| config.names_model = true);
    let first = place.turn(&agent, user("t1", "one")).await;
    assert!(first.notices()[0].contains("the model Free Pickle"), "{:?}", first.notices());
    let next = user("t2", "two").after("t1", &first);
    let next = place.turn(&agent, next).await;
    assert_eq!(next.notices(), Vec::<&str>::new(), "once in a session");
}

#[tokio::test]
async fn a_message_that_was_refused_is_said_again_when_the_turn_is_resumed() {
    let mut script = echo();
    let wanted = json!({"error": {"code": -32000, "message": "Authentication required"}});
    script["answers"] = json!([{"method": "session/prompt", "times": 1, "answer": wanted}]);
    let place = Place::new(&script);
    let agent = place.agent();
    let first = place.turn(&agent, user("t1", "one")).await;
    assert_eq!(first.result.clone().unwrap_err().error_type, "agentSignIn");
    let resumed = place.turn(&agent, user("t1", "one").resumed(&first, "")).await;
    assert_eq!(resumed.result, Ok(()));
    assert!(resumed.texts()[0].starts_with("[one]"), "{:?}", resumed.texts());
    assert_eq!(place.count("session/new"), 1);
}

#[tokio::test]
async fn ag_10_another_token_is_another_process_and_the_older_one_ends() {
    let place = Place::new(&echo());
    let agent = place.agent_with(|config| {
        config.auth = Some(crate::acp::AcpAuth::Resource {
            resource: "https://r.example".to_owned(),
            token_env: "SOME_TOKEN".to_owned(),
            required: false,
        });
    });
    agent.receive_token(None, "https://r.example", "first");
    let first = place.turn(&agent, user("t1", "one")).await;
    assert_eq!(agent.report().processes, 1);
    agent.receive_token(None, "https://r.example", "first");
    agent.receive_token(None, "https://another.example", "x");
    assert_eq!(agent.report().processes, 1, "it is the same token");
    // Taken back: nothing that has it is left.
    agent.receive_token(None, "https://r.example", "");
    until(|| agent.report().processes == 0).await;
    let next = user("t2", "two").after("t1", &first);
    let next = place.turn(&agent, next).await;
    assert_eq!(next.result, Ok(()));
    let said = &next.texts()[0];
    assert!(said.starts_with("[two] after [[\"one\""), "{said}");
    assert_eq!((place.starts(), agent.report().processes), (2, 1));
}

#[tokio::test]
async fn each_chat_has_a_process_of_its_own_if_told_so() {
    let place = Place::new(&echo());
    let agent = place.agent_with(|config| config.share = crate::acp::Share::Chat);
    for chat in ["one", "two"] {
        let turn = place.turn(&agent, user("t1", "x").in_chat(chat)).await;
        assert_eq!(turn.result, Ok(()));
    }
    assert_eq!(place.starts(), 2);
}

#[tokio::test]
async fn ag_13_a_chat_that_leaves_memory_is_closed_while_others_stay_and_goes_on_later() {
    let place = Place::new(&echo());
    let agent = place.agent();
    let first = place.turn(&agent, user("t1", "one")).await;
    let mut other = user("t2", "other");
    other.chat = "other-chat";
    let other = place.turn(&agent, other).await;
    assert_eq!(place.starts(), 1, "they share a process");
    let chat = user("t3", "x").chat;
    agent.unload_chat(chat);
    until(|| place.count("session/close") == 1).await;
    agent.unload_chat(chat); // it has none any more
    let next = place.turn(&agent, user("t3", "two").after("t1", &first)).await;
    assert_eq!(next.result, Ok(()));
    let said = &next.texts()[0];
    assert!(said.starts_with("[two] after [[\"one\""), "{said}");
    let mut still = user("t4", "still").after("t2", &other);
    still.chat = "other-chat";
    let still = place.turn(&agent, still).await;
    assert_eq!(still.result, Ok(()));
    assert_eq!(place.count("session/close"), 1);
    assert_eq!(place.starts(), 1);
    agent.end_chat(chat);
    until(|| place.count("session/close") == 2).await;
    assert_eq!(place.count("session/delete"), 0, "its history is the user's");
}

#[tokio::test]
async fn h_318_each_principal_works_with_their_own_token_in_one_chat() {
    let script = json!({"scenes": [{"steps": [{"say": ["{{env:SOME_TOKEN}} [{{text}}] after [{{history}}]"]}]}]});
    let place = Place::new(&script);
    let agent = place.agent_with(|config| {
        config.auth = Some(crate::acp::AcpAuth::Resource {
            resource: "https://r.example".to_owned(),
            token_env: "SOME_TOKEN".to_owned(),
            required: false,
        });
    });
    agent.receive_token(Some("ann"), "https://r.example", "of-ann");
    agent.receive_token(Some("bob"), "https://r.example", "of-bob");
    let mut last: Option<(&str, Played)> = None;
    for (turn, who, token) in [
        ("t1", Some("ann"), "of-ann"),
        ("t2", Some("bob"), "of-bob"),
        ("t3", Some("ann"), "of-ann"),
        ("t4", Some("carl"), "unset"),
        ("t5", None, "unset"),
    ] {
        let mut input = user(turn, turn);
        if let Some((id, played)) = &last {
            input = input.after(id, played);
        }
        let played = place.turn_of(&agent, input, who).await;
        assert_eq!(played.result, Ok(()), "{turn}");
        let text = played.texts().concat();
        assert!(text.starts_with(&format!("{token} [{turn}]")), "{text}");
        last = Some((turn, played));
    }
    // One for each token, and one without, which those without a token share.
    assert_eq!(place.starts(), 3);
    let (_, played) = last.unwrap();
    let text = played.texts().concat();
    for turn in ["t1", "t2", "t3", "t4"] {
        assert!(text.contains(turn), "nothing was lost on the way: {text}");
    }
    // Whose token is taken back has no process with it any more; the others go on.
    agent.receive_token(Some("ann"), "https://r.example", "");
    until(|| agent.report().processes == 2).await;
}

#[tokio::test]
async fn ag_37_sections_are_rendered_when_a_session_is_opened_and_not_with_each_turn() {
    let mut script = echo();
    script["initialize"] =
        json!({"agentCapabilities": {"sessionCapabilities": {"systemPrompt": {}}}});
    let place = Place::new(&script);
    let agent = place.agent();
    let renders = |played: &Played| {
        let events = played.events.iter();
        let renders = events.filter(|event| matches!(event, AgentEvent::Render { .. }));
        renders.count()
    };
    let first = place.turn(&agent, user("t1", "one")).await;
    assert_eq!((first.result.clone(), renders(&first)), (Ok(()), 1));
    let opened = place.frames("session/new").pop().unwrap();
    let added = &opened["params"]["systemPrompt"]["content"][0]["text"];
    assert!(added.as_str().unwrap().contains("render "), "{opened}");
    let next = place.turn(&agent, user("t2", "two").after("t1", &first)).await;
    assert_eq!((next.result.clone(), renders(&next)), (Ok(()), 0));
    assert_eq!(place.count("session/new") + place.count("session/resume"), 1);
    // Another process opens it anew.
    let agent = place.agent();
    let last = place.turn(&agent, user("t3", "three").after("t2", &next)).await;
    assert_eq!((last.result.clone(), renders(&last)), (Ok(()), 1));
    let opened = place.frames("session/resume").pop().unwrap();
    assert!(opened["params"]["systemPrompt"].is_object(), "{opened}");
}

#[tokio::test]
async fn a_directory_that_is_added_reopens_the_session_with_it() {
    let mut script = echo();
    script["initialize"] =
        json!({"agentCapabilities": {"sessionCapabilities": {"additionalDirectories": {}}}});
    let place = Place::new(&script);
    let agent = place.agent();
    let several = || agent.info().capabilities["multipleWorkingDirectories"].clone();
    assert!(several().is_null(), "nobody knows yet");
    let first = place.turn(&agent, user("t1", "one")).await;
    assert_eq!(several(), json!({"immutablePrimary": true}));
    let opened = place.frames("session/new").pop().unwrap();
    assert!(opened["params"]["additionalDirectories"].is_null());
    let other = place.directory.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let next = user("t2", "two").after("t1", &first);
    let mut facts = place.facts(next.chat);
    let uri = wire::file_uri::uri_of(other.as_os_str().as_encoded_bytes());
    facts.working_directories.push(uri);
    let next = place.turn_by(&agent, next, facts).await;
    assert_eq!(next.result, Ok(()));
    let opened = place.frames("session/resume").pop().unwrap();
    let added = &opened["params"]["additionalDirectories"];
    assert_eq!(*added, json!([other.canonicalize().unwrap()]), "{opened}");
    assert_eq!(place.starts(), 1, "its process works on");
    assert!(next.texts()[0].starts_with("[two] after [[\"one\""));
}
