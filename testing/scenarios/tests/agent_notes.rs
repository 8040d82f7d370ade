//! What an agent notes about a chat: stored with the chat, told to its later turns and to a fork of its last one, and to no
//! other chat.

use agent_api::{AgentEvent, AgentReply, CHAT_NOTES_BYTES_MAX};
use bytes::Bytes;
use testkit::{Kill, Scenario, ScenarioClient};

/// What the last turn was given: the notes, and the turn before it.
fn given(s: &Scenario) -> (Option<String>, Option<String>) {
    let world = s.look();
    let last = world.models.asked.last().unwrap();
    let notes = last.chat_notes.as_ref();
    let notes = notes.map(|notes| String::from_utf8(notes.to_vec()).unwrap());
    (notes, last.last_turn_id.clone())
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn notices(client: &ScenarioClient) -> Vec<String> {
    let parts = client.latest_turn()["responseParts"].clone();
    let parts = parts.as_array().unwrap().iter();
    let notices = parts.filter(|part| part["kind"] == "systemNotification");
    notices.map(|part| part["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn notes_belong_to_a_chat_and_its_forks_and_survive_restarts_and_truncation() {
    let (mut s, ann) = Scenario::with_chat();
    s.model().plays(|script| script.notes_chat("session 1")).repeats();
    let first = ann.sends_message("one");
    assert_eq!(ann.reads(), "noted");
    assert_eq!(given(&s), (None, None));
    let second = ann.sends_message("two");
    assert_eq!(s.look().models.asked.last().unwrap().turn_id, second);
    assert_eq!(given(&s), (some("session 1"), Some(first.clone())));
    ann.creates_chat("ahp-chat:/b").sends_message("elsewhere");
    assert_eq!(given(&s), (None, None));
    ann.forks("ahp-chat:/f", &second).sends_message("forked");
    assert_eq!(given(&s), (some("session 1"), Some(second)));
    ann.steps_aside("ahp-chat:/s", &first).sends_message("aside");
    assert_eq!(given(&s), (None, None), "what it was made from is no turn of its own");
    s.host_is_killed();
    s.host_restarts_for([&ann]);
    let third = ann.sends_message("three");
    assert_eq!(given(&s).0, some("session 1"));
    ann.truncates(&first).unwrap();
    s.model().plays(|script| script.notes_chat("session 2").notes_chat(""));
    ann.sends_message("four");
    assert_eq!(given(&s), (some("session 1"), Some(first)), "{third} is gone");
    ann.sends_message("five");
    assert_eq!(given(&s).0, None, "empty notes are none");
}

#[test]
fn notes_that_are_too_long_or_no_text_are_not_stored_and_the_user_hears_it() {
    let (mut s, ann) = Scenario::with_chat();
    let longest = "n".repeat(CHAT_NOTES_BYTES_MAX);
    let too_long = format!("{longest}n");
    s.model().plays(|script| {
        let no_text = AgentEvent::ChatNotes(Bytes::from_static(&[0xff]));
        script.notes_chat(&longest).notes_chat(&too_long).emits(no_text)
    });
    ann.sends_message("one");
    let told = notices(&ann);
    assert_eq!(told.len(), 2);
    assert!(told[0].contains("exceed 4096 bytes"), "{told:?}");
    assert!(told[1].contains("are not text"), "{told:?}");
    ann.sends_message("two");
    assert_eq!(given(&s).0, Some(longest), "what was noted before stays");
}

// G-15: an agent that hears that it is noted may rely on it
#[test]
fn an_agent_hears_that_something_is_noted_when_it_is_on_the_disk() {
    let noted = |s: &Scenario| {
        let world = s.look();
        let replies = world.models.replies.iter();
        replies.filter(|(_, reply)| *reply == AgentReply::ChatNoted).count()
    };
    for (point, stored) in [
        (Kill::BeforeWrite, None),
        (Kill::BeforeSend, some("kept")),
        (Kill::BeforeAct, some("kept")),
    ] {
        let (mut s, ann) = Scenario::with_chat();
        s.model()
            .asks_for_text("go on?")
            .plays(|script| script.waits_ms(50).notes_chat("kept"))
            .streams(["done"]);
        ann.sends_message("one");
        ann.dispatches(&ann.chat(), {
            let id = ann.question()["id"].clone();
            serde_json::json!({"type": "chat/inputCompleted", "requestId": id, "response": "decline"})
        });
        {
            let mut world = s.world();
            world.advance_ms(0);
            for peer in world.links.keys().copied().collect::<Vec<_>>() {
                while world.carry_to_host(peer) {}
            }
            while world.batch(64) {}
        }
        s.host_dies_at(point);
        s.advances_ms(50);
        assert_eq!(noted(&s), 0, "{point:?}");
        s.host_restarts_for([&ann]);
        ann.sends_message("two");
        assert_eq!(given(&s).0, stored, "{point:?}");
        s.all_agree();
    }
    let (mut s, ann) = Scenario::with_chat();
    s.model().plays(|script| script.waits_ms(50).notes_chat("lost"));
    ann.starts("one");
    {
        let mut world = s.world();
        for peer in world.links.keys().copied().collect::<Vec<_>>() {
            while world.carry_to_host(peer) {}
        }
        while world.batch(64) {}
        world.advance_ms(0);
        while world.batch(64) {}
    }
    s.faults().break_disk();
    s.advances_ms(50);
    assert_eq!(noted(&s), 0);
    s.faults().mend_disk();
    s.advances_in_steps(5_000, 1_000);
    ann.sends_message("two");
    assert_eq!(given(&s).0, None);
}
