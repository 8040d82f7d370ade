//! Directories as projects have them, and as they should not be.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use compositor::command::{CommandEffect, Mentions};

use super::*;

pub(super) struct Project(tempfile::TempDir);

impl Project {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            project.write(path, text.as_bytes());
        }
        project
    }

    pub(super) fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    pub(super) fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(super) fn uri(&self) -> String {
        uri(self.0.path())
    }

    pub(super) fn discover(&self) -> Discovered {
        discover(&[self.uri()], &UserDirectories::default(), &[], &Confinement::none())
    }
}

fn uri(path: &Path) -> String {
    wire::file_uri::uri_of(path.as_os_str().as_bytes())
}

fn template(discovered: &Discovered, id: &str) -> String {
    match &discovered.catalogue.lookup(id).expect(id).effect {
        CommandEffect::Template { body, .. } => body.clone(),
        other => panic!("{id} is {other:?}"),
    }
}

fn names(discovered: &Discovered) -> Vec<&str> {
    discovered.skills.iter().map(|skill| skill.name.as_str()).collect()
}

fn assert_warned(discovered: &Discovered, kind: WarningKind, path: &str, reason: &str) {
    let warnings = &discovered.warnings;
    let is_expected = |warning: &Warning| {
        let message = warning.to_string();
        warning.kind == kind && message.contains(path) && message.contains(reason)
    };
    assert!(warnings.iter().any(is_expected), "{kind:?}, {path}, {reason}: {warnings:#?}");
}

#[test]
fn g_041_commands_are_discovered_in_all_their_directories() {
    let project = Project::new(&[
        (
            ".greenroom/commands/review.md",
            "---\ndescription: Reviews a file\nargument-hint: \"[file]\"\n---\n\nReview $1.\n",
        ),
        (".agents/commands/plain.md", "# Run the checklist\n\nAll of it."),
        (".claude/commands/git/commit.md", "Commit: $ARGUMENTS"),
        (".claude/commands/look.md", "---\nintent: search\n---\n"),
        (".claude/commands/find.md", "---\nintent: search\n---\nFind $1."),
        (".claude/commands/at.md", "---\nmentions: true\n---\nSee @file:a.ts"),
        (".claude/commands/notes.txt", "nothing"),
    ]);
    let discovery = project.discover();
    assert_eq!(discovery.warnings, Vec::<Warning>::new());
    let review = discovery.catalogue.lookup("/review").unwrap();
    assert_eq!(review.description.as_deref(), Some("Reviews a file"));
    assert_eq!(review.argument_hint.as_deref(), Some("[file]"));
    assert_eq!(template(&discovery, "/review"), "Review $1.");
    assert_eq!(template(&discovery, "/git:commit"), "Commit: $ARGUMENTS");
    let plain = discovery.catalogue.lookup("/plain").unwrap();
    assert_eq!(plain.description.as_deref(), Some("Run the checklist"));
    let look = &discovery.catalogue.lookup("/look").unwrap().effect;
    assert_eq!(*look, CommandEffect::Intent("search".to_owned()));
    let find = CommandEffect::Directed {
        intent: "search".to_owned(),
        body: "Find $1.".to_owned(),
        mentions: Mentions::Literal,
    };
    assert_eq!(discovery.catalogue.lookup("/find").unwrap().effect, find);
    let at = &discovery.catalogue.lookup("/at").unwrap().effect;
    assert!(matches!(at, CommandEffect::Template { mentions: Mentions::Resolved, .. }));
    assert!(discovery.catalogue.lookup("/compact").is_some());
    assert!(discovery.catalogue.lookup("/notes").is_none());
}

