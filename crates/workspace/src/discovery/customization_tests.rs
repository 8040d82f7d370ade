//! A tree of every convention, and what must not be read of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::tests::Project;
use super::*;

fn tree() -> Project {
    Project::new(&[
        (".agents/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads PDFs\n---\nDo."),
        (".claude/commands/fix.md", "Fix $1."),
        (".github/prompts/plan.prompt.md", "---\nmode: agent\ntools: [read, grep]\n---\nPlan it."),
        (
            ".github/agents/reviewer.agent.md",
            "---\ndescription: Reviews\nmodel: big\ntools:\n  - read\n  - grep\n---\nYou review.",
        ),
        (".claude/agents/helper.md", "---\nname: Helper One\nmodel: inherit\n---\nYou help."),
        (".github/chatmodes/ask.chatmode.md", "You only answer."),
        ("AGENTS.md", "# Rules\nBe kind."),
        (
            ".github/instructions/ts.instructions.md",
            "---\napplyTo: \"**/*.ts,**/*.tsx\"\ndescription: TypeScript\n---\nNo any.",
        ),
        (".claude/rules/style.md", "Short lines."),
        (".agents/rules/all.mdc", "---\nalwaysApply: true\n---\nAlways."),
        (".agents/rules/some.mdc", "---\nglobs: src/**\n---\nSometimes."),
        (
            ".claude/settings.json",
            "{\n  \"hooks\": {\n    \"PreToolUse\": [],\n    \"Stop\": []\n  }\n}\n",
        ),
        (
            ".agents/plugins/kit/.claude-plugin/plugin.json",
            "{\"name\": \"kit\", \"version\": \"1.2\"}",
        ),
        (".agents/plugins/kit/commands/build.md", "Build."),
        (".agents/plugins/kit/skills/map/SKILL.md", "---\ndescription: Maps\n---\nMap."),
        (".agents/plugins/kit/agents/scout.md", "You scout."),
        (".agents/plugins/empty/README.md", "Nothing of a plugin."),
    ])
}

fn container<'a>(discovered: &'a Discovered, name: &str) -> &'a Container {
    let mut containers = discovered.containers.iter();
    let found = containers.find(|container| container.name == name);
    found.unwrap_or_else(|| panic!("{name}: {:#?}", discovered.containers))
}

fn child<'a>(discovered: &'a Discovered, name: &str, child: &str) -> &'a Child {
    let container = container(discovered, name);
    let found = container.children.iter().find(|found| found.name == child);
    found.unwrap_or_else(|| panic!("{child}: {container:#?}"))
}

#[test]
fn cu_003_every_convention_is_found() {
    let found = tree().discover();
    assert_eq!(found.warnings, []);
    let kinds = |name: &str| container(&found, name).kind.clone();
    for (name, contents) in [
        (".agents/skills", ChildKind::Skill),
        (".claude/commands", ChildKind::Prompt),
        (".github/prompts", ChildKind::Prompt),
        (".github/agents", ChildKind::Agent),
        (".github/chatmodes", ChildKind::Agent),
        ("instructions", ChildKind::Rule),
        (".claude/rules", ChildKind::Rule),
        (".claude", ChildKind::Hook),
    ] {
        assert_eq!(kinds(name), ContainerKind::Directory { contents }, "{name}");
    }
    let agent = |name: &str, agent: &str| match &child(&found, name, agent).content {
        ChildContent::Agent(agent) => agent.clone(),
        other => panic!("{other:?}"),
    };
    let reviewer = agent(".github/agents", "reviewer");
    assert_eq!(reviewer.model.as_deref(), Some("big"));
    assert_eq!(reviewer.tools.unwrap(), ["read", "grep"]);
    let helper = agent(".claude/agents", "Helper One");
    assert_eq!((helper.model, helper.tools), (None, None));

    let ChildContent::Prompt(plan) = &child(&found, ".github/prompts", "plan").content else {
        panic!("not a prompt");
    };
    assert_eq!(plan.hints[0], ("mode", "agent".to_owned()));
    assert!(found.catalogue.lookup("/plan").is_some());

    let hook = child(&found, ".claude", "Stop");
    let at = |character| SourcePosition { line: 3, character };
    let range = SourceSpan { start: at(4), end: at(14) };
    assert_eq!(hook.range, Some(range));
}

