//! What rules say, what is offered, what the file keeps, and whether bash agrees.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use expect_test::expect;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn subject(tool: &str, detail: SubjectDetail) -> CallSubject {
    CallSubject {
        tool: tool.to_owned(),
        is_edit: matches!(tool, "edit" | "write"),
        is_read: tool == "read",
        detail,
    }
}

fn command(text: &str) -> CallSubject {
    subject("bash", SubjectDetail::Command(text.to_owned()))
}

fn file(tool: &str, path: &str) -> CallSubject {
    let detail = SubjectDetail::Path(FileSubject {
        root: PathBuf::from("/work"),
        relative: PathBuf::from(path),
    });
    subject(tool, detail)
}

fn place() -> CallPlace {
    CallPlace {
        session: "native:/s".to_owned(),
        directories: vec![PathBuf::from("/work"), PathBuf::from("/other")],
    }
}

/// What the rules of a file say about a call: the list, and the rule.
fn says(text: &str, call: &CallSubject) -> String {
    let rules = super::file::parse(text).unwrap();
    let rule = rules.decide(call, &place());
    rule.map_or("-".to_owned(), |rule| {
        format!("{} {}", rule.effect.name(), rule.pattern)
    })
}

fn allows_text(pattern: &str, text: &str) -> bool {
    allows(&Pattern::parse(pattern).unwrap(), &command(text))
}

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
fn deny_wins_over_ask_and_ask_over_allow() {
    let text = r#"
        [always]
        allow = ["bash", "edit(**)", "read"]
        ask = ["bash(git push:*)", "edit(Cargo.toml)"]
        deny = ["bash(rm:*)", "read(.env)", "edit(secret/**)"]
    "#;
    for (call, expected) in [
        (command("ls"), "allow bash"),
        (command("git push"), "ask bash(git push:*)"),
        (command("ls; git push -f"), "ask bash(git push:*)"),
        (command("rm x"), "deny bash(rm:*)"),
        (command("git push && $(sudo /bin/rm x)"), "deny bash(rm:*)"),
        (file("edit", "src/a.rs"), "allow edit(**)"),
        (file("write", "src/a.rs"), "allow edit(**)"),
        (file("edit", "Cargo.toml"), "ask edit(Cargo.toml)"),
        (file("edit", "cargo.TOML"), "ask edit(Cargo.toml)"),
        (file("write", "SECRET/a/b"), "deny edit(secret/**)"),
        (file("read", ".env"), "deny read(.env)"),
        (file("edit", ".github/workflows/ci.yml"), "-"),
        (
            subject("edit", SubjectDetail::Unknown),
            "deny edit(secret/**)",
        ),
    ] {
        assert_eq!(says(text, &call), expected, "{call:?}");
    }
}

#[test]
fn rules_hold_where_they_were_made() {
    let text = r#"
        [project."/work"]
        allow = ["bash(make:*)", "edit(src/**)"]
        [project."/other"]
        allow = ["bash(just:*)", "edit(lib/**)"]
        [project."/elsewhere"]
        allow = ["bash(ls:*)"]
        [session."native:/s"]
        allow = ["bash(pwd)"]
        [session."native:/t"]
        allow = ["bash(id)"]
    "#;
    for (call, expected) in [
        (command("make all"), "allow bash(make:*)"),
        (command("pwd && make"), "allow bash(pwd)"),
        // Commands run in the first directory.
        (command("just x"), "-"),
        (command("ls"), "-"),
        (command("id"), "-"),
        (file("edit", "src/a"), "allow edit(src/**)"),
        (file("edit", "lib/a"), "-"),
        (file("edit", "src"), "-"),
    ] {
        assert_eq!(says(text, &call), expected, "{call:?}");
    }
}

#[test]
fn a_protected_file_needs_a_rule_that_names_it() {
    let allows = |rule: &str, path: &str| {
        let text = format!("[always]\nallow = ['{rule}']");
        says(&text, &file("edit", path)) != "-"
    };
    assert!(!allows("edit", ".git/config") && !allows("edit(**)", "a/.claude/x"));
    assert!(!allows("edit(**/*.md)", "AGENTS.md"));
    assert!(allows("edit(.github/**)", ".github/x") && allows("edit(AGENTS.md)", "AGENTS.md"));
    assert!(
        !allows("edit(.github/**)", ".GITHUB/x"),
        "what is allowed is named exactly"
    );
}

