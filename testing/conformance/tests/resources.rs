//! Files of the host, read and changed by the published 1.0.0 client on a real disk (H-250 to H-258, G-55).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ahp::Client;
use ahp_types::commands::{
    ContentEncoding, ResourceListResult, ResourceReadResult, ResourceResolveResult, ResourceType,
};
use ahp_types::errors::PermissionDeniedErrorData;
use conformance::TestHost;
use serde_json::{Value, json};

use crate::published_client::arrives;

struct Fixture {
    _directory: tempfile::TempDir,
    root: PathBuf,
    outside: PathBuf,
    host: TestHost,
    client: Client,
}

async fn start(change: impl FnOnce(&mut host::Config, &Path)) -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().canonicalize().unwrap();
    let (root, outside) = (top.join("root"), top.join("outside"));
    fs::create_dir(&root).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "outside").unwrap();
    let scenes = json!({"scenes": []});
    let host = TestHost::start_with(&root, &scenes, |config| change(config, &outside)).await;
    let client = arrives(&host.url, "files").await;
    Fixture { _directory: directory, root, outside, host, client }
}

fn uri(path: impl AsRef<Path>) -> String {
    format!("file://{}", path.as_ref().display())
}

impl Fixture {
    fn uri(&self, name: &str) -> String {
        uri(self.root.join(name))
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Value, (i64, Value)> {
        ask(&self.client, method, params).await
    }

    async fn done(&self, method: &str, params: Value) {
        assert_eq!(self.ask(method, params).await, Ok(json!({})), "{method}");
    }

    async fn refused(&self, method: &str, params: Value) -> i64 {
        self.ask(method, params).await.unwrap_err().0
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.root.join(name)).unwrap()
    }
}