#[test]
fn cu_008_an_empty_list_of_tools_is_not_all_of_them() {
    for (front, expected) in [
        ("tools: []", Some(vec![])),
        ("tools: [ ]", Some(vec![])),
        ("tools:", None),
        ("model: big", None),
        ("tools: ['*']", Some(vec!["*".to_owned()])),
    ] {
        let text = format!("---\n{front}\n---\nYou work.");
        let project = Project::new(&[(".claude/agents/a.md", text.as_str())]);
        let found = project.discover();
        let ChildContent::Agent(agent) = &child(&found, ".claude/agents", "a").content else {
            panic!("not an agent");
        };
        assert_eq!(agent.tools, expected, "{front}");
    }
    let project =
        Project::new(&[(".claude/agents/a.md", "---\ntools:\n  write: false\n---\nYou work.")]);
    let found = project.discover();
    let agents = container(&found, ".claude/agents");
    assert_eq!(agents.children, []);
    assert!(agents.problems[0].contains("`tools` is not a list"));
}

#[test]
fn cu_003_rules_say_when_they_hold() {
    let found = tree().discover();
    for (name, rule, always, globs) in [
        ("instructions", "AGENTS.md", true, &[][..]),
        (".github/instructions", "ts", false, &["**/*.ts", "**/*.tsx"]),
        (".claude/rules", "style", true, &[]),
        (".agents/rules", "all", true, &[]),
        (".agents/rules", "some", false, &["src/**"]),
    ] {
        let ChildContent::Rule(found) = &child(&found, name, rule).content else {
            panic!("{rule} is no rule");
        };
        assert_eq!(
            (found.always_applies, found.globs.as_slice()),
            (always, globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>().as_slice()),
            "{rule}"
        );
    }
}

#[test]
fn cu_004_children_of_a_plugin_have_its_name() {
    let found = tree().discover();
    let kit = container(&found, "kit");
    assert_eq!(kit.kind, ContainerKind::Plugin { version: Some("1.2".to_owned()) });
    assert!(found.catalogue.lookup("/kit:build").is_some());
    assert!(found.skills.iter().any(|skill| skill.name == "kit:map"));
    assert_eq!(kit.full_name(child(&found, "kit", "scout")), "kit:scout");
    assert!(!found.containers.iter().any(|container| container.name == "empty"));
}

#[test]
fn cu_004_a_manifest_leads_to_nothing_outside() {
    let outside = Project::new(&[("evil.md", "Evil.")]);
    let escape = outside.path("").display().to_string();
    let manifest = format!("{{\"commands\": [\"../../../other\", \"{escape}\", \"mine\"]}}");
    let project = Project::new(&[
        (".agents/plugins/p/plugin.json", manifest.as_str()),
        (".agents/plugins/p/mine/own.md", "Own."),
        ("other/evil.md", "Evil."),
    ]);
    std::os::unix::fs::symlink(outside.path(""), project.path(".agents/plugins/p/agents")).unwrap();
    let found = project.discover();
    let plugin = container(&found, "p");
    let names: Vec<&str> = plugin.children.iter().map(|child| child.name.as_str()).collect();
    assert_eq!(names, ["own"]);
    let problems = plugin.problems.join("\n");
    assert_eq!(problems.matches("leads out of the plugin").count(), 2, "{problems}");
    assert!(problems.contains("agents"), "{problems}");
}

#[test]
fn the_users_own_directories_are_searched_and_never_written() {
    let home = Project::new(&[
        ("skills/notes/SKILL.md", "---\ndescription: Notes\n---\nTake notes."),
        ("plugins/u/commands/hi.md", "Hi."),
    ]);
    let plugin =
        Project::new(&[("commands/go.md", "Go."), ("plugin.json", "{\"name\": \"named\"}")]);
    let project = Project::new(&[("a.txt", "a")]);
    let user = UserDirectories { agents: Some(home.path("")), plugins: vec![plugin.path("")] };
    let found = discover(&[project.uri()], &user, &[], &Confinement::none());
    assert_eq!(found.warnings, []);
    for command in ["/u:hi", "/named:go"] {
        let entry = found.catalogue.lookup(command).expect(command);
        assert_eq!(entry.source, Source::User, "{command}");
    }
    let workspace =
        Workspace::open_with_readable(&[project.uri()], None, &user, &Confinement::none()).unwrap();
    assert_eq!(workspace.read_skill("notes", 1_024).unwrap().text, "Take notes.");
    assert_eq!(workspace.real_directories().len(), 1);
}

