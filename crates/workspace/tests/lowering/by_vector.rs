//! The vectors that use a workspace, in a real one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compositor::Part;
use compositor::lower::{Capabilities, Target, lower};
use serde_json::Value;
use wire::Object;
use workspace::{Confinement, ContentStore, Workspace, WorkspaceSources};

const VECTORS: &str = include_str!("../../../compositor/tests/vectors.json");

struct Entities<'a>(&'a Value);

impl ContentStore for Entities<'_> {
    fn body(&mut self, _: &str) -> Option<Vec<u8>> {
        None
    }

    fn find_staged_copy(&mut self, _: &Part) -> Option<String> {
        None
    }

    fn entity(&mut self, kind: &str, target: &Object) -> bool {
        let mut known =
            self.0.as_array().into_iter().flatten().map(|entity| (&entity["kind"], &entity["id"]));
        known.any(|(k, id)| k == kind && target.get("id") == Some(id))
    }
}

fn lay_out(root: &Path, workspace: &Value) {
    for (path, lies) in workspace.as_object().into_iter().flatten() {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match (&lies["utf8"], &lies["base64"], &lies["symlink"]) {
            (Value::String(text), ..) => fs::write(path, text).unwrap(),
            (_, Value::String(data), _) => fs::write(path, STANDARD.decode(data).unwrap()).unwrap(),
            (.., Value::String(to)) => std::os::unix::fs::symlink(to, path).unwrap(),
            _ => fs::write(path, vec![b'0'; lies["zeros"].as_u64().unwrap() as usize]).unwrap(),
        }
    }
}

#[test]
fn vectors_hold_in_a_real_workspace() {
    let file: Value = serde_json::from_str(VECTORS).unwrap();
    let mut checked = 0;
    for vector in file["vectors"].as_array().unwrap() {
        // Bodies in a store are another's.
        if vector["persisted"].to_string().contains("content_id") {
            continue;
        }
        let root = tempfile::tempdir().unwrap();
        let at = root.path().to_str().unwrap();
        lay_out(root.path(), &vector["workspace"]);
        let files = Workspace::open(&[format!("file://{at}")], &Confinement::none()).unwrap();
        let parts: Vec<Part> = vector["persisted"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| Part::from_value(it.clone()).unwrap())
            .collect();
        for (target, expected) in vector["lowered"].as_object().unwrap() {
            let target = Target::from_name(target).unwrap();
            let mut sources = WorkspaceSources {
                workspace: Some(files.clone()),
                store: Entities(&vector["entities"]),
            };
            let capabilities = Capabilities::built_in(target);
            let lowered = lower(&parts, &BTreeMap::new(), target, &capabilities, &mut sources);
            let expected = expected.to_string().replace("file:///ws", &format!("file://{at}"));
            assert_eq!(Value::Array(lowered.blocks).to_string(), expected, "{}", vector["id"]);
            checked += 1;
        }
    }
    assert!(checked >= 30, "only {checked}");
}
