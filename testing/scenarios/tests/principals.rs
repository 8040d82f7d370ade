//! Whose tokens turns use: those of who began them, and nobody else's (H-315 to H-318).

use kernel::{HolderName, Input};
use serde_json::{Value, json};
use testkit::{Scenario, ScenarioClient};

const RESOURCE: &str = "https://api.example";

/// Says which principal is behind the connection of a client.
fn identify(s: &mut Scenario, client: &ScenarioClient, principal: &str) {
    let peer = client.with(|client| client.link).unwrap();
    let holder = HolderName::Principal(principal.to_owned());
    s.world().input(Input::Identified { peer, holder });
    s.settles();
}

/// Two members of a space in a session, and somebody with the host's own token.
fn scenario(required: bool) -> (Scenario, [ScenarioClient; 3]) {
    let mut s = Scenario::new();
    s.host_is_killed();
    s.world().facts.agents[0].info["protectedResources"] =
        json!([{"resource": RESOURCE, "required": required}]);
    s.host_restarts();
    let owner = s.client("owner").arrives();
    if required {
        brings(&owner, "sk-owner");
    }
    let owner = owner.opens_chat();
    let ann = s.client("laptop").joins(&owner);
    identify(&mut s, &ann, "ann");
    let bob = s.client("phone").joins(&owner);
    identify(&mut s, &bob, "bob");
    (s, [owner, ann, bob])
}

fn brings(client: &ScenarioClient, token: &str) {
    let params = json!({"resource": RESOURCE, "token": token});
    client.asks("authenticate", params).unwrap();
}

/// The principal of the last turn that an agent worked on.
fn last_principal(s: &Scenario) -> Option<String> {
    s.look().models.asked.last().unwrap().principal.clone()
}

fn named(name: &str) -> Option<String> {
    Some(name.to_owned())
}

#[test]
fn h_318_who_begins_a_turn_decides_whose_tokens_it_uses() {
    let (mut s, [owner, ann, bob]) = scenario(false);
    owner.sends_message("of the host");
    assert_eq!(last_principal(&s), None);
    ann.sends_message("of ann");
    assert_eq!(last_principal(&s), named("ann"));
    bob.sends_message("of bob");
    assert_eq!(last_principal(&s), named("bob"));

    // Who resumes a turn answers for the rest of it.
    s.model().fails_resumably();
    let turn = ann.sends_message("breaks off");
    assert_eq!(last_principal(&s), named("ann"));
    bob.resumes(&turn).unwrap();
    s.settles();
    assert_eq!(last_principal(&s), named("bob"));
}

#[test]
fn h_318_a_message_that_waits_is_its_senders_after_a_restart() {
    let (mut s, [owner, ann, _]) = scenario(false);
    s.model().hangs();
    owner.starts("hangs");
    s.settles();
    let message = json!({"text": "queued", "origin": {"kind": "user"}});
    let set =
        json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": message});
    ann.tries(&ann.chat(), set).unwrap();
    s.host_is_killed();
    s.host_restarts_for([&owner]);
    // The queue is held after a crash; the owner's next turn ends well, and ann's message follows.
    owner.sends_message("goes on");
    s.settles();
    assert_eq!(last_principal(&s), named("ann"));
}

#[test]
fn h_318_a_token_is_handed_on_with_whose_it_is_and_counts_for_nobody_else() {
    let (s, [owner, ann, bob]) = scenario(true);
    brings(&ann, "sk-ann");
    let heard: Vec<(Option<String>, String)> = s
        .look()
        .agents_heard
        .tokens
        .iter()
        .map(|brought| (brought.principal.clone(), brought.token.0.clone()))
        .collect();
    assert_eq!(heard, [(None, "sk-owner".to_owned()), (named("ann"), "sk-ann".to_owned())]);
    let create = |client: &ScenarioClient, id: &str| -> Result<Value, Value> {
        let params = json!({"channel": format!("ahp-session:/{id}"), "provider": "scripted"});
        client.asks("createSession", params)
    };
    create(&owner, "one").unwrap();
    create(&ann, "two").unwrap();
    // H-315: nobody else's helps.
    assert_eq!(create(&bob, "three").unwrap_err()["code"], -32007);
    let chat = json!({"channel": bob.session(), "chat": "ahp-chat:/more"});
    assert_eq!(bob.asks("createChat", chat).unwrap_err()["code"], -32007);
    brings(&ann, "");
    assert_eq!(create(&ann, "four").unwrap_err()["code"], -32007);
    create(&owner, "five").unwrap();
}

// H-318
#[test]
fn what_a_principal_brought_is_forgotten_when_their_rights_are_taken_away() {
    let (mut s, [owner, ann, _]) = scenario(true);
    brings(&owner, "sk-owner");
    brings(&ann, "sk-ann");
    let create = |client: &ScenarioClient, id: &str| -> Result<Value, Value> {
        let params = json!({"channel": format!("ahp-session:/{id}"), "provider": "scripted"});
        client.asks("createSession", params)
    };
    create(&ann, "one").unwrap();
    s.world().input(Input::PrincipalRevoked { principal: "ann".to_owned() });
    s.settles();
    assert_eq!(s.look().agents_heard.forgotten, ["ann"]);
    assert_eq!(create(&ann, "two").unwrap_err()["code"], -32007);
    create(&owner, "three").unwrap();
}

// H-317
#[test]
fn only_its_owners_clients_hear_that_a_token_ran_out() {
    let (mut s, [owner, ann, bob]) = scenario(false);
    s.world().input(Input::TokenEnded {
        provider: "scripted".to_owned(),
        principal: named("ann"),
        resource: RESOURCE.to_owned(),
    });
    s.settles();
    let told = |client: &ScenarioClient| client.notifications("auth/required").len();
    assert_eq!((told(&owner), told(&ann), told(&bob)), (0, 1, 0));
}
