//! A database that is slow, one whose disk is full, and one that a single node cannot reach.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::cutting_proxy::CuttingProxy;
use super::support::{
    TestCluster, ask, connect, create_session, has_session, hear, open_chat, poll, run_turn, send,
    serve_handle, session, wait_until_here,
};
use crate::cluster::{SpaceLocation, SpaceUnavailable};

/// The network between one node and the database carries nothing any more, and nobody says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_alone_cannot_reach_the_database_falls_silent_and_another_takes_over() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let proxy = CuttingProxy::start(cluster.server.socket());
    let url = proxy.through(&cluster.settings.url, cluster.server.socket());
    let a = cluster.node_with("a", |config| config.postgres = Some(url)).await;
    let b = cluster.node("b").await;
    let (handle, _) = wait_until_here(&a, "team").await;
    let mut old = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut old, 1).await;
    proxy.silence();
    // On its way when others take the space: it arrives when the network is back.
    send(&mut old, 50, "createSession", session(2)).await;
    let (handle, took) = wait_until_here(&b, "team").await;
    eprintln!("taken over {took:?} after the node was cut off");
    // Before anybody could take it, the node had fallen silent.
    assert!(matches!(a.space("team").await, Err(SpaceUnavailable::Nobody)));
    let heard = hear(&mut old, 50).await;
    assert!(
        match &heard {
            Ok(answer) => !answer["error"].is_null(),
            Err(code) => matches!(code, 0 | 1012 | 1013),
        },
        "nothing was recorded: {heard:?}"
    );
    let mut socket = connect(&serve_handle(&handle).await, "bob").await;
    create_session(&mut socket, 3).await;
    proxy.open();
    poll(
        "the node knows who has it",
        async || matches!(a.space("team").await, Ok(SpaceLocation::At(owner)) if owner.id == b.id()),
    )
    .await;
    assert!(has_session(&mut socket, 1).await && has_session(&mut socket, 3).await);
    assert!(!has_session(&mut socket, 2).await, "it came too late");
    create_session(&mut socket, 4).await;
    assert_eq!(cluster.holder("team"), Some(b.id()));
}

