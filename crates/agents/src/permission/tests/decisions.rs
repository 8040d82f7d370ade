//! Which rule decides about a call, and which rule is offered with one.

use expect_test::expect;

use super::*;

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
        (subject("edit", SubjectDetail::Unknown), "deny edit(secret/**)"),
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
fn what_a_session_allows_stays_in_the_directory_it_was_allowed_in() {
    let text = r#"
        [session."native:/s"."/other"]
        allow = ["bash(make:*)", "edit(src/**)"]
        [session."native:/s"."/gone"]
        allow = ["bash(id)"]
    "#;
    let in_other = |path: &str| {
        let detail = SubjectDetail::Path(FileSubject {
            root: PathBuf::from("/other"),
            relative: PathBuf::from(path),
        });
        subject("edit", detail)
    };
    for (call, expected) in [
        // Commands run in the first directory.
        (command("make"), "-"),
        (command("id"), "-"),
        (file("edit", "src/a"), "-"),
        (in_other("src/a"), "allow edit(src/**)"),
    ] {
        assert_eq!(says(text, &call), expected, "{call:?}");
    }
}

#[test]
fn what_cannot_be_compared_with_a_rule_that_denies_is_denied() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let no_text = |tool: &str| {
        let detail = SubjectDetail::Path(FileSubject {
            root: PathBuf::from("/work"),
            relative: PathBuf::from(OsStr::from_bytes(b"secret/\xff")),
        });
        subject(tool, detail)
    };
    let input = |tool: &str| subject(tool, SubjectDetail::Input(serde_json::json!({})));
    let text = r#"
        [always]
        allow = ["edit(**)"]
        deny = ["read(secret/**)", "view_image(x/**)", "edit(secret/**)"]
    "#;
    for (call, expected) in [
        (no_text("read"), "deny read(secret/**)"),
        (no_text("edit"), "deny edit(secret/**)"),
        (input("grep"), "deny read(secret/**)"),
        (file("grep", "secret/a"), "deny read(secret/**)"),
        (file("view_image", "secret/a"), "deny read(secret/**)"),
        (file("view_image", "x/a.png"), "deny view_image(x/**)"),
        (file("grep", "src"), "-"),
        (file("read", "src/a"), "-"),
    ] {
        assert_eq!(says(text, &call), expected, "{call:?}");
    }
    let allows = "[always]\nallow = ['edit(**)']";
    assert_eq!(says(allows, &no_text("edit")), "-");
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
    assert!(!allows("edit(.github/**)", ".GITHUB/x"), "what is allowed is named exactly");
}

#[test]
fn hosts_inputs_and_tools_are_named() {
    let host = |host: &str| subject("web_fetch", SubjectDetail::Host(host.to_owned()));
    let text =
        "[always]\nallow = ['WebFetch(domain:Example.com)', 'mcp__files__list', 'task({\"a\":1})']";
    assert_eq!(says(text, &host("example.com")), "allow web_fetch(domain:Example.com)");
    assert_eq!(says(text, &host("docs.example.com")), "allow web_fetch(domain:Example.com)");
    assert_eq!(says(text, &host("badexample.com")), "-");
    let input = |tool: &str, input: &str| {
        let input = serde_json::from_str(input).unwrap();
        subject(tool, SubjectDetail::Input(input))
    };
    assert_eq!(says(text, &input("mcp__files__list", "{}")), "allow mcp__files__list");
    assert_eq!(says(text, &input("mcp__files__write", "{}")), "-");
    assert_eq!(says(text, &input("task", "{\"a\":1}")), "allow task({\"a\":1})");
    assert_eq!(says(text, &input("task", "{\"a\":2}")), "-");
    let text = "[always]\ndeny = ['rename({\"to\": \"n\", \"from\": \"m\"})']";
    let same = input("rename", "{\"from\":\"m\",\"to\":\"n\"}");
    assert_ne!(says(text, &same), "-", "other blanks and another order are no other input");
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
        "grep(/etc)",
        "rename(x)",
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
        `grep(/etc)`: paths are relative to the project directory, such as `src/**`
        `rename(x)`: between the brackets stands the whole input as JSON, such as `rename({"name":"x"})`; `rename` alone is every call
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

#[test]
fn a_rule_about_a_server_allows_nothing_to_a_client_that_uses_its_name() {
    let input = || SubjectDetail::Input(serde_json::json!({}));
    let server = subject("mcp__files__read", input());
    let client = CallSubject { is_clients: true, ..server.clone() };
    let allow = "[always]\nallow = [\"mcp__files__read\"]\n";
    assert_eq!(says(allow, &server), "allow mcp__files__read");
    assert_eq!(says(allow, &client), "-");
    let deny = "[always]\ndeny = [\"mcp__files__read\"]\n";
    assert_eq!(says(deny, &client), "deny mcp__files__read");
    let own = CallSubject { is_clients: true, ..subject("openFile", input()) };
    assert_eq!(says("[always]\nallow = [\"openFile\"]\n", &own), "allow openFile");
}
