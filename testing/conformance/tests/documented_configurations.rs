//! Every configuration that our documents show: a host starts with it, and the published clients understand what it says.

use std::path::{Path, PathBuf};

use conformance::TestHost;
use serde_json::{Value, json};

const ROOT: &str = "ahp-root://";

/// The `toml` blocks of a document, each with the line it begins at.
fn toml_blocks(text: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.trim()) {
            (None, "```toml") => open = Some((index + 1, String::new())),
            (Some(_), "```") => blocks.extend(open.take()),
            (Some((_, block)), _) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, _) => {}
        }
    }
    assert!(open.is_none(), "every block ends");
    blocks
}

fn documents() -> Vec<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for directory in [".", "docs", "docs/adr", "docs/rules"] {
        let entries =
            std::fs::read_dir(repository.join(directory)).expect("the directory is there");
        let paths = entries.map(|entry| entry.unwrap().path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_host_starts_with_each_and_published_clients_can_read_what_it_offers() {
    let mut shown = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for (line, block) in toml_blocks(&text) {
            let at = format!("{}:{line}", document.display());
            start_and_initialize(&at, &block).await;
            shown += 1;
        }
    }
    assert!(shown > 0, "the documents show configurations");
}

async fn start_and_initialize(at: &str, block: &str) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("greenroom.toml");
    std::fs::write(&file, block).unwrap();
    let script = json!({"scenes": [{"steps": [{"say": ["hi"]}]}]});
    let host = TestHost::start_with(place.path(), &script, |config| {
        // What belongs to this machine stays as it is here.
        let here = config.clone();
        let loaded = config.load_toml(&file);
        loaded.unwrap_or_else(|error| panic!("{at}: {error}"));
        config.listen = here.listen;
        config.script = here.script.clone();
        config.workspaces = here.workspaces.clone();
        config.tls_cert = here.tls_cert.clone();
        config.tls_key = here.tls_key.clone();
        config.spaces = here.spaces.clone();
        config.capabilities = None;
    })
    .await;
    let agents = initialize_1_0(at, &host).await;
    assert!(agents > 0, "{at}: an agent is offered");
    assert_eq!(initialize_0_9(at, &host).await, agents, "{at}");
    host.stop().await;
}

/// How many agents the published client of 1.0 reads, and the schema of each.
async fn initialize_1_0(at: &str, host: &TestHost) -> usize {
    use ahp_types::commands::ResolveSessionConfigResult;
    use ahp_types::state::SnapshotState;
    let transport = ahp_ws::WebSocketTransport::connect(&host.url).await.unwrap();
    let client = ahp::Client::connect(transport, ahp::ClientConfig::default()).await.unwrap();
    let (versions, root) = (vec!["1.0.0".to_owned()], vec![ROOT.to_owned()]);
    let init = client
        .initialize("new".to_owned(), versions, root)
        .await
        .unwrap_or_else(|error| panic!("{at}: {error}"));
    let SnapshotState::Root(root) = &init.snapshots[0].state else { panic!("{at}: the root") };
    for agent in &root.agents {
        let params = json!({"channel": ROOT, "provider": agent.provider, "config": {}});
        let resolved: Result<ResolveSessionConfigResult, _> =
            client.request("resolveSessionConfig", params).await;
        resolved.unwrap_or_else(|error| panic!("{at}: {error}"));
        let session = format!("{}:/1", agent.provider);
        let params = json!({"channel": session, "provider": agent.provider});
        let _: Value = client.request("createSession", params).await.unwrap();
        let subscribed = client.subscribe(session).await;
        subscribed.unwrap_or_else(|error| panic!("{at}: {error}"));
    }
    root.agents.len()
}

async fn initialize_0_9(at: &str, host: &TestHost) -> usize {
    use ahp_types_09::state::SnapshotState;
    let transport = ahp_ws_09::WebSocketTransport::connect(&host.url).await.unwrap();
    let client = ahp_09::Client::connect(transport, ahp_09::ClientConfig::default()).await.unwrap();
    let (versions, root) = (vec!["0.9.0".to_owned()], vec![ROOT.to_owned()]);
    let init = client
        .initialize("old".to_owned(), versions, root)
        .await
        .unwrap_or_else(|error| panic!("{at}: {error}"));
    match &init.snapshots[0].state {
        SnapshotState::Root(root) => root.agents.len(),
        _ => panic!("{at}: the root"),
    }
}
