//! A few dozen spaces on three nodes: what each takes does not include a thread.

use std::time::Duration;

use cluster::{ManySpacesPlan, many_spaces};

#[tokio::test(flavor = "multi_thread")]
async fn spaces_of_a_database_have_no_threads_of_their_own() {
    let plan = ManySpacesPlan { spaces: 200, with_clients: 30, visited: 6, quiet: Duration::ZERO };
    let report = many_spaces(plan).await.unwrap_or_else(|error| panic!("{error:?}"));
    if let Some(report) = report {
        println!("{}", report.describe());
        assert_eq!(report.loaded, 36);
        for node in report.with_clients.iter().chain(&report.idle) {
            assert_eq!(node.kernel_threads, 0, "{report:?}");
        }
    }
}
