//! A node that stays frozen: whoever was served by it, or relayed through it, goes on elsewhere meanwhile.

use cluster::{ChaosPlan, run};

/// Each node is thawed only when clients of every space have heard something new from others; a client that does not come back
/// within a minute fails the run.
#[tokio::test(flavor = "multi_thread")]
async fn while_a_node_stays_frozen_everybody_goes_on_elsewhere() {
    let plan =
        ChaosPlan { seed: 7, spaces: 4, rounds: 4, only: Some("freeze"), ..ChaosPlan::default() };
    let report = run(plan).await.unwrap_or_else(|error| panic!("{error:?}"));
    if let Some(report) = report {
        assert_eq!(report.faults, 4, "one in each round");
        let absences = report.absences.get("freeze").map_or(0, Vec::len);
        assert!(absences > 0, "nobody was served by a node that was frozen");
        println!("{} actions\n{}", report.actions, report.describe_absences());
    }
}
