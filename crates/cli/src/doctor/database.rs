//! The doctor's checks of a database and of what this node offers its spaces: clock, timeouts, commits, format, mounts.

use std::path::Path;

use host::journal::{DatabaseFacts, PostgresSettings, TableFacts};
use host::{Config, FailoverChoice, JournalChoice, MountEntry};

use super::Finding;

/// The oldest server that is tried.
const VERSION_MIN: i32 = 130_000;
/// Leases are judged by the clock of the database alone; log lines of several machines are compared by people.
const CLOCK_WARN_S: f64 = 5.0;

const DATABASE: &str = "database";
const CLOCK: &str = "database clock";
const COMMITS: &str = "commits";
const TIMEOUTS: &str = "timeouts";
const TABLES: &str = "tables";
const MOUNT: &str = "mount";

/// Nothing, unless the settings say that sessions lie in a database.
pub(super) async fn check(config: &Config) -> Vec<Finding> {
    let (JournalChoice::Postgres, Some(url)) = (config.journal, &config.postgres) else {
        return Vec::new();
    };
    let facts = match DatabaseFacts::find(&PostgresSettings::new(url.clone())).await {
        Ok(facts) => facts,
        Err(error) => {
            let message = format!(
                "it cannot be reached: {error}; start it, or correct `postgres` with `greenroom config edit`"
            );
            let mut findings = vec![Finding::fail(DATABASE, message)];
            findings.extend(config.mounts.iter().map(|mount| check_mount(mount, &[])));
            return findings;
        }
    };
    let cluster = config.cluster.as_ref();
    let failover = cluster.map(|cluster| cluster.failover).unwrap_or_default();
    let mut findings = vec![
        check_server(&facts),
        check_clock(facts.clock_ahead_s),
        check_commits(&facts, failover),
        check_timeouts(&facts),
        check_tables(&facts.tables),
    ];
    let own = cluster.and_then(|cluster| cluster.name.as_deref());
    let others: Vec<&(String, MountEntry)> =
        facts.mounts.iter().filter(|(node, _)| Some(node.as_str()) != own).collect();
    findings.extend(config.mounts.iter().map(|mount| check_mount(mount, &others)));
    findings.extend(facts.unmounted.iter().map(|(space, label)| {
        Finding::warn(
            MOUNT,
            format!(
                "the space {space} works in `{label}`, which no node that is alive offers: its turns are refused. Start one that \
                 offers it, or name another with `greenroom space mount {space}`"
            ),
        )
    }));
    findings
}

fn check_server(facts: &DatabaseFacts) -> Finding {
    let found = format!("PostgreSQL {} answers", facts.version);
    if facts.is_standby {
        return Finding::fail(
            DATABASE,
            format!(
                "{found}, but it follows another server and takes no writes; name the other in `postgres`, or promote it"
            ),
        );
    }
    if facts.version_number < VERSION_MIN {
        return Finding::fail(DATABASE, format!("{found}; 13 or later is needed: upgrade it"));
    }
    let nodes = match facts.living_nodes {
        0 => "no node is alive".to_owned(),
        1 => "1 node is alive".to_owned(),
        many => format!("{many} nodes are alive"),
    };
    Finding::ok(DATABASE, format!("{found}, {nodes}"))
}

fn check_clock(ahead_s: f64) -> Finding {
    let (size, way) = (ahead_s.abs(), if ahead_s < 0.0 { "behind" } else { "ahead of" });
    if size < CLOCK_WARN_S {
        Finding::ok(CLOCK, format!("within {CLOCK_WARN_S:.0} s of this machine's"))
    } else {
        Finding::warn(
            CLOCK,
            format!(
                "{size:.0} s {way} this machine's. Leases go by the database's alone, and so do ends of tokens and seqs after a \
                 failover: set both by a time server"
            ),
        )
    }
}