/// Every batch takes so long from now on.
const SLOW: &str = "CREATE FUNCTION greenroom.slow() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_sleep(0.6); RETURN NEW; END $$;
     CREATE TRIGGER slow BEFORE UPDATE ON greenroom.lease FOR EACH ROW
         WHEN (NEW.batch <> OLD.batch) EXECUTE FUNCTION greenroom.slow()";

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_is_slow_turns_are_refused_and_the_rest_goes_on() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let node = cluster
        .node_with("a", |config| {
            // Whatever else this machine does, a batch does not take as long by itself.
            config.limits.server.append_slow_ms = 500;
        })
        .await;
    let (handle, _) = wait_until_here(&node, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    let chat = open_chat(&mut socket, 1).await;
    cluster.run(SLOW);
    let refused = run_turn(&mut socket, &chat, 1).await;
    assert_eq!(refused["type"], "chat/error", "{refused}");
    let error = refused["part"].to_string();
    assert!(error.contains("databaseSlow") && error.contains("append_slow_ms"), "{refused}");
    // Nothing has timed out: it was recorded, as are other things.
    create_session(&mut socket, 2).await;
    cluster.run("DROP TRIGGER slow ON greenroom.lease");
    let mut number = 1;
    poll("turns begin again", async || {
        number += 1;
        run_turn(&mut socket, &chat, number).await["type"] == "chat/turnComplete"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_whose_batches_take_long_keeps_no_other_from_its_turns() {
    let Some(cluster) = TestCluster::start(&["slow", "quick"]).await else { return };
    let node = cluster.node_with("a", |config| config.limits.server.append_slow_ms = 1_500).await;
    let mut clients = Vec::new();
    for space in ["slow", "quick"] {
        let (handle, _) = wait_until_here(&node, space).await;
        let mut socket = connect(&serve_handle(&handle).await, "ann").await;
        create_session(&mut socket, 1).await;
        let chat = open_chat(&mut socket, 1).await;
        clients.push((socket, chat));
    }
    let slow = SLOW
        .replace("0.6", "1.6")
        .replace("NEW.batch <> OLD.batch", "NEW.batch <> OLD.batch AND NEW.space = 1");
    assert_eq!(
        cluster.ask("SELECT id FROM greenroom.space WHERE name = 'slow'"),
        "1",
        "the two have different writers"
    );
    cluster.run(&slow);
    let [slow, quick] = clients.as_mut_slice() else {
        panic!("two spaces");
    };
    let mut number = 0;
    // Whatever else this machine does, it is not always as slow by itself.
    poll("a turn begins though another space is slow", async || {
        number += 1;
        let refused = run_turn(&mut slow.0, &slow.1, number).await;
        assert_eq!(refused["type"], "chat/error", "{refused}");
        assert!(refused["part"].to_string().contains("databaseSlow"));
        run_turn(&mut quick.0, &quick.1, number).await["type"] == "chat/turnComplete"
    })
    .await;
}

/// A disk of a few megabytes, which goes with this value.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None, with words, where this user may mount nothing; a failure where the tests of the database are required.
    fn mount(at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs"])
            .arg(at)
            .output();
        let refused = match mounted {
            Ok(mounted) if mounted.status.success() => None,
            Ok(refused) => Some(String::from_utf8_lossy(&refused.stderr).into_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = refused {
            let is_required = std::env::var_os("GREENROOM_REQUIRE_POSTGRES").is_some();
            assert!(!is_required, "a small disk cannot be mounted: {why}");
            eprintln!(
                "skipped: a small disk cannot be mounted, as root may where it is allowed to: {why}"
            );
            return None;
        }
        let disk = Self(at.to_owned());
        let owned = Command::new("chown").arg("postgres").arg(at).status();
        assert!(owned.unwrap().success());
        Some(disk)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The server may still have files there; it ends with the test.
        let ended = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_of_the_database_changes_are_refused_and_reading_goes_on() {
    let Some(cluster) = TestCluster::start(&["team"]).await else { return };
    let place = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).unwrap();
    let Some(disk) = SmallDisk::mount(&place.path().join("disk")) else { return };
    cluster.run(&format!("CREATE TABLESPACE small LOCATION '{}'", disk.0.display()));
    for table in ["channel", "action", "head", "summary"] {
        cluster.run(&format!("ALTER TABLE greenroom.{table} SET TABLESPACE small"));
    }
    let node = cluster.node("a").await;
    let (handle, _) = wait_until_here(&node, "team").await;
    let mut socket = connect(&serve_handle(&handle).await, "ann").await;
    create_session(&mut socket, 1).await;
    cluster.run("CREATE TABLE public.filler (bytes text) TABLESPACE small");
    // Until nothing fits any more, whatever has room left in a page of its own.
    cluster.run(
        "DO $$ BEGIN LOOP INSERT INTO public.filler SELECT repeat('x', 2000) FROM generate_series(1, 10); END LOOP;
         EXCEPTION WHEN disk_full THEN NULL; END $$",
    );
    let mut number = 1;
    poll("nothing more is recorded", async || {
        number += 1;
        let answer = ask(&mut socket, 1_000 + number, "createSession", session(number)).await;
        !answer.unwrap()["error"].is_null()
    })
    .await;
    // What is there is read, by who is here and by who comes.
    assert!(has_session(&mut socket, 1).await);
    assert!(!has_session(&mut socket, number).await);
    let ping = json!({"channel": "ahp-root://"});
    assert!(ask(&mut socket, 900, "ping", ping).await.unwrap()["error"].is_null());
    assert!(matches!(node.space("team").await, Ok(SpaceLocation::Here(_))));
    cluster.run("DROP TABLE public.filler");
    poll("changes are taken again", async || {
        number += 1;
        let answer = ask(&mut socket, 1_000 + number, "createSession", session(number)).await;
        answer.unwrap()["error"].is_null()
    })
    .await;
    assert!(has_session(&mut socket, number).await);
    drop(cluster);
    drop(disk);
}