#[test]
fn c_043_the_first_command_wins_and_the_other_is_a_warning() {
    let project = Project::new(&[
        (".greenroom/commands/x.md", "ours"),
        (".agents/commands/x.md", "agents"),
        (".claude/commands/compact.md", "theirs"),
    ]);
    let other =
        Project::new(&[(".greenroom/commands/x.md", "other"), (".claude/commands/y.md", "y")]);
    let discovery = discover(
        &[project.uri(), other.uri()],
        &UserDirectories::default(),
        &[],
        &Confinement::none(),
    );
    assert_eq!(template(&discovery, "/x"), "ours");
    assert_eq!(template(&discovery, "/y"), "y");
    assert_eq!(template(&discovery, "/project:compact"), "theirs");
    assert_eq!(discovery.catalogue.lookup("/compact").unwrap().effect, CommandEffect::Action);
    let name = WarningKind::Name;
    assert_warned(&discovery, name, ".agents/commands/x.md", "two are named /x");
    assert_warned(&discovery, name, ".claude/commands/compact.md", "two are named /compact");
}

#[test]
fn a_bad_file_affects_nothing_else_and_is_named() {
    let project = Project::new(&[
        (".greenroom/commands/good.md", "good"),
        (".greenroom/commands/open.md", "---\ndescription: x\n"),
        (".greenroom/commands/empty.md", "\n \n"),
        (".greenroom/commands/two words.md", "x"),
        (".greenroom/commands/dir.md/inner.md", "x"),
        (".agents/skills/bad/SKILL.md", "---\nname: has blanks\n---\n"),
        (".agents/skills/none/README.md", "no skill"),
    ]);
    project.write(".greenroom/commands/latin.md", b"caf\xe9");
    project.write(".greenroom/commands/binary.md", b"a\0b");
    project.write(".greenroom/commands/huge.md", &vec![b'x'; 65 * 1_024]);
    symlink("/etc/passwd", project.path(".greenroom/commands/away.md")).unwrap();
    symlink("gone.md", project.path(".greenroom/commands/dangling.md")).unwrap();
    symlink("loop.md", project.path(".greenroom/commands/loop.md")).unwrap();
    let discovery = project.discover();
    assert_eq!(template(&discovery, "/good"), "good");
    for (kind, path, reason) in [
        (WarningKind::Invalid, "open.md", "not closed"),
        (WarningKind::Invalid, "empty.md", "it is empty"),
        (WarningKind::Name, "two words.md", "is not a name"),
        (WarningKind::Invalid, "latin.md", "UTF-8"),
        (WarningKind::Invalid, "binary.md", "UTF-8"),
        (WarningKind::Invalid, "huge.md", "64 KiB"),
        (WarningKind::Unreadable, "away.md", "out of the working directories"),
        (WarningKind::Unreadable, "loop.md", "circles"),
        (WarningKind::Invalid, "skills/bad/SKILL.md", "cannot be typed"),
    ] {
        assert_warned(&discovery, kind, path, reason);
    }
    let built_in = Catalogue::built_in().iter().count();
    let extra: Vec<&str> = discovery.catalogue.iter().map(|(id, _)| id).collect();
    assert_eq!(extra.len(), built_in + 2, "{extra:?}");
    assert!(extra.contains(&"/dir.md:inner"));
    assert!(discovery.skills.is_empty());
}

#[test]
fn directories_that_cannot_be_used_are_warnings() {
    let project = Project::new(&[(".greenroom/commands/x.md", "x"), (".claude", "a file")]);
    let discovery = discover(
        &["file:///not/there".to_owned(), "https://example.org/".to_owned(), project.uri()],
        &UserDirectories::default(),
        &[],
        &Confinement::none(),
    );
    assert_eq!(template(&discovery, "/x"), "x");
    for (path, reason) in [
        ("/not/there", "cannot be opened"),
        ("https://example.org/", "not a `file:` URI"),
        (".claude/commands", "not a directory"),
    ] {
        assert_warned(&discovery, WarningKind::Unreadable, path, reason);
    }
    assert_eq!(
        discover(&[], &UserDirectories::default(), &[], &Confinement::none()).catalogue,
        Catalogue::built_in()
    );
}

