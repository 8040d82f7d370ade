//! What rules about commands reach, and what they do not.

use super::*;

#[test]
fn a_prefix_reaches_through_nothing() {
    for allowed in [
        "cargo test",
        "cargo test --all -- x",
        "cargo test 'a; b'",
        "cargo test;",
        "cargo test && cargo test a",
        "cargo test src/*.rs",
    ] {
        assert!(allows_text("bash(cargo test:*)", allowed), "{allowed}");
    }
    for refused in [
        "cargo test; rm -rf x",
        "cargo test && rm x",
        "cargo test || rm x",
        "cargo test | rm",
        "cargo test & rm x",
        "cargo test\nrm x",
        "cargo test $(rm x)",
        "cargo test `rm x`",
        "cargo test \"$(rm x)\"",
        "cargo test <(rm x)",
        "cargo test > x",
        "cargo test 2>x",
        "cargo test >> x",
        "cargo test <<E\nE",
        "(cargo test)",
        "{ cargo test; }",
        "LD_PRELOAD=x cargo test",
        "eval cargo test",
        "env cargo test",
        "sudo cargo test",
        "cargo tests",
        "cargo",
        "cargo 'test x'",
        "cargo t*",
        "if cargo test; then rm x; fi",
        "cargo test &",
        "time cargo test",
        "! cargo test",
        "cargo test # x",
        "alias cargo=rm; cargo test",
        "cargo() { rm x; }; cargo test",
        "exec cargo test",
        "cargo test $IFS",
        "cargo {test,x}",
        "./cargo test",
        "/tmp/cargo test",
        "cargo\u{a0}test",
        "xcargo test",
    ] {
        assert!(!allows_text("bash(cargo test:*)", refused), "{refused}");
    }
}

#[test]
fn a_command_without_an_asterisk_is_that_command_alone() {
    for allowed in [
        "git status",
        " git status ",
        "git  status",
        "git 'status'",
        "git status && git status",
    ] {
        assert!(allows_text("bash(git status)", allowed), "{allowed}");
    }
    for refused in ["git status -s", "git status; rm x", "git", "git status > x"] {
        assert!(!allows_text("bash(git status)", refused), "{refused}");
    }
    assert!(
        allows_text("bash(a > b; c)", "a > b; c"),
        "what cannot be split is compared as it is"
    );
    assert!(!allows_text("bash(a > b; c)", "a > b; c; d"));
}

#[test]
fn a_prefix_covers_no_option_that_runs_something_else() {
    for text in [
        "cargo test --config 'target.x.runner=[\"sh\",\"-c\",\"rm x\"]'",
        "cargo test --config=x",
        "cargo test --manifest-path /elsewhere/Cargo.toml",
        "cargo test -Zx",
        "cargo test *",
    ] {
        assert!(!allows_text("bash(cargo test:*)", text), "{text}");
    }
    for text in [
        "cargo test",
        "cargo test --workspace",
        "cargo test -- --config",
        "cargo test src/*",
    ] {
        assert!(allows_text("bash(cargo test:*)", text), "{text}");
    }
    // Several short options may stand in one word.
    for (text, is_allowed) in [
        ("pytest -xvs", true),
        ("pytest -vp evil", false),
        ("pytest -qc/elsewhere.ini", false),
        ("pytest --verbose", true),
    ] {
        assert_eq!(allows_text("bash(pytest:*)", text), is_allowed, "{text}");
    }
    assert!(!allows_text("bash(npm test:*)", "npm test --script-sh=./x"));
    assert!(!allows_text("bash(go test:*)", "go test -exec ./x ./..."));
}