#[test]
fn what_is_switched_off_is_neither_a_command_nor_a_skill() {
    let found = tree().discover();
    let kit = container(&found, "kit").key().id();
    let fix = container(&found, ".claude/commands");
    let fix = fix.child_key(child(&found, ".claude/commands", "fix")).id();
    let left = found.without(&BTreeSet::from([kit, fix]));
    assert!(left.catalogue.lookup("/kit:build").is_none());
    assert!(left.catalogue.lookup("/fix").is_none());
    assert!(left.catalogue.lookup("/plan").is_some());
    let skills: Vec<&str> = left.skills.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(skills, ["pdf"]);
}

#[test]
fn a_skill_that_takes_the_name_of_another_is_read_anew() {
    let project = Project::new(&[
        (".agents/skills/maps/SKILL.md", "Draw."),
        (".claude/skills/maps/SKILL.md", "Print."),
    ]);
    let workspace = Workspace::open(&[project.uri()], &Confinement::none()).unwrap();
    let text = || workspace.read_skill("maps", 1_024).unwrap().text.clone();
    assert_eq!(text(), "Draw.");
    let found = project.discover();
    let first = container(&found, ".agents/skills");
    let first = first.child_key(&first.children[0]).id();
    workspace.switch_off(BTreeSet::from([first]));
    assert_eq!(text(), "Print.");
    // Each is as the session read it first.
    project.write(".agents/skills/maps/SKILL.md", b"Changed.");
    workspace.switch_off(BTreeSet::new());
    assert_eq!(text(), "Draw.");
}

#[test]
fn ids_are_the_same_after_a_restart_and_differ_between_things() {
    let project = tree();
    let ids = |found: &Discovered| -> Vec<String> {
        let containers = found.containers.iter();
        containers
            .flat_map(|container| {
                let children =
                    container.children.iter().map(|child| container.child_key(child).id());
                std::iter::once(container.key().id()).chain(children)
            })
            .collect()
    };
    let (first, second) = (ids(&project.discover()), ids(&project.discover()));
    assert_eq!(first, second);
    let distinct: BTreeSet<&String> = first.iter().collect();
    assert_eq!(distinct.len(), first.len());
}

#[test]
fn cu_002_what_is_broken_is_named_and_hides_nothing_else() {
    let project = Project::new(&[
        (".claude/agents/broken.md", "---\nname: x\n"),
        (".claude/agents/good.md", "You are good."),
        (".claude/agents/silent.md", "---\nname: silent\n---\n"),
        (".claude/settings.json", "{not json"),
    ]);
    fs::write(project.path(".claude/agents/large.md"), vec![b'x'; FILE_BYTES_MAX + 1]).unwrap();
    let found = project.discover();
    let agents = container(&found, ".claude/agents");
    assert_eq!(agents.children.len(), 1);
    let problems = agents.problems.join("\n");
    for (file, reason) in [
        ("broken.md", "not closed"),
        ("silent.md", "says nothing"),
        ("large.md", "larger than 256 KiB"),
    ] {
        assert!(problems.contains(file) && problems.contains(reason), "{problems}");
    }
}

#[test]
fn there_is_a_bound_to_what_is_listed() {
    let project = Project::new(&[]);
    for number in 0..600 {
        project.write(&format!(".claude/rules/r{number}.md"), b"Rule.");
    }
    let found = project.discover();
    let children: usize = found.containers.iter().map(|container| container.children.len()).sum();
    assert_eq!(children, 512);
    assert!(
        found.containers[0].problems.iter().any(|problem| problem.contains("more than is listed"))
    );
}

#[test]
fn directories_that_are_links_are_read_once() {
    let project = Project::new(&[(".agents/skills/a/SKILL.md", "A.")]);
    fs::create_dir_all(project.path(".claude")).unwrap();
    std::os::unix::fs::symlink(Path::new("../.agents/skills"), project.path(".claude/skills"))
        .unwrap();
    let found = project.discover();
    assert_eq!(found.warnings, []);
    assert_eq!(found.skills.len(), 1);
}