#[test]
fn skills_are_discovered_and_the_first_of_a_name_counts() {
    let project = Project::new(&[
        (
            ".agents/skills/tables/SKILL.md",
            "---\nname: tables\ndescription: >\n  Makes\n  tables.\n---\nUse rules.",
        ),
        (".agents/skills/by-dir/SKILL.md", "# Named by its directory\n"),
        (".claude/skills/tables/SKILL.md", "---\nname: tables\ndescription: other\n---\n"),
        (
            ".claude/skills/svg/SKILL.md",
            "---\nname: svg-kit\ndescription: Draws\ncommand: /svg\n---\nDraw.",
        ),
        (".claude/skills/quiet/SKILL.md", "---\nuser-invocable: false\ntrigger: quiet\n---\nx"),
        (".claude/skills/asked/SKILL.md", "---\ndisable-model-invocation: true\n---\nx"),
        (".claude/skills/file.md", "no directory"),
    ]);
    let discovery = project.discover();
    assert_eq!(names(&discovery), ["by-dir", "tables", "asked", "quiet", "svg-kit"]);
    assert_eq!(discovery.skills[0].description, "Named by its directory");
    assert_eq!(discovery.skills[1].description, "Makes tables.");
    assert!(!discovery.skills[2].is_for_models() && discovery.skills[2].is_for_users());
    assert!(!discovery.skills[3].is_for_users() && discovery.skills[3].is_for_models());
    assert_warned(
        &discovery,
        WarningKind::Name,
        ".claude/skills/tables/SKILL.md",
        "has the same name",
    );
    let svg = discovery.catalogue.lookup("/svg").unwrap();
    assert_eq!(svg.effect, CommandEffect::Skill { skill: "svg-kit".to_owned() });
    assert!(discovery.catalogue.lookup("/quiet").is_none());
}

#[test]
fn who_may_ask_for_a_skill_is_said_in_either_spelling() {
    let project = Project::new(&[
        (".claude/skills/a/SKILL.md", "---\ndisableModelInvocation: true\n---\nx"),
        (".claude/skills/b/SKILL.md", "---\ndisableUserInvocation: true\ntrigger: b\n---\nx"),
        (
            ".claude/skills/c/SKILL.md",
            "---\ndisable-model-invocation: true\nuser-invocable: false\ntrigger: c\n---\nx",
        ),
    ]);
    let found = project.discover();
    let by: Vec<InvokedBy> = found.skills.iter().map(|skill| skill.invoked_by).collect();
    assert_eq!(by, [InvokedBy::Users, InvokedBy::Models, InvokedBy::Nobody]);
    let nobodys = &found.skills[2];
    assert!(!nobodys.is_for_users() && !nobodys.is_for_models());
    assert!(found.catalogue.lookup("/c").is_none());
    let workspace = Workspace::open(&[project.uri()], &Confinement::none()).unwrap();
    assert_eq!(workspace.read_skill("a", 100).unwrap().text, "x");
    let known = vec!["b".to_owned()];
    let refused = workspace.read_skill("c", 100).unwrap_err();
    assert_eq!(refused, SkillError::Unknown { known });
}

#[test]
fn the_same_directory_under_two_names_is_visited_once() {
    let project = Project::new(&[(".agents/skills/a/SKILL.md", "# A"), ("kept/b/SKILL.md", "# B")]);
    fs::create_dir_all(project.path(".claude")).unwrap();
    symlink("../.agents/skills", project.path(".claude/skills")).unwrap();
    symlink("../../kept/b", project.path(".agents/skills/b")).unwrap();
    let discovery = project.discover();
    assert_eq!(names(&discovery), ["a", "b"]);
    assert_eq!(discovery.warnings, Vec::<Warning>::new());
}

#[test]
fn reading_is_bounded() {
    let project = Project::new(&[]);
    for number in 0..1_100 {
        project.write(&format!(".greenroom/commands/c{number}.md"), b"x");
    }
    project.write(&format!(".greenroom/commands/{}x.md", "d/".repeat(8)), b"deep");
    let discovery = project.discover();
    let count = discovery.catalogue.iter().count() - Catalogue::built_in().iter().count();
    assert!(count <= 1_000, "{count}");
    assert!(discovery.warnings.iter().any(|warning| warning.kind == WarningKind::LimitReached));
}