fn check_commits(facts: &DatabaseFacts, failover: FailoverChoice) -> Finding {
    let setting = facts.session.iter().find(|it| it.name == "synchronous_commit");
    let commit = setting.map_or("unknown", |setting| setting.value.as_str());
    if !facts.has_fsync {
        return Finding::fail(
            COMMITS,
            "fsync is off: a power cut loses sessions. Set `fsync = on` in postgresql.conf and restart the server",
        );
    }
    if !matches!(commit, "on" | "remote_apply") {
        return Finding::fail(
            COMMITS,
            format!(
                "synchronous_commit is {commit} though nodes ask for `on`: something between them and the server changes it; \
                 connect without it"
            ),
        );
    }
    match (failover, facts.synchronous_standbys.is_empty()) {
        (FailoverChoice::Lossless, true) => Finding::fail(
            COMMITS,
            "failover = \"lossless\" in [cluster], but no standby is synchronous: commits may be lost and their seqs given twice. \
             Set synchronous_standby_names, or failover = \"lossy\"",
        ),
        (FailoverChoice::Lossless, false) => {
            Finding::ok(COMMITS, format!("on the disk, and on {}", facts.synchronous_standbys))
        }
        (FailoverChoice::Lossy, _) => {
            Finding::ok(COMMITS, "on the disk before anybody hears of them")
        }
    }
}

/// A pooler that drops them would leave a lease locked by a process that stopped.
fn check_timeouts(facts: &DatabaseFacts) -> Finding {
    let timeouts = facts.session.iter().filter(|it| it.name.ends_with("_timeout"));
    let wrong: Vec<String> = timeouts
        .filter(|it| it.value != it.wanted)
        .map(|it| format!("{} is {} and not {}", it.name, it.value, it.wanted))
        .collect();
    if wrong.is_empty() {
        Finding::ok(TIMEOUTS, "sessions have those that nodes ask for")
    } else {
        Finding::fail(
            TIMEOUTS,
            format!(
                "{}: something between nodes and the server changes them, such as a pooler; connect without it",
                wrong.join(", ")
            ),
        )
    }
}

fn check_tables(tables: &TableFacts) -> Finding {
    let TableFacts::Found { format, min_format, known_format, lacks_additions, may_write } = tables
    else {
        return Finding::ok(
            TABLES,
            "none yet; the first node makes them, or `greenroom database prepare`",
        );
    };
    if !may_write {
        return Finding::fail(
            TABLES,
            "this role may not read and write all of them; run `greenroom database prepare` as the role that owns them, and have \
             nodes connect as greenroom_node or a member of it",
        );
    }
    if min_format > known_format {
        return Finding::fail(
            TABLES,
            format!(
                "they need format {min_format}, and this version knows up to {known_format}; run a later version"
            ),
        );
    }
    if *lacks_additions {
        return Finding::warn(
            TABLES,
            "they lack what this version adds; the next node that starts adds it, or `greenroom database prepare` as the role that \
             owns them",
        );
    }
    Finding::ok(TABLES, format!("format {format}, known to this version"))
}

/// What this node offers, beside what others offer under the same label.
fn check_mount(mount: &MountEntry, others: &[&(String, MountEntry)]) -> Finding {
    let (label, path) = (&mount.label, mount.path.display());
    if let Some(problem) = find_problem(&mount.path) {
        return Finding::fail(
            MOUNT,
            format!(
                "`{label}` is {path}, {problem}; mount it, or correct [[mounts]] with `greenroom config edit`"
            ),
        );
    }
    let mut others = others.iter();
    let other = others.find(|(_, other)| other.label == *label && other.path != mount.path);
    match other {
        None => Finding::ok(MOUNT, format!("`{label}` is {path}")),
        Some((node, other)) => Finding::fail(
            MOUNT,
            format!(
                "`{label}` is {path} here and {} on the node {node}; a mount is at the same path on every node",
                other.path.display()
            ),
        ),
    }
}

