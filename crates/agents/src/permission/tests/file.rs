//! What the file of rules keeps, and what is wrong with one.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use expect_test::expect;

use super::*;

fn rule(scope: RuleScope, effect: RuleEffect, pattern: &str) -> PermissionRule {
    let pattern = Pattern::parse(pattern).unwrap();
    PermissionRule { scope, effect, pattern }
}

fn session(name: &str, directory: Option<&str>) -> RuleScope {
    RuleScope::Session { session: name.to_owned(), directory: directory.map(PathBuf::from) }
}

#[test]
fn the_file_keeps_comments_and_what_it_says() {
    let project = || RuleScope::Project(PathBuf::from("/home/a b"));
    let text = add_rule("", &rule(project(), RuleEffect::Allow, "bash(cargo test:*)"))
        .unwrap()
        .replace("allow = [", "# mine\nallow = [ # these");
    let text = add_rule(&text, &rule(project(), RuleEffect::Allow, "edit(src/**)")).unwrap();
    let text = add_rule(&text, &rule(RuleScope::Always, RuleEffect::Deny, "bash(rm:*)")).unwrap();
    let here = session("native:/x", Some("/work"));
    let text = add_rule(&text, &rule(here, RuleEffect::Allow, "bash(pwd)")).unwrap();
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

        [session."native:/x"."/work"]
        allow = [
            "bash(pwd)",
        ]
    "#]]
    .assert_eq(&rules);
    assert!(text.starts_with(&template()), "{text}");
    let again = add_rule(&text, &rule(RuleScope::Always, RuleEffect::Deny, "bash(rm:*)")).unwrap();
    assert_eq!(again, text);
    let gone =
        remove_rule(&text, &rule(project(), RuleEffect::Allow, "edit(src/**)")).unwrap().unwrap();
    assert!(gone.contains("# mine") && !gone.contains("edit(src/**)\""));
    assert_eq!(
        remove_rule(&gone, &rule(project(), RuleEffect::Allow, "edit(src/**)")).unwrap(),
        None
    );
}

#[test]
fn a_wrong_file_says_where_and_grants_nothing() {
    for (text, problem) in [
        ("[always]\nalow = []", "line 2: there is no `alow`; lists are `allow`, `ask`, `deny`"),
        ("[projects.\"/a\"]\n", "line 1: there is no `projects`"),
        ("[project.\"a\"]\n", "line 1: the directory of a project is an absolute path"),
        (
            "\n[always]\nallow = [\n  \"bash(a:*)\",\n  \"bash(\",\n]",
            "line 5: `bash(`: it must end in `)`",
        ),
        ("[always]\nallow = \"bash\"", "line 2: this must be a list"),
        ("[always]\nallow = [1]", "line 2: a rule is a text"),
        ("always = 1", "line 1: this must be a table"),
        ("[always\n", "line 1: "),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.starts_with(problem), "{text:?}: {error}");
    }
    let directory = tempfile::tempdir().unwrap();
    let store = RuleStore::new(directory.path());
    assert_eq!(store.load().unwrap().rules(), []);
    store.add(&rule(RuleScope::Always, RuleEffect::Allow, "bash(ls:*)")).unwrap();
    assert_eq!(store.load().unwrap().rules().len(), 1);
    assert_eq!(fs::metadata(store.path()).unwrap().permissions().mode() & 0o777, 0o600);
    let good = fs::read_to_string(store.path()).unwrap();
    fs::write(store.path(), format!("{good}[alway]\n")).unwrap();
    let error = store.load().unwrap_err().to_string();
    assert!(error.starts_with("rules.toml: line "), "{error}");
    store.add(&rule(RuleScope::Always, RuleEffect::Allow, "bash(id)")).unwrap_err();
    fs::write(store.path(), &good).unwrap();
    assert_eq!(store.load().unwrap().rules().len(), 1);
    // A link could lead to where an agent writes.
    let elsewhere = directory.path().join("elsewhere.toml");
    fs::rename(store.path(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, store.path()).unwrap();
    assert!(store.load().unwrap_err().to_string().contains("it is a link"));
}

#[test]
fn rules_of_old_sessions_go() {
    let tables = (0..204).map(|n| format!("[session.\"native:/{n}\"]\nallow = [\"bash(pwd)\"]\n"));
    let text = tables.collect::<String>();
    let newest = session("native:/new", None);
    let text = add_rule(&text, &rule(newest, RuleEffect::Allow, "bash(pwd)")).unwrap();
    let rules = parse(&text).unwrap();
    assert_eq!(rules.rules().len(), 200);
    assert_eq!(rules.rules()[0].scope, session("native:/5", None));
}

#[test]
fn a_session_has_rules_by_directory_and_loses_all_of_them() {
    let text = r#"
# mine
[session."native:/s"]
deny = ["bash(rm:*)"]
[session."native:/s"."/work"]
allow = ["bash(make:*)"]
[session."native:/old"]
directory = "/work"
allow = ["bash(pwd)"]
"#;
    let scopes = |text: &str| -> Vec<RuleScope> {
        parse(text).unwrap().rules().iter().map(|rule| rule.scope.clone()).collect()
    };
    let of_old = session("native:/old", Some("/work"));
    assert_eq!(
        scopes(text),
        [session("native:/s", None), session("native:/s", Some("/work")), of_old.clone(),]
    );
    let more = rule(session("native:/s", Some("/other")), RuleEffect::Allow, "bash(make:*)");
    let text = add_rule(text, &more).unwrap();
    assert_eq!(scopes(&text).len(), 4, "{text}");
    let text = remove_session(&text, "native:/s").unwrap().unwrap();
    assert_eq!(scopes(&text), [of_old], "{text}");
    assert_eq!(remove_session(&text, "native:/s").unwrap(), None);
    let wrong = parse("[session.\"native:/s\"]\nalow = []").unwrap_err();
    assert!(wrong.to_string().starts_with("line 2: there is no `alow`"), "{wrong}");
}
