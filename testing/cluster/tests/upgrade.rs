//! Two versions on one database: `GREENROOM_OLDER_BIN` names the executable of the last release.

use std::path::PathBuf;

use cluster::upgrade;

#[tokio::test(flavor = "multi_thread")]
async fn spaces_go_back_and_forth_between_two_versions() {
    let Some(older) = std::env::var_os("GREENROOM_OLDER_BIN") else {
        eprintln!("skipped: GREENROOM_OLDER_BIN names no executable of an older version");
        return;
    };
    let report =
        upgrade(&PathBuf::from(older), 2).await.unwrap_or_else(|error| panic!("{error:?}"));
    if let Some(report) = report {
        assert_eq!(report.faults, 8, "each space went back and forth");
        println!("{} actions\n{}", report.actions, report.describe_absences());
    }
}
