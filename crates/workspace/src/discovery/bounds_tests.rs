//! Files that would make a session's state large, its reading slow, or its names unreadable.

use super::tests::Project;
use super::*;

fn only_container(found: &Discovered) -> &Container {
    assert_eq!(found.containers.len(), 1, "{:#?}", found.containers);
    &found.containers[0]
}

/// A file of settings with this many hooks.
fn hooks(count: usize) -> String {
    let hooks = (0..count).map(|number| format!("\"e{number}\":[]"));
    format!("{{\"hooks\":{{{}}}}}", hooks.collect::<Vec<_>>().join(","))
}

#[test]
fn a_file_of_hooks_is_read_as_far_as_it_is_listed() {
    let project = Project::new(&[(".claude/settings.json", &hooks(20_000))]);
    let (workspace, _) = Workspace::open_available(&[project.uri()], &Confinement::none());
    let mut scan = Scan::new(&workspace);
    let root = workspace.root_paths().next().unwrap().join(".claude");
    let directory = scan.directory(&root).unwrap();
    let mut container = Container::directory(project.uri(), ".claude", ChildKind::Hook);
    hook_file::find(&mut scan, &directory, &mut container);
    assert!(container.children.len() <= 512);
    assert_eq!(container.problems, ["there is more than is listed"]);
    let kinds: Vec<WarningKind> = scan.into_warnings().iter().map(|w| w.kind).collect();
    assert_eq!(kinds, [WarningKind::LimitReached]);
}

#[test]
fn nothing_is_opened_by_a_scan_that_has_read_enough() {
    let project = Project::new(&[("a.txt", "a"), (".claude/commands/late.md", "Late.")]);
    let (workspace, _) = Workspace::open_available(&[project.uri()], &Confinement::none());
    let mut scan = Scan::new(&workspace);
    let root = workspace.root_paths().next().unwrap();
    for _ in 0..1_000 {
        scan.read(&root.join("a.txt"), 1);
    }
    assert!(scan.directory(&root.join(".claude")).is_none());
    let warnings = scan.into_warnings();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].kind, WarningKind::LimitReached);
}

#[test]
fn a_manifest_names_only_so_many_paths() {
    for path in ["\"../out\"", "\"commands\"", "\"missing\""] {
        let paths = vec![path; 20_000].join(",");
        let manifest = format!("{{\"commands\": [{paths}]}}");
        let project = Project::new(&[
            (".agents/plugins/p/plugin.json", manifest.as_str()),
            (".agents/plugins/p/commands/go.md", "Go."),
        ]);
        let found = project.discover();
        let plugin = only_container(&found);
        assert!(plugin.problems.len() <= 33, "{:#?}", plugin.problems);
        let first = plugin.problems.first().unwrap();
        assert!(first.contains("more than 32 paths"), "{first}");
    }
}

// TR-8
#[test]
fn names_and_values_that_cannot_be_shown_are_skipped_and_said() {
    let long = "x".repeat(200);
    let globs = vec!["a"; 200].join(",");
    let project = Project::new(&[
        (
            ".claude/settings.json",
            "{\"hooks\": {\"ok\": [], \"bad\\u001b[2J\": [], \"flip\\u202e\": []}}",
        ),
        (&format!(".claude/rules/{long}.md"), "Long."),
        (".claude/rules/line\nbreak.md", "Break."),
        (".claude/rules/many.md", &format!("---\nglobs: {globs}\n---\nMany.")),
        (".claude/rules/good.md", "Good."),
        (".claude/agents/a.md", &format!("---\nmodel: {long}\n---\nYou.")),
        (".claude/agents/b.md", "---\ntools: \"x\u{7}\"\n---\nYou."),
        (".claude/commands/c.md", &format!("---\ntools: {}\nmode: ask\n---\nDo.", long.repeat(10))),
        (".agents/plugins/p\u{202e}q/plugin.json", "{}"),
        (".agents/skills/s/SKILL.md", "---\ndescription: \"one\u{2028}two\u{202e}\"\n---\nS."),
    ]);
    let found = project.discover();
    let children = found.containers.iter().flat_map(|one| &one.children);
    let names: Vec<&str> = children.clone().map(|child| child.name.as_str()).collect();
    assert_eq!(names, ["s", "c", "good", "ok"]);
    let prompts = children.clone().filter_map(|child| match &child.content {
        ChildContent::Prompt(prompt) => Some(prompt.hints.clone()),
        _ => None,
    });
    let hints: Vec<(&str, String)> = prompts.flatten().collect();
    assert_eq!(hints, [("mode", "ask".to_owned())]);
    assert_eq!(children.clone().next().unwrap().description.as_deref(), Some("one two"));
    assert_eq!(found.warnings.len(), 9, "{:#?}", found.warnings);
    for warning in &found.warnings {
        let unshowable = |c: char| c.is_control() || c == '\u{202e}';
        assert!(!warning.to_string().contains(unshowable), "{warning}");
    }
}
