//! A short run: each kind of fault once, on three nodes with a few spaces.

use std::time::Duration;

use cluster::{ChaosPlan, run};

/// A takeover takes 8 s; a machine that others use may need several times that.
const ABSENCE_MAX: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_whatever_happens_to_nodes_and_database() {
    let report = run(ChaosPlan::default()).await.unwrap_or_else(|error| panic!("{error:?}"));
    if let Some(report) = report {
        assert_eq!(report.faults, 12, "each kind once");
        println!("{} actions\n{}", report.actions, report.describe_absences());
        let longest = report.longest_absence();
        assert!(longest <= ABSENCE_MAX, "somebody was away for {longest:?}");
    }
}
