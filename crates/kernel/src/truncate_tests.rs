//! Which turn a truncate keeps, and what becomes of the others.

use serde_json::json;
use wire::ActionKind;

use super::*;
use crate::fixture_tests::{KernelFixture, action};

fn with_turns(ids: &[&str]) -> KernelFixture {
    let mut fixture = KernelFixture::new();
    for id in ids {
        fixture.start_turn(id);
        fixture.complete_turn(id);
    }
    fixture
}

fn truncated(turn_id: Option<&str>) -> Action {
    let fields = turn_id.map_or(json!({}), |id| json!({"turnId": id}));
    action(ActionKind::ChatTruncated, fields)
}

#[test]
fn a_cut_names_a_completed_turn_or_none() {
    let mut fixture = with_turns(&["a", "b"]);
    fixture.start_turn("running");
    let cut = |turn_id: Option<&str>| {
        let answers = HandlerAnswers::default();
        gather_cut(&fixture.kernel, &fixture.chat, &truncated(turn_id), &answers)
    };
    let kept = |turn_id| match cut(turn_id) {
        Ok(Ok(kept)) => kept.map(|kept| (kept.n, kept.page.is_some())),
        other => panic!("{other:?}"),
    };
    assert_eq!(kept(None), None, "everything goes");
    // All turns are in memory, and nobody watches: no page is needed.
    assert_eq!(kept(Some("a")), Some((0, false)));
    assert_eq!(kept(Some("b")), Some((1, false)));
    for unknown in ["running", "nope"] {
        assert!(matches!(cut(Some(unknown)), Ok(Err(_))), "{unknown}");
    }
}

#[test]
fn what_comes_after_goes_with_the_turn_that_runs() {
    let mut fixture = with_turns(&["a", "b"]);
    fixture.start_turn("c");
    let chat = fixture.chat.clone();
    let kept = Some(RemainingTurn { n: 0, page: None });
    let output = fixture.step(|step| cut_back(step, &chat, truncated(Some("a")), None, kept));
    let found = fixture.kernel.chat(&fixture.chat);
    assert_eq!(found.last_n(), Some(0));
    assert!(found.state().active_turn.is_none() && found.run().is_none());
    let hidden = output.records.iter().find_map(|record| match record {
        Record::HideTurns { from_n, .. } => Some(*from_n),
        _ => None,
    });
    assert_eq!(hidden, Some(1));
    // The turn that ran has a row: everyone saw it.
    let row = output.records.iter().find_map(|record| match record {
        Record::Turn { n, turn, .. } => Some((*n, turn.id.as_str())),
        _ => None,
    });
    assert_eq!(row, Some((2, "c")));
}

#[test]
fn a_cut_behind_the_last_turn_changes_nothing() {
    let mut fixture = with_turns(&["a"]);
    let (chat, seq) = (fixture.chat.clone(), fixture.kernel.seq());
    let kept = Some(RemainingTurn { n: 0, page: None });
    fixture.step(|step| cut_back(step, &chat, truncated(Some("a")), None, kept));
    assert_eq!(fixture.kernel.seq(), seq);
    assert_eq!(fixture.kernel.chat(&fixture.chat).last_n(), Some(0));
}