#[test]
fn hosts_inputs_and_tools_are_named() {
    let host = |host: &str| subject("web_fetch", SubjectDetail::Host(host.to_owned()));
    let text =
        "[always]\nallow = ['WebFetch(domain:Example.com)', 'mcp__files__list', 'task({\"a\":1})']";
    assert_eq!(
        says(text, &host("example.com")),
        "allow web_fetch(domain:Example.com)"
    );
    assert_eq!(
        says(text, &host("docs.example.com")),
        "allow web_fetch(domain:Example.com)"
    );
    assert_eq!(says(text, &host("badexample.com")), "-");
    let input = |tool: &str, input: &str| subject(tool, SubjectDetail::Input(input.to_owned()));
    assert_eq!(
        says(text, &input("mcp__files__list", "{}")),
        "allow mcp__files__list"
    );
    assert_eq!(says(text, &input("mcp__files__write", "{}")), "-");
    assert_eq!(
        says(text, &input("task", "{\"a\":1}")),
        "allow task({\"a\":1})"
    );
    assert_eq!(says(text, &input("task", "{\"a\":2}")), "-");
}

#[test]
fn a_text_that_is_no_rule_says_what_to_write() {
    let problem = |text: &str| Pattern::parse(text).unwrap_err().to_string();
    let problems = [
        "",
        "bash(",
        "bash()",
        "ba sh",
        "bash(git * x)",
        "bash(a;b:*)",
        "bash(*:*)",
        "edit(/etc/**)",
        "edit(~/x)",
        "edit(../x)",
        "edit(a{)",
        "web_fetch(example.com)",
        "bash(a\nb)",
    ]
    .map(|text| problem(text) + "\n");
    expect![[r#"
        ``: write the name of a tool, such as `grep`, or `bash(cargo test:*)`
        `bash(`: it must end in `)`
        `bash()`: there is nothing between the brackets
        `ba sh`: write the name of a tool, such as `grep`, or `bash(cargo test:*)`
        `bash(git * x)`: `*` can only stand at the end, as in `bash(cargo test:*)`
        `bash(a;b:*)`: before `:*` stand plain words of one command, such as `cargo test`
        `bash(*:*)`: before `:*` stand plain words of one command, such as `cargo test`
        `edit(/etc/**)`: paths are relative to the project directory, such as `src/**`
        `edit(~/x)`: paths are relative to the project directory, such as `src/**`
        `edit(../x)`: `..` cannot be in the path of a rule
        `edit(a{)`: unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
        `web_fetch(example.com)`: write it as `web_fetch(domain:example.com)`
        `bash(a
        b)`: a rule is one line without control characters
    "#]]
    .assert_eq(&problems.concat());
    for (text, stored) in [
        ("Bash(git commit *)", "bash(git commit:*)"),
        ("bash(*)", "bash"),
        (" Edit( src/** ) ", "edit(src/**)"),
    ] {
        assert_eq!(Pattern::parse(text).unwrap().as_str(), stored);
    }
}

#[test]
fn what_is_offered_covers_the_call_and_little_else() {
    let offered =
        |call: CallSubject| propose(&call).map_or("-".to_owned(), |rule| rule.to_string());
    for (text, rule) in [
        ("cargo test --all", "bash(cargo test:*)"),
        ("cargo  'test' x", "bash(cargo test:*)"),
        ("npm run build -- --prod", "bash(npm run build:*)"),
        ("ls -la", "bash(ls:*)"),
        ("git push origin main", "bash(git push origin main)"),
        ("rm -rf target", "bash(rm -rf target)"),
        ("cargo test; rm x", "bash(cargo test; rm x)"),
        ("cargo test > out", "bash(cargo test > out)"),
        ("cargo run", "bash(cargo run)"),
        ("sudo ls", "bash(sudo ls)"),
        ("cat ~/.ssh/id", "bash(cat ~/.ssh/id)"),
        ("rm *", "-"),
        ("a\nb", "-"),
    ] {
        assert_eq!(offered(command(text)), rule, "{text}");
    }
    assert_eq!(offered(command(&"x".repeat(200))), "-");
    for (path, rule) in [
        ("src/main.rs", "edit(src/**)"),
        ("src/a/b.rs", "edit(src/a/**)"),
        ("README.md", "edit(README.md)"),
        ("AGENTS.md", "-"),
        (".github/x", "-"),
        ("a[b]/c", "-"),
    ] {
        assert_eq!(offered(file("write", path)), rule, "{path}");
    }
    assert_eq!(offered(file("read", "a/b")), "-");
}

fn rule(scope: RuleScope, effect: RuleEffect, pattern: &str) -> PermissionRule {
    let pattern = Pattern::parse(pattern).unwrap();
    PermissionRule {
        scope,
        effect,
        pattern,
    }
}

#[test]
fn the_file_keeps_comments_and_what_it_says() {
    let project = || RuleScope::Project(PathBuf::from("/home/a b"));
    let text = add_rule(
        "",
        &rule(project(), RuleEffect::Allow, "bash(cargo test:*)"),
        None,
    )
    .unwrap();
    let text = text.replace("allow = [", "# mine\nallow = [ # these");
    let text = add_rule(
        &text,
        &rule(project(), RuleEffect::Allow, "edit(src/**)"),
        None,
    )
    .unwrap();
    let text = add_rule(
        &text,
        &rule(RuleScope::Always, RuleEffect::Deny, "bash(rm:*)"),
        None,
    )
    .unwrap();
    let session = RuleScope::Session("native:/x".to_owned());
    let text = add_rule(
        &text,
        &rule(session, RuleEffect::Allow, "bash(pwd)"),
        Some(Path::new("/work")),
    )
    .unwrap();
    let rules: String = text
        .lines()
        .filter(|line| !line.starts_with("# ") || line.contains("mine"))
        .map(|line| format!("{line}\n"))
        .collect();
    expect![[r#"

        [project."/home/a b"]
        # mine
        allow = [ # these
            "bash(cargo test:*)",
            "edit(src/**)",
        ]

        [always]
        deny = [
            "bash(rm:*)",
        ]

        [session."native:/x"]
        directory = "/work"
        allow = [
            "bash(pwd)",
        ]
    "#]]
    .assert_eq(&rules);
    assert!(text.starts_with(&template()), "{text}");
    let again = add_rule(
        &text,
        &rule(RuleScope::Always, RuleEffect::Deny, "bash(rm:*)"),
        None,
    )
    .unwrap();
    assert_eq!(again, text);
    let gone = remove_rule(&text, &rule(project(), RuleEffect::Allow, "edit(src/**)"))
        .unwrap()
        .unwrap();
    assert!(gone.contains("# mine") && !gone.contains("edit(src/**)\""));
    assert_eq!(
        remove_rule(&gone, &rule(project(), RuleEffect::Allow, "edit(src/**)")).unwrap(),
        None
    );
}

#[test]
fn a_wrong_file_says_where_and_grants_nothing() {
    for (text, problem) in [
        (
            "[always]\nalow = []",
            "line 2: there is no `alow`; lists are `allow`, `ask`, `deny`",
        ),
        ("[projects.\"/a\"]\n", "line 1: there is no `projects`"),
        (
            "[project.\"a\"]\n",
            "line 1: the directory of a project is an absolute path",
        ),
        (
            "\n[always]\nallow = [\n  \"bash(a:*)\",\n  \"bash(\",\n]",
            "line 5: `bash(`: it must end in `)`",
        ),
        ("[always]\nallow = \"bash\"", "line 2: this must be a list"),
        ("[always]\nallow = [1]", "line 2: a rule is a text"),
        ("always = 1", "line 1: this must be a table"),
        ("[always\n", "line 1: "),
    ] {
        let error = super::file::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(problem), "{text:?}: {error}");
    }
    let directory = tempfile::tempdir().unwrap();
    let store = RuleStore::new(directory.path());
    assert_eq!(store.load().unwrap().rules(), []);
    store
        .add(
            &rule(RuleScope::Always, RuleEffect::Allow, "bash(ls:*)"),
            None,
        )
        .unwrap();
    assert_eq!(store.load().unwrap().rules().len(), 1);
    assert_eq!(
        fs::metadata(store.path()).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let good = fs::read_to_string(store.path()).unwrap();
    fs::write(store.path(), format!("{good}[alway]\n")).unwrap();
    let error = store.load().unwrap_err().to_string();
    assert!(error.starts_with("rules.toml: line "), "{error}");
    store
        .add(
            &rule(RuleScope::Always, RuleEffect::Allow, "bash(id)"),
            None,
        )
        .unwrap_err();
    fs::write(store.path(), &good).unwrap();
    assert_eq!(store.load().unwrap().rules().len(), 1);
    // A link could lead to where an agent writes.
    let elsewhere = directory.path().join("elsewhere.toml");
    fs::rename(store.path(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, store.path()).unwrap();
    assert!(
        store
            .load()
            .unwrap_err()
            .to_string()
            .contains("it is a link")
    );
}

#[test]
fn rules_of_old_sessions_go() {
    let tables = (0..204).map(|n| format!("[session.\"native:/{n}\"]\nallow = [\"bash(pwd)\"]\n"));
    let text = tables.collect::<String>();
    let newest = RuleScope::Session("native:/new".to_owned());
    let text = add_rule(&text, &rule(newest, RuleEffect::Allow, "bash(pwd)"), None).unwrap();
    let rules = super::file::parse(&text).unwrap();
    assert_eq!(rules.rules().len(), 200);
    assert_eq!(
        rules.rules()[0].scope,
        RuleScope::Session("native:/5".to_owned())
    );
}

/// A directory of programs that record how they are called, and one to call them in.
struct Recorder {
    bash: PathBuf,
    programs: TempDir,
    work: TempDir,
    running: Mutex<()>,
}

impl Recorder {
    fn get() -> &'static Self {
        static RECORDER: OnceLock<Recorder> = OnceLock::new();
        RECORDER.get_or_init(|| {
            let (programs, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            for name in ["cargo", "rm", "git", "sudo", "env", "test", "cargotest"] {
                let path = programs.path().join(name);
                let log = programs.path().join("log");
                let script = format!(
                    "#!/bin/sh\nprintf '%s\\n' \"${{0##*/}} $1\" >> {}\n",
                    log.display()
                );
                fs::write(&path, script).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            let path = std::env::var_os("PATH").unwrap();
            let mut shells = std::env::split_paths(&path).map(|path| path.join("bash"));
            let bash = shells
                .find(|shell| shell.is_file())
                .expect("bash is installed");
            Self {
                bash,
                programs,
                work,
                running: Mutex::default(),
            }
        })
    }

    /// What bash ran, traced by itself and recorded by the programs.
    fn run(&self, text: &str) -> Vec<String> {
        // There is one log for all tests of this process.
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let log = self.programs.path().join("log");
        let _ = fs::remove_file(&log);
        let output = Command::new(&self.bash)
            .args(["-x", "-c", text])
            .current_dir(self.work.path())
            .env_clear()
            .env("PATH", self.programs.path())
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let trace = String::from_utf8_lossy(&output.stderr).into_owned();
        let traced = trace.lines().filter_map(|line| line.strip_prefix('+'));
        let traced = traced.map(|line| line.trim_start_matches('+').trim_start().to_owned());
        let mut ran: Vec<String> = traced.collect();
        let recorded = fs::read_to_string(&log).unwrap_or_default();
        ran.extend(recorded.lines().map(str::to_owned));
        ran
    }
}

fn fragment() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        " ",
        " ",
        " ",
        "cargo test",
        "cargo test ",
        " && cargo test",
        "; cargo test",
        "cargo",
        "test",
        "rm x",
        "git",
        "a",
        "'",
        "\"",
        "\\",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "\n",
        "$(rm x)",
        "`rm x`",
        "$",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        ">f",
        "#",
        "!",
        "*",
        "?",
        "[",
        "]",
        "~",
        "X=1 ",
        "=",
        "eval ",
        "env ",
        "sudo ",
        "if ",
        "; then ",
        "; fi",
        "time ",
        "\t",
        "-x",
        "'a b'",
        "\"a b\"",
        "\\;",
        "\r",
        ",",
        "{a,b}",
        "é",
        "\u{a0}",
        "<<E\n",
        "E\n",
        "[[",
        "]]",
        "alias cargo=rm;",
        "%",
        "^",
        ":",
        "//",
        "cargo() { rm x; };",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    /// If the rule allows a text, bash runs nothing but what the rule names, and makes no file.
    #[test]
    fn bash_runs_only_what_a_rule_allows(rest in prop::collection::vec(fragment(), 0..7)) {
        let text = format!("cargo test{}", rest.concat());
        if allows_text("bash(cargo test:*)", &text) {
            let recorder = Recorder::get();
            let ran = recorder.run(&text);
            prop_assert!(!ran.is_empty(), "{:?} ran nothing", text);
            for ran in ran {
                prop_assert!(ran == "cargo test" || ran.starts_with("cargo test "), "{text:?} ran {ran:?}");
            }
            let made = fs::read_dir(recorder.work.path()).unwrap().count();
            prop_assert_eq!(made, 0, "{:?} made a file", text);
        }
    }
}

#[test]
fn the_recorder_sees_what_is_not_allowed() {
    let recorder = Recorder::get();
    let ran = recorder.run("cargo test; rm x; echo y");
    assert!(
        ran.contains(&"rm x".to_owned()) && ran.iter().any(|ran| ran.starts_with("echo y")),
        "{ran:?}"
    );
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
    assert!(!allows_text("bash(npm test:*)", "npm test --script-sh=./x"));
    assert!(!allows_text("bash(go test:*)", "go test -exec ./x ./..."));
}
