//! Turns: one at a time, watched by all, ended exactly once.

use testkit::Scenario;

// H-063, H-172, H-174
#[test]
fn second_client_sees_deltas_in_order() {
    let mut s = Scenario::new();
    let ann = s.client("ann").opens_chat();
    let bob = s.client("bob").joins(&ann);
    s.model().streams(["Hel", "lo"]);
    ann.says("greet me");
    assert_eq!(bob.reads(), "Hello");
    s.all_agree();
}
