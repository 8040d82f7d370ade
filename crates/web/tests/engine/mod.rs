//! The page's modules in QuickJS, in this process: JSON in, JSON out.

use std::path::Path;

use rquickjs::loader::{FileResolver, ScriptLoader};
use rquickjs::{CatchResultExt, Context, Function, Module, Runtime};
use serde_json::{Value, json};

/// The modules of the page, loaded once.
pub struct Engine {
    context: Context,
    _runtime: Runtime,
}

const ENTRANCE: &str = r"
import { reduceAll, callAll, replayAll } from 'tests/engine/replay.js';
import { addKinds, readState, reduceState } from 'app/js/wire/mirror.js';
import { readEnvelope, readSnapshot } from 'app/js/wire/envelope.js';
import { Replica } from 'app/js/wire/replica.js';
import { CHAT_ACTIONS } from 'app/js/wire/reduce/chat.js';
import { ROOT_ACTIONS, SESSION_ACTIONS } from 'app/js/wire/reduce/session.js';
import { ANNOTATIONS_ACTIONS, CHANGESET_ACTIONS, TERMINAL_ACTIONS, WATCH_ACTIONS } from 'app/js/wire/reduce/plain.js';
import { LATER_KINDS } from 'app/js/wire/reduce/later.js';
addKinds(LATER_KINDS);
const modules = { readState, reduceState, readEnvelope, readSnapshot, Replica };
const actionNames = () => ({
  chat: Object.keys(CHAT_ACTIONS), session: Object.keys(SESSION_ACTIONS), root: Object.keys(ROOT_ACTIONS),
  changeset: Object.keys(CHANGESET_ACTIONS), annotations: Object.keys(ANNOTATIONS_ACTIONS),
  terminal: Object.keys(TERMINAL_ACTIONS), resourceWatch: Object.keys(WATCH_ACTIONS),
});
globalThis.run = (what, text) =>
  JSON.stringify({ reduceAll, callAll, replayAll, actionNames }[what](modules, JSON.parse(text)));
";

impl Engine {
    pub fn new() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        runtime.set_max_stack_size(4 * 1_024 * 1_024);
        // Tests run in the directory of their crate.
        let resolver = FileResolver::default().with_path("./");
        runtime.set_loader(resolver, ScriptLoader::default());
        let context = Context::full(&runtime).expect("a context");
        context.with(|ctx| {
            let loaded = Module::evaluate(ctx.clone(), "entrance", ENTRANCE)
                .and_then(|promise| promise.finish::<()>());
            if let Err(error) = loaded.catch(&ctx) {
                panic!("the page's modules do not load: {error}");
            }
        });
        Self { context, _runtime: runtime }
    }

    /// Calls one of the functions of `replay.js`.
    pub fn run(&self, what: &str, given: &Value) -> Value {
        let text = self.context.with(|ctx| {
            let run: Function = ctx.globals().get("run").expect("the entrance sets it");
            let called: rquickjs::Result<String> = run.call((what, given.to_string()));
            match called.catch(&ctx) {
                Ok(text) => text,
                Err(error) => panic!("{what}: {error}"),
            }
        });
        serde_json::from_str(&text).expect("JSON")
    }
}

/// Bytes that look like chance and are the same every time.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let next = |_| {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 32) as u8
        };
        (0..count).map(next).collect()
    }
}

/// Holds recorded sequences to their file, which a browser plays again, and plays them here. `UPDATE_EXPECT=1` writes the file.
pub fn check_recorded(engine: &Engine, name: &str, sequences: &[Value]) {
    let file = Path::new("tests/recorded").join(name);
    let recorded = json!({"sequences": sequences});
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&file, format!("{recorded}\n")).expect("the file can be written");
    }
    let text = std::fs::read_to_string(&file).expect("the file is there");
    let kept: Value = serde_json::from_str(&text).expect("JSON");
    assert!(
        kept == recorded,
        "{} is not what the generators make: run this test with UPDATE_EXPECT=1",
        file.display()
    );
    let expected = json!({"count": sequences.len(), "wrong": []});
    assert_eq!(engine.run("replayAll", &kept), expected);
}