fn find_problem(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Err(error) => Some(format!("which cannot be read: {error}")),
        Ok(metadata) if !metadata.is_dir() => Some("which is not a directory".to_owned()),
        Ok(_) => {
            let access = rustix::fs::Access::READ_OK
                | rustix::fs::Access::WRITE_OK
                | rustix::fs::Access::EXEC_OK;
            let denied = rustix::fs::access(path, access).is_err();
            denied.then(|| "which this user cannot write".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use host::journal::SessionSetting;

    use super::*;
    use crate::doctor::CheckLevel;

    fn setting(name: &'static str, value: &str, wanted: &'static str) -> SessionSetting {
        SessionSetting { name, value: value.to_owned(), wanted }
    }

    fn healthy() -> DatabaseFacts {
        DatabaseFacts {
            version: "15.4".to_owned(),
            version_number: 150_004,
            is_standby: false,
            clock_ahead_s: 0.1,
            session: vec![
                setting("synchronous_commit", "on", "on"),
                setting("lock_timeout", "1s", "1s"),
            ],
            has_fsync: true,
            synchronous_standbys: String::new(),
            tables: TableFacts::Missing,
            mounts: Vec::new(),
            living_nodes: 2,
            unmounted: Vec::new(),
        }
    }

    #[test]
    fn what_is_wrong_with_a_server_is_said_with_what_to_do() {
        let lossy = FailoverChoice::Lossy;
        let good = healthy();
        for finding in [
            check_server(&good),
            check_clock(good.clock_ahead_s),
            check_commits(&good, lossy),
            check_timeouts(&good),
        ] {
            assert_eq!(finding.level, CheckLevel::Ok, "{finding:?}");
        }
        let mut bad = healthy();
        (bad.is_standby, bad.has_fsync) = (true, false);
        bad.session = vec![setting("lock_timeout", "0", "1s")];
        for finding in [
            check_server(&bad),
            check_commits(&bad, lossy),
            check_timeouts(&bad),
            check_commits(&good, FailoverChoice::Lossless),
        ] {
            assert_eq!(finding.level, CheckLevel::Fail, "{finding:?}");
        }
        let mut off = healthy();
        off.session = vec![setting("synchronous_commit", "off", "on")];
        assert_eq!(check_commits(&off, lossy).level, CheckLevel::Fail);
        let mut old = healthy();
        old.version_number = 120_000;
        assert!(check_server(&old).message.contains("13 or later"));
        for ahead in [-60.0, 60.0] {
            assert_eq!(check_clock(ahead).level, CheckLevel::Warn);
        }
    }

    #[test]
    fn tables_that_cannot_be_used_are_told_apart() {
        let found = |min_format, lacks_additions, may_write| TableFacts::Found {
            format: 1,
            min_format,
            known_format: 1,
            lacks_additions,
            may_write,
        };
        for (tables, level) in [
            (TableFacts::Missing, CheckLevel::Ok),
            (found(1, false, true), CheckLevel::Ok),
            (found(1, true, true), CheckLevel::Warn),
            (found(2, false, true), CheckLevel::Fail),
            (found(1, false, false), CheckLevel::Fail),
        ] {
            assert_eq!(check_tables(&tables).level, level, "{tables:?}");
        }
    }

    #[test]
    fn a_mount_is_there_and_the_same_everywhere() {
        let directory = tempfile::tempdir().unwrap();
        let mount = |path: &Path| MountEntry { label: "src".to_owned(), path: path.to_owned() };
        let here = mount(directory.path());
        assert_eq!(check_mount(&here, &[]).level, CheckLevel::Ok);
        let same = ("b".to_owned(), here.clone());
        assert_eq!(check_mount(&here, &[&same]).level, CheckLevel::Ok);
        let other = ("b".to_owned(), mount(Path::new("/elsewhere")));
        let finding = check_mount(&here, &[&other]);
        assert_eq!(finding.level, CheckLevel::Fail);
        assert!(finding.message.contains("on the node b"), "{finding:?}");
        let gone = check_mount(&mount(&directory.path().join("gone")), &[]);
        assert_eq!(gone.level, CheckLevel::Fail);
    }
}
