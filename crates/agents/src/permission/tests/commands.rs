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
    for allowed in
        ["git status", " git status ", "git  status", "git 'status'", "git status && git status"]
    {
        assert!(allows_text("bash(git status)", allowed), "{allowed}");
    }
    for refused in ["git status -s", "git status; rm x", "git", "git status > x"] {
        assert!(!allows_text("bash(git status)", refused), "{refused}");
    }
    assert!(allows_text("bash(a > b; c)", "a > b; c"), "what cannot be split is compared as it is");
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
    for text in
        ["cargo test", "cargo test --workspace", "cargo test -- --config", "cargo test src/*"]
    {
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
    // What is allowed to tests that may do nothing is not allowed to those that may do everything.
    for (rule, text, is_allowed) in [
        ("deno test", "deno test src/", true),
        ("deno test", "deno test -A src/", false),
        ("deno test", "deno test --allow-run=sh", false),
        ("pytest", "pytest --basetemp=src", false),
        ("pytest", "pytest --basetemp src", false),
        ("eslint", "eslint -f ./evil.js .", false),
        ("eslint", "eslint --parser=./evil.js .", false),
        ("eslint", "eslint --fix .", true),
        ("jest", "jest --global-setup ./evil.js", false),
        ("jest", "jest --runInBand", true),
        ("jest", "jest --test-runner=./evil.js", false),
        ("vitest", "vitest run --output-file=x", false),
        ("tsc", "tsc --OUTDIR x", false),
        ("tsc", "tsc --noEmit", true),
        ("go test", "go test -ldflags=-extld=./evil ./...", false),
        ("go test", "go test -coverprofile main.go", false),
        ("go test", "go test -cover -run TestX ./...", true),
        ("cargo test", "cargo test --target x86_64-unknown-linux-gnu", true),
        ("npm test", "npm test --node-options=--require=./evil.js", false),
        ("npm ci", "npm ci --registry http://127.0.0.1", false),
        ("pnpm test", "pnpm test --config.script-shell=./evil", false),
        ("cargo nextest", "cargo nextest run --config-file x.toml", false),
        ("dotnet build", "dotnet build /p:CustomBeforeMicrosoftCommonTargets=x", false),
        ("dotnet test", "dotnet test --logger:evil", false),
        ("dotnet test", "dotnet test --no-build", true),
        ("mypy", "mypy --install-types x", false),
    ] {
        let rule = format!("bash({rule}:*)");
        assert_eq!(allows_text(&rule, text), is_allowed, "{text}");
    }
    for (rule, text) in [
        ("npm test", "npm test --script-sh=./x"),
        ("npm ci", "npm ci --reg http://127.0.0.1"),
        ("npm ci", "npm ci -reg http://127.0.0.1"),
        ("npm ci", "npm ci --@scope:registry=http://127.0.0.1"),
        ("npm test", "npm test --scr ./x"),
        ("mypy", "mypy --con x.ini"),
        ("go test", "go test -exec ./x ./..."),
        ("go test", "go test -test.cpuprofile=main.go"),
        ("go test", "go test -test.coverprofile main.go"),
        ("go test", "go test --test.outputdir=src"),
        ("go test", "go test -test.trace=main.go"),
        ("go test", "go test -run -- -exec ./x ./..."),
        ("cargo test", "cargo test --target ./x.json"),
        ("cargo test", "cargo test --target=./x.json"),
        ("cargo test", "cargo test --target x.json"),
        ("cargo test", "cargo test --target=x.json"),
        ("cargo test", "cargo test --target specs/x"),
        ("cargo test", "cargo test --target x86*"),
        ("cargo test", "cargo test --c*"),
    ] {
        let rule = format!("bash({rule}:*)");
        assert!(!allows_text(&rule, text), "{text}");
    }
}

#[test]
fn a_long_option_is_covered_if_it_begins_like_none_that_steers_or_is_known() {
    for (rule, text, is_allowed) in [
        ("vitest", "vitest run --coverage.enabled --coverage.reportsDirectory=src", false),
        (
            "vitest",
            "vitest run --coverage.provider=custom --coverage.customProviderModule=./evil.js",
            false,
        ),
        ("vitest", "vitest run --reporter=./evil.js", false),
        ("vitest", "vitest run --reporters ./evil.js", false),
        ("vitest", "vitest run --typecheck.checker=./evil", false),
        ("vitest", "vitest run --pool=./evil.js", false),
        ("vitest", "vitest run --poolOptions.forks.execArgv=-r=./evil.js", false),
        ("vitest", "vitest run --execArgv=-r=./evil.js", false),
        ("vitest", "vitest run -r elsewhere", false),
        ("vitest", "vitest --run --coverage --color x", true),
        ("jest", "jest --coverage --coverageReporters=./evil.js", false),
        ("jest", "jest --coverage-reporters ./evil.js", false),
        ("jest", "jest --env=./evil.js", false),
        ("jest", "jest --coverage.x", false),
        ("jest", "jest -ic ./evil.js", false),
        ("jest", "jest --ci --coverage --colors", true),
        ("pytest", "pytest --cov-report=xml:src/app.py", false),
        ("pytest", "pytest --cov-config=x", false),
        ("pytest", "pytest --confcutdir=..", false),
        ("pytest", "pytest --cov=src", false),
        ("pytest", "pytest --pdb", false),
        ("pytest", "pytest @arguments.txt", false),
        ("pytest", "pytest -color", false),
        ("pytest", "pytest --color=no --collect-only x.py", true),
        ("pytest", "pytest --capture=no -k 'a or b'", true),
        ("eslint", "eslint --cache --color .", true),
        ("eslint", "eslint --cache-location=src/x.js .", false),
        ("deno fmt", "deno fmt --check", true),
        ("deno test", "deno test --clean", false),
        ("deno test", "deno test -qA", false),
        ("ruff", "ruff check --output-format=json", true),
        ("ruff", "ruff check -qo src/x.py", false),
        ("tsc", "tsc --pretty --noEmit", true),
        ("npm ls", "npm ls --all", true),
    ] {
        let rule = format!("bash({rule}:*)");
        assert_eq!(allows_text(&rule, text), is_allowed, "{text}");
    }
}