async fn ask(client: &Client, method: &str, mut params: Value) -> Result<Value, (i64, Value)> {
    params["channel"] = "ahp-root://".into();
    match client.request(method, params).await {
        Ok(value) => Ok(value),
        Err(ahp::ClientError::Rpc(error)) => {
            Err((i64::from(error.code), error.data.unwrap_or(Value::Null)))
        }
        Err(other) => panic!("{method}: {other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_written_resolved_and_read() {
    let f = start(|_, _| {}).await;
    let a = f.uri("new/a.txt");
    let text = |data: &str| json!({"uri": a, "data": data, "encoding": "utf-8"});
    let with = |mut params: Value, field: &str, value: Value| {
        params[field] = value;
        params
    };
    f.done("resourceWrite", with(text("one"), "createOnly", json!(true))).await;
    let again = with(text("two"), "createOnly", json!(true));
    assert_eq!(f.refused("resourceWrite", again).await, -32010);
    let facts = f.ask("resourceResolve", json!({"uri": a})).await.unwrap();
    let facts: ResourceResolveResult = serde_json::from_value(facts).unwrap();
    assert_eq!(
        (facts.uri.as_str(), facts.r#type, facts.size),
        (a.as_str(), ResourceType::File, Some(3))
    );
    let tag = json!(facts.etag.unwrap());
    f.done("resourceWrite", with(text("two"), "ifMatch", tag.clone())).await;
    assert_eq!(f.refused("resourceWrite", with(text("three"), "ifMatch", tag)).await, -32011);
    assert_eq!(f.text("new/a.txt"), "two");

    for (mode, position, data, after) in [
        ("append", None, "!", "two!"),
        ("append", Some(1), "-", "two-!"),
        ("insert", Some(1), "hr", "thrwo-!"),
        ("truncate", Some(2), "en", "then"),
    ] {
        let mut params = with(text(data), "mode", json!(mode));
        if let Some(position) = position {
            params["position"] = json!(position);
        }
        f.done("resourceWrite", params).await;
        assert_eq!(f.text("new/a.txt"), after);
    }
    let beyond = with(with(text("x"), "mode", json!("insert")), "position", json!(99));
    assert_eq!(f.refused("resourceWrite", beyond).await, -32602);
    assert_eq!(f.refused("resourceWrite", with(text("x"), "position", json!(-1))).await, -32602);
    let bad = json!({"uri": a, "data": "%", "encoding": "base64"});
    assert_eq!(f.refused("resourceWrite", bad).await, -32602);

    let read = |name: &str, encoding: Value| json!({"uri": f.uri(name), "encoding": encoding});
    let got = f.ask("resourceRead", read("new/a.txt", json!("utf-8"))).await.unwrap();
    let got: ResourceReadResult = serde_json::from_value(got).unwrap();
    assert_eq!((got.data.as_str(), got.encoding), ("then", ContentEncoding::Utf8));
    f.done("resourceWrite", json!({"uri": f.uri("b"), "data": "AP8=", "encoding": "base64"})).await;
    assert_eq!(fs::read(f.root.join("b")).unwrap(), [0, 255]);
    let got = f.ask("resourceRead", read("b", json!("utf-8"))).await.unwrap();
    assert_eq!((&got["data"], &got["encoding"]), (&json!("AP8="), &json!("base64")));
    assert_eq!(f.refused("resourceRead", read("none", Value::Null)).await, -32008);
    assert_eq!(f.refused("resourceResolve", json!({"uri": f.uri("none")})).await, -32008);
    f.host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn directories_are_made_listed_copied_moved_and_removed() {
    let f = start(|_, _| {}).await;
    f.done("resourceMkdir", json!({"uri": f.uri("d/e")})).await;
    f.done("resourceMkdir", json!({"uri": f.uri("d")})).await;
    fs::write(f.root.join("d/f"), "f").unwrap();
    std::os::unix::fs::symlink("e", f.root.join("d/link")).unwrap();
    std::os::unix::fs::symlink("nowhere", f.root.join("d/dangling")).unwrap();
    assert_eq!(f.refused("resourceMkdir", json!({"uri": f.uri("d/f")})).await, -32010);
    let listed = f.ask("resourceList", json!({"uri": f.uri("d")})).await.unwrap();
    let listed: ResourceListResult = serde_json::from_value(listed).unwrap();
    let listed: Vec<_> =
        listed.entries.iter().map(|entry| (&*entry.name, &*entry.r#type)).collect();
    let expected =
        [("dangling", "symlink"), ("e", "directory"), ("f", "file"), ("link", "directory")];
    assert_eq!(listed, expected);
    assert_eq!(f.refused("resourceList", json!({"uri": f.uri("d/f")})).await, -32602);
    assert_eq!(f.refused("resourceList", json!({"uri": f.uri("none")})).await, -32008);

    let link = f.ask("resourceResolve", json!({"uri": f.uri("d/link")})).await.unwrap();
    assert_eq!((&link["uri"], &link["type"]), (&json!(f.uri("d/e")), &json!("directory")));
    let params = json!({"uri": f.uri("d/link"), "followSymlinks": false});
    let link = f.ask("resourceResolve", params).await.unwrap();
    assert_eq!((&link["uri"], &link["type"]), (&json!(f.uri("d/link")), &json!("symlink")));

    let pair = |source: &str, destination: &str| json!({"source": f.uri(source), "destination": f.uri(destination), "failIfExists": true});
    f.done("resourceCopy", pair("d", "copy")).await;
    assert_eq!(f.text("copy/f"), "f");
    assert_eq!(f.refused("resourceCopy", pair("d", "copy")).await, -32010);
    f.done("resourceMove", pair("copy/f", "moved")).await;
    assert_eq!(f.refused("resourceMove", pair("d/f", "moved")).await, -32010);
    let over = json!({"source": f.uri("d/f"), "destination": f.uri("moved")});
    f.done("resourceMove", over).await;
    assert!(!f.root.join("d/f").exists());
    assert_eq!(f.refused("resourceMove", pair("none", "x")).await, -32008);
    assert_eq!(f.refused("resourceDelete", json!({"uri": f.uri("d")})).await, -32602);
    f.done("resourceDelete", json!({"uri": f.uri("d"), "recursive": true})).await;
    assert_eq!(f.refused("resourceDelete", json!({"uri": f.uri("d")})).await, -32008);
    f.host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lies_outside_is_denied_with_what_to_ask_for() {
    let f = start(|_, _| {}).await;
    let a = uri(f.outside.join("a"));
    std::os::unix::fs::symlink(&f.outside, f.root.join("out")).unwrap();
    for (method, params, access) in [
        ("resourceRead", json!({"uri": a}), "read"),
        ("resourceRead", json!({"uri": uri(f.outside.join("missing"))}), "read"),
        ("resourceRead", json!({"uri": f.uri("out/a")}), "read"),
        ("resourceList", json!({"uri": uri(&f.outside)}), "read"),
        ("resourceResolve", json!({"uri": a}), "read"),
        ("resourceWrite", json!({"uri": a, "data": "", "encoding": "utf-8"}), "write"),
        ("resourceDelete", json!({"uri": a}), "write"),
        ("resourceMkdir", json!({"uri": uri(f.outside.join("d"))}), "write"),
    ] {
        let asked = params["uri"].clone();
        let (code, data) = f.ask(method, params).await.unwrap_err();
        assert_eq!(code, -32009, "{method}");
        let data: PermissionDeniedErrorData = serde_json::from_value(data).unwrap();
        let request = data.request.unwrap();
        assert_eq!((json!(request.uri), request.channel.as_str()), (asked, "ahp-root://"));
        let wanted = match access {
            "read" => (Some(true), None),
            _ => (None, Some(true)),
        };
        assert_eq!((request.read, request.write), wanted, "{method}");
        // This host grants nothing.
        let params = json!({"uri": a, access: true});
        assert_eq!(f.refused("resourceRequest", params).await, -32009);
    }
    fs::write(f.root.join("b"), "b").unwrap();
    let copied = json!({"source": f.uri("b"), "destination": uri(f.outside.join("b"))});
    for method in ["resourceCopy", "resourceMove"] {
        let (code, data) = f.ask(method, copied.clone()).await.unwrap_err();
        assert_eq!((code, &data["request"]["uri"]), (-32009, &copied["destination"]));
    }
    // The data directory lies in the root here.
    for name in ["data", "data/greenroom.db"] {
        for method in ["resourceRead", "resourceList", "resourceResolve", "resourceRequest"] {
            let denied = f.ask(method, json!({"uri": f.uri(name)})).await.unwrap_err();
            assert_eq!(denied, (-32009, Value::Null), "{method} {name}");
        }
        let params = json!({"uri": f.uri(name), "recursive": true});
        assert_eq!(f.refused("resourceDelete", params).await, -32009);
    }
    assert_eq!(f.refused("resourceRead", json!({"uri": "virtual://a/b"})).await, -32008);
    f.done("resourceRequest", json!({"uri": f.uri("b"), "write": true})).await;
    assert_eq!(fs::read_to_string(f.outside.join("a")).unwrap(), "outside");
    f.host.stop().await;
}

// G-55
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_configuration_grants_is_granted_to_who_asks_until_it_is_taken_back() {
    let settings = std::cell::RefCell::new(PathBuf::new());
    let f = start(|config, outside| {
        // Where no client can write.
        fs::create_dir_all(&config.data).unwrap();
        let file = config.data.join("greenroom.toml");
        let path = outside.display();
        fs::write(&file, format!("resource_grants = [{{ path = \"{path}\" }}]\n")).unwrap();
        let (listen, script, workspaces) =
            (config.listen, config.script.clone(), config.workspaces.clone());
        config.load_toml(&file).unwrap();
        (config.listen, config.script, config.workspaces) = (listen, script, workspaces);
        settings.replace(file);
    })
    .await;
    let a = json!({"uri": uri(f.outside.join("a"))});
    assert_eq!(f.refused("resourceRead", a.clone()).await, -32009);
    let write = json!({"uri": a["uri"], "write": true});
    assert_eq!(f.refused("resourceRequest", write).await, -32009);
    f.done("resourceRequest", a.clone()).await;
    let read = f.ask("resourceRead", a.clone()).await.unwrap();
    assert_eq!(read["data"], "outside");
    assert_eq!(f.refused("resourceDelete", a.clone()).await, -32009);
    let other = arrives(&f.host.url, "other").await;
    assert_eq!(ask(&other, "resourceRead", a.clone()).await.unwrap_err().0, -32009);
    fs::write(settings.into_inner(), "resource_grants = []\n# longer, and later\n").unwrap();
    assert_eq!(f.refused("resourceRead", a.clone()).await, -32009);
    assert_eq!(f.refused("resourceRequest", a).await, -32009);
    f.host.stop().await;
}

/// The next batch of changes, as paths beneath the root with their kinds.
async fn changes(f: &Fixture, watch: &mut ahp::SessionSubscription) -> Vec<(String, String)> {
    let next = tokio::time::timeout(Duration::from_secs(30), watch.recv());
    let Some(ahp::SubscriptionEvent::Action(envelope)) = next.await.expect("in time") else {
        panic!("an action")
    };
    let action = serde_json::to_value(&envelope.action).unwrap();
    assert_eq!(action["type"], "resourceWatch/changed");
    let items = action["changes"]["items"].as_array().unwrap().clone();
    assert!(!items.is_empty(), "H-261");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let items = items.iter().map(|item| {
        let path = text(&item["uri"]).replace(&format!("{}/", uri(&f.root)), "");
        (path, text(&item["type"]))
    });
    items.collect()
}

// H-260, H-261
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_tells_what_changes_until_its_last_subscriber_is_gone() {
    let f = start(|_, _| {}).await;
    fs::create_dir_all(f.root.join("d/skipped")).unwrap();
    let params = json!({
        "uri": f.uri("d"), "recursive": true, "excludes": {"items": ["skipped"]},
    });
    let created = f.ask("createResourceWatch", params).await.unwrap();
    let channel = created["channel"].as_str().unwrap().to_owned();
    assert!(channel.starts_with("ahp-resource-watch:/"), "{channel}");
    let (subscribed, mut watch) = f.client.subscribe(channel.clone()).await.unwrap();
    let snapshot = serde_json::to_value(&subscribed).unwrap();
    assert_eq!(snapshot["snapshot"]["state"]["root"], json!(f.uri("d")));
    let of = |path: &str, kind: &str| (path.to_owned(), kind.to_owned());

    fs::write(f.root.join("d/skipped/x"), "").unwrap();
    fs::write(f.root.join("d/a"), "one").unwrap();
    assert_eq!(changes(&f, &mut watch).await, [of("d/a", "added")]);
    // A client's own writes are told like any other.
    f.done("resourceWrite", json!({"uri": f.uri("d/a"), "data": "two", "encoding": "utf-8"})).await;
    assert_eq!(changes(&f, &mut watch).await, [of("d/a", "updated")]);
    fs::remove_file(f.root.join("d/a")).unwrap();
    assert_eq!(changes(&f, &mut watch).await, [of("d/a", "deleted")]);

    f.client.unsubscribe(channel.clone()).await.unwrap();
    assert_eq!(f.refused("resourceResolve", json!({"uri": f.uri("none")})).await, -32008);
    let again: Result<Value, _> = f.client.request("subscribe", json!({"channel": channel})).await;
    assert!(again.is_err(), "it ended with its only subscriber");
    let outside = json!({"uri": uri(&f.outside)});
    assert_eq!(f.refused("createResourceWatch", outside).await, -32009);
    assert_eq!(f.refused("createResourceWatch", json!({"uri": f.uri("data")})).await, -32009);
    assert_eq!(f.refused("createResourceWatch", json!({"uri": f.uri("none")})).await, -32008);
    let glob = json!({"uri": f.uri("d"), "excludes": {"items": ["a["]}});
    assert_eq!(f.refused("createResourceWatch", glob).await, -32602);
    f.host.stop().await;
}
