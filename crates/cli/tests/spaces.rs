//! Spaces, tokens and migration with the real binary and a real PostgreSQL; skipped with words where there is none.

use std::fs;
use std::path::Path;

use host::journal::PostgresSettings;
use serde_json::{Value, json};

use crate::fixture::{copied, expected, without_moment};
use crate::running::{Host, data_directory, greenroom, text};

use self::test_server::TestServer;

#[path = "../../host/src/journal/postgres/test_server.rs"]
#[allow(dead_code, reason = "these tests never stop the server")]
mod test_server;

/// Runs `greenroom` and expects it to succeed; what it printed.
#[track_caller]
fn run(home: &Path, arguments: &[&str]) -> String {
    let output = greenroom(home).args(arguments).output().unwrap();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {errors}");
    out
}

#[track_caller]
fn run_json(home: &Path, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    serde_json::from_str(&run(home, &arguments)).unwrap()
}

/// The words of an error.
#[track_caller]
fn refused(home: &Path, arguments: &[&str]) -> String {
    let output = greenroom(home).args(arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    text(&output.stderr)
}

#[test]
fn spaces_need_a_database() {
    let home = tempfile::tempdir().unwrap();
    let error = refused(home.path(), &["space", "list"]);
    assert!(error.contains("no database is configured"), "{error}");
    assert!(error.contains("--database"), "{error}");
    let far = ["space", "list", "--database", "postgres://db.example/x"];
    let error = refused(home.path(), &far);
    assert!(error.contains("another machine"), "{error}");
    let error = refused(home.path(), &["migrate", "--from", "a", "--to", "b", "--space", "s"]);
    assert!(error.contains("neither is a database"), "{error}");
    // A password is not taken where others could read it, and not repeated.
    let address = "postgres://ann:secret@localhost/x";
    for arguments in [
        &["space", "list", "--database", address][..],
        &["node", "list", "--database", address],
        &["migrate", "--from", "a", "--to", address, "--space", "s"],
        &["space", "copy", "a", "b", "--database", address],
    ] {
        let error = refused(home.path(), arguments);
        assert!(error.contains("--database-file"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let error = refused(home.path(), &["node", "list", "--database", "host=/nowhere"]);
    assert!(error.contains("refuses this or is away"), "{error}");
}

#[test]
fn spaces_are_made_listed_and_removed_and_tokens_are_shown_once() {
    let Some(server) = TestServer::start() else { return };
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let url = server.make_database().url;
    // From the settings, as on the machine of a host.
    let data = data_directory(home);
    fs::create_dir_all(&data).unwrap();
    let settings = format!("journal = \"postgres\"\npostgres = \"{url}\"\n");
    fs::write(data.join("greenroom.toml"), settings).unwrap();

    assert!(run(home, &["space", "list"]).contains("There is no space"));
    assert!(run(home, &["space", "create", "team-a"]).contains("greenroom space token team-a"));
    let taken = refused(home, &["space", "create", "team-a"]);
    assert!(taken.contains("a space `team-a` already"), "{taken}");
    let bad = refused(home, &["space", "create", "Team A"]);
    assert!(bad.contains("small letters"), "{bad}");
    let token = ["space", "token", "team-b", "--for", "ann", "--role", "owner"];
    let unknown = refused(home, &token);
    assert!(unknown.contains("no space `team-b`"), "{unknown}");

    // The token alone on standard output, the rest beside it.
    let token = ["space", "token", "team-a", "--for", "ann", "--role", "owner"];
    let printed = run(home, &token);
    assert!(printed.starts_with("grt_") && printed.lines().count() == 1, "{printed}");
    let token = ["space", "token", "team-a", "--for", "tv", "--role", "viewer", "--expires", "90d"];
    let issued = run_json(home, &token);
    assert_eq!(issued["role"], "viewer");
    assert!(issued["expiresAt"].is_string(), "{issued}");
    let id = issued["id"].as_str().unwrap();
    let listed = run_json(home, &["space", "list", "team-a"]);
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|token| token["counts"] == true && token.get("token").is_none()));
    let table = run(home, &["space", "list", "team-a"]);
    assert!(table.contains("viewer") && table.contains("never"), "{table}");

    // By its id, or by the whole of it.
    assert!(run(home, &["space", "revoke", id]).contains("tv"));
    run(home, &["space", "revoke", printed.trim()]);
    let unknown = refused(home, &["space", "revoke", "ffffffffffff"]);
    assert!(unknown.contains("no token `ffffffffffff`"), "{unknown}");
    let spaces = run_json(home, &["space", "list"]);
    assert_eq!(
        spaces,
        json!([{"name": "team-a", "seq": 0, "members": 2, "tokens": 0, "state": "idle"}])
    );
    let top = run_json(home, &["space", "top"]);
    assert_eq!((&top[0]["name"], &top[0]["sessions"]), (&json!("team-a"), &json!(0)));

    // What it may take, and a copy of it.
    let limits = ["space", "limits", "team-a", "--turns", "4", "--stored", "1GB"];
    assert_eq!(
        run_json(home, &limits)["limits"],
        json!({"connections": null, "turns": 4, "inputs_per_s": null, "stored_bytes": 1_000_000_000, "record_bytes_per_s": null,
            "log_days": null, "loaded_bytes": null})
    );
    run(home, &["space", "limits", "team-a", "--turns", "default"]);
    let limits = run(home, &["space", "limits", "team-a"]);
    assert!(limits.contains("1000000000 bytes"), "{limits}");
    let copied = run_json(home, &["space", "copy", "team-a", "team-b"]);
    assert_eq!(copied, json!({"from": "team-a", "to": "team-b", "rows": 0, "bodies": 0, "seq": 0}));
    let taken = refused(home, &["space", "copy", "team-a", "team-b"]);
    assert!(taken.contains("a space `team-b` already"), "{taken}");
    let both = refused(home, &["space", "copy", "./a", "./b"]);
    assert!(both.contains("both are directories"), "{both}");

    let asked = refused(home, &["space", "remove", "team-a"]);
    assert!(asked.contains("pass --yes"), "{asked}");
    assert!(run(home, &["space", "remove", "team-a", "--yes"]).contains("is gone"));
    let unknown = refused(home, &["space", "remove", "team-a", "--yes"]);
    assert!(unknown.contains("no space `team-a`"), "{unknown}");
}

#[test]
fn the_busiest_spaces_come_first_in_a_table_or_the_largest() {
    let Some(server) = TestServer::start() else { return };
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let url = server.make_database().url;
    let top = |more: &[&str]| -> Vec<Vec<String>> {
        let arguments = [&["space", "top", "--database", url.as_str()][..], more].concat();
        let cells = |line: &str| {
            let cells = line.split("  ").map(str::trim);
            cells.filter(|it| !it.is_empty()).map(str::to_owned).collect()
        };
        run(home, &arguments).lines().map(cells).collect()
    };
    assert_eq!(top(&[]).len(), 1, "titles alone");
    for name in ["busy", "large", "quiet"] {
        run(home, &["space", "create", name, "--database", &url]);
    }
    let database = url.rsplit_once('=').unwrap().1;
    let run_sql = |sql: &str| test_server::run_sql(server.socket(), database, sql);
    run_sql(
        "INSERT INTO greenroom.blob (space, digest, size, put_at, place)
         SELECT id, '\\x07', 3 * 1024 * 1024, 0, 0 FROM greenroom.space WHERE name = 'large'",
    );
    // As a node writes it down; what one that is gone wrote does not count.
    for (node, expires_in, name, records) in [("a", 60, "busy", 210.42), ("b", -60, "quiet", 9.0)] {
        run_sql(&format!(
            "INSERT INTO greenroom.node (name, home, address, fingerprint, format, mounts, expires, steady_since, taken, draining, busiest)
             SELECT '{node}', '{node}', '', '', 1, '{{}}', clock_timestamp() + interval '{expires_in} s', clock_timestamp(), 0, false,
                 jsonb_build_array(jsonb_build_object('space', id, 'records_per_s', {records}, 'bytes_per_s', 62000.7,
                     'connections', 12, 'turns', 3)) FROM greenroom.space WHERE name = '{name}'"
        ));
    }
    let titles = [
        "NAME",
        "NODE",
        "RECORDS/S",
        "BYTES/S",
        "CLIENTS",
        "TURNS",
        "SESSIONS",
        "ACTIONS",
        "JOURNAL",
        "CONTENT",
        "SEQ",
    ];
    let busy = ["busy", "a", "210.4", "60 KiB", "12", "3", "0", "0", "0 bytes", "0 bytes", "0"];
    let large = ["large", "-", "0.0", "0 bytes", "0", "0", "0", "0", "0 bytes", "3 MiB", "0"];
    let shown = top(&[]);
    assert_eq!(shown.len(), 4);
    assert_eq!(shown[..2], [titles, busy]);
    let largest = top(&["--largest", "--count", "1"]);
    assert_eq!(largest, [titles, large]);
}

#[test]
fn sessions_of_an_earlier_release_go_to_a_database_and_back() {
    let Some(server) = TestServer::start() else { return };
    let url = server.make_database().url;
    let home = copied();
    let data = data_directory(home.path());
    let directory = data.display().to_string();
    // A copy leaves the directory as it is, and is the same sessions again.
    let copy = home.path().join("copy").display().to_string();
    let copied = |from: &str, to: &str| {
        run_json(home.path(), &["space", "copy", from, to, "--database", &url])
    };
    let rows = copied(&directory, "first")["rows"].clone();
    assert_eq!(copied("first", "second")["rows"], rows);
    assert_eq!(copied("second", &copy)["rows"], rows);
    let there = ["migrate", "--from", &directory, "--to", &url, "--space", "default"];
    let said = run(home.path(), &there);
    assert!(said.contains("equal on both sides"), "{said}");
    let error = refused(home.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(error.contains("moved to the space `default`"), "{error}");

    // The same sessions, from the database.
    let own = fs::read_to_string(data.join("greenroom.toml")).unwrap_or_default();
    let settings = format!("journal = \"postgres\"\npostgres = \"{url}\"\n");
    fs::write(data.join("greenroom.toml"), settings).unwrap();
    let host = Host::start_with(home, &[]);
    let listed = host.run(&["sessions", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let wanted = without_moment(expected("sessions.json"));
    assert_eq!(without_moment(listed), wanted);
    host.run(&["stop"]);
    let home = host.kill();
    fs::write(data.join("greenroom.toml"), own).unwrap();

    let back = ["migrate", "--from", &url, "--to", &directory, "--space", "default"];
    let moved = run_json(home.path(), &back);
    assert_eq!(moved["finishedEarlierRun"], false);
    let host = Host::start_with(home, &[]);
    let listed = host.run(&["sessions", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(without_moment(listed), wanted);
    let spaces = run_json(host.data.path(), &["space", "list", "--database", &url]);
    let spaces = spaces.as_array().unwrap().iter();
    let states: Vec<_> = spaces.map(|it| (it["name"].as_str().unwrap(), &it["state"])).collect();
    let idle = json!("idle");
    assert_eq!(states, [("default", &json!("closed")), ("first", &idle), ("second", &idle)]);
}

#[test]
fn a_space_names_a_mount_and_the_doctor_looks_at_the_database() {
    let Some(server) = TestServer::start() else { return };
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let url = server.make_database().url;
    let (data, files) = (data_directory(home), home.join("files"));
    fs::create_dir_all(&data).unwrap();
    fs::create_dir_all(&files).unwrap();
    let settings = format!(
        "journal = \"postgres\"\npostgres = \"{url}\"\n[[mounts]]\nlabel = \"docs\"\npath = {files:?}\n"
    );
    fs::write(data.join("greenroom.toml"), settings).unwrap();

    let look = || {
        let output = greenroom(home).args(["doctor", "--json"]).output().unwrap();
        let findings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        move |check: &str| -> Vec<String> {
            let found = findings
                .iter()
                .filter(|it| it["check"] == check)
                .map(|it| format!("{}: {}", it["level"], it["message"]));
            found.collect()
        }
    };
    let before = look();
    assert!(before("tables")[0].contains("none yet"));
    let made = run(home, &["database", "prepare"]);
    assert!(made.contains("The tables are ready"), "{made}");
    run(home, &["space", "create", "team-a"]);
    let shown = run(home, &["space", "mount", "team-a"]);
    assert!(shown.contains("names no mount"), "{shown}");
    let named = run_json(home, &["space", "mount", "team-a", "src"]);
    assert_eq!(named, json!({"name": "team-a", "mount": "src", "nodes": []}));
    let wrong = refused(home, &["space", "mount", "team-a", "S R C"]);
    assert!(wrong.contains("no label of a mount"), "{wrong}");
    let after = look();
    for check in ["database", "database clock", "commits", "timeouts", "tables"] {
        assert!(after(check)[0].starts_with("\"ok\""), "{:?}", after(check));
    }
    let mounts = after("mount");
    assert!(mounts[0].starts_with("\"ok\"") && mounts[0].contains("`docs`"));
    assert!(mounts[1].starts_with("\"warn\"") && mounts[1].contains("team-a"));
    let none = run(home, &["space", "mount", "team-a", "--none"]);
    assert!(none.contains("names no mount"), "{none}");
    server.stop();
    assert!(look()("database")[0].starts_with("\"fail\""));
}
