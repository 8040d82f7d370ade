//! What the page promises of its state, of answers and of signing out, in a world that a test plays: the clock, the storage and the
//! host are in `state/world.js`, elements in `state/page.js`, and every function that a file of tests exports is run in an engine of its own.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends")]

use rquickjs::loader::{FileResolver, ScriptLoader};
use rquickjs::{CatchResultExt, Context, Function, Module, Promise, Runtime};

/// Calls what `entrance` makes of a file of tests; gives the texts that it returns.
fn call(file: &str, entrance: &str) -> Vec<String> {
    let runtime = Runtime::new().expect("a runtime");
    runtime.set_max_stack_size(4 * 1_024 * 1_024);
    let resolver = FileResolver::default().with_path("./");
    runtime.set_loader(resolver, ScriptLoader::default());
    let context = Context::full(&runtime).expect("a context");
    context.with(|ctx| {
        let module = format!(
            "import * as tests from 'tests/state/{file}';\nglobalThis.call = async () => {{ {entrance} }};"
        );
        let loaded =
            Module::evaluate(ctx.clone(), "entrance", module).and_then(|done| done.finish::<()>());
        if let Err(error) = loaded.catch(&ctx) {
            panic!("{file} does not load: {error}");
        }
        let run: Function = ctx.globals().get("call").expect("the entrance sets it");
        let called = run.call(()).and_then(|promise: Promise| promise.finish());
        match called.catch(&ctx) {
            Ok(texts) => texts,
            Err(error) => panic!("{file}: {error}"),
        }
    })
}

/// Runs every test of a file and says which failed.
fn run_all(file: &str, least: usize) {
    let names = call(file, "return Object.keys(tests);");
    assert!(names.len() >= least, "{file} has lost tests: {names:?}");
    let failed: Vec<String> = names
        .iter()
        .flat_map(|name| {
            let run = format!(
                "try {{ await tests.{name}(); return []; }} catch (error) {{ return [`{name}: ${{error.message}}\\n${{error.stack}}`]; }}"
            );
            call(file, &run)
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_connection_is_kept_and_every_action_ends() {
    run_all("connection_tests.js", 34);
}

#[test]
fn the_first_connection_is_begun_before_the_page_is_there() {
    run_all("first_tests.js", 6);
}

#[test]
fn what_the_host_renders_is_remembered_if_it_is_whole() {
    run_all("markup_tests.js", 1);
}

#[test]
fn lists_drafts_and_windows_hold_what_they_should() {
    run_all("list_tests.js", 14);
}

#[test]
fn a_sheet_sends_one_answer_for_what_it_shows() {
    run_all("sheet_tests.js", 9);
}

#[test]
fn a_device_is_signed_out_at_the_host_or_says_that_it_is_not() {
    run_all("sign_out_tests.js", 4);
}

#[test]
fn a_terminal_shows_what_programs_print() {
    run_all("terminal_tests.js", 10);
}

#[test]
fn a_session_is_made_once_and_what_went_wrong_is_said() {
    run_all("creation_tests.js", 7);
}

#[test]
fn who_does_not_look_is_told_what_is_news_and_nothing_else() {
    run_all("news_tests.js", 9);
}

#[test]
fn notes_and_reviews_count_when_the_host_has_confirmed_them() {
    run_all("notes_tests.js", 10);
}
