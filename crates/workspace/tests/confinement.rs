//! Where sessions may work: real directories, real links, and the host's own directory inside a root.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use compositor::command::agent::AgentCommands;
use compositor::resolve::{FileRead, Sources as _};
use workspace::completion::{Completer, CompletionRequest, Suggestion};
use workspace::discovery::{DiscoveryCache, discover};
use workspace::{
    Cancellation, ChangeRequest, Confinement, EmptyStore, Extent, FileError, IgnoreMode, OpenError,
    ProjectReader, SearchOptions, SearchPattern, TreeLimits, UserDirectories, Workspace,
    WorkspaceSources,
};

/// `root` is a root, `elsewhere` is not; `root/data` belongs to the host.
struct Place {
    directory: tempfile::TempDir,
    confinement: Confinement,
}

impl Place {
    /// The root, with copies of attachments beside it.
    fn open_with_copies(&self, copies: &Path) -> Workspace {
        Workspace::open_with_readable(
            &self.uris("root"),
            Some(copies),
            &UserDirectories::default(),
            &self.confinement,
        )
        .unwrap()
    }

    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["root/project", "root/data/staged/7", "root/data/staged/8", "elsewhere/deep"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        for name in [
            "root/project/AGENTS.md",
            "root/data/token",
            "root/data/staged/7/own.txt",
            "root/data/staged/8/other.txt",
            "elsewhere/secret.txt",
            "elsewhere/AGENTS.md",
        ] {
            fs::write(path(name), format!("needle in {name}\n")).unwrap();
        }
        let confinement =
            Confinement::within(&[path("root")]).unwrap().hiding(&path("root/data")).unwrap();
        Self { directory, confinement }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn uris(&self, name: &str) -> Vec<String> {
        vec![uri(&self.path(name))]
    }

    fn open(&self, name: &str) -> Result<Workspace, OpenError> {
        Workspace::open(&self.uris(name), &self.confinement)
    }
}

fn uri(path: &Path) -> String {
    wire::file_uri::uri_of(path.as_os_str().as_bytes())
}

fn is_refused<T: std::fmt::Debug>(opened: Result<T, OpenError>) -> bool {
    matches!(opened, Err(OpenError::NotAllowed { .. }))
}

#[test]
fn a_directory_is_judged_by_where_links_lead() {
    let place = Place::new();
    for name in ["root", "root/project"] {
        assert!(place.open(name).is_ok(), "{name}");
    }
    symlink(place.path("root/project"), place.path("elsewhere/in")).unwrap();
    assert!(place.open("elsewhere/in").is_ok(), "it leads inside");

    symlink(place.path("elsewhere"), place.path("root/out")).unwrap();
    symlink("../elsewhere", place.path("root/out too")).unwrap();
    let outside = ["elsewhere", "root/out", "root/out too", "root/out/deep", "root/../elsewhere"];
    let own = ["root/data", "root/data/staged", "root/data/staged/7"];
    // Whether something exists out there is not disclosed either.
    let missing = ["elsewhere/missing", "root/out/missing"];
    for name in outside.iter().chain(&own).chain(&missing) {
        assert!(is_refused(place.open(name)), "{name}");
        assert!(is_refused(place.confinement.check(&place.uris(name))), "{name}");
    }
    let error = place.open("root/missing").unwrap_err();
    assert!(matches!(error, OpenError::Unopenable { .. }), "{error}");
    assert!(place.confinement.check(&place.uris("root/missing")).is_ok());
}

#[test]
fn the_error_names_the_roots_and_the_setting() {
    let place = Place::new();
    let error = place.open("elsewhere").unwrap_err();
    let (text, root) = (error.to_string(), place.path("root").canonicalize().unwrap());
    assert!(text.contains(root.to_str().unwrap()), "{text}");
    assert!(text.contains("`workspaces`") && text.contains("--workspace"), "{text}");
    assert_eq!(error.reason(), "outside the roots");
}

#[test]
fn a_directory_that_becomes_a_link_is_not_followed() {
    let place = Place::new();
    let workspace = place.open("root/project").unwrap();
    assert!(workspace.is_current(&place.confinement));
    fs::rename(place.path("root/project"), place.path("root/moved")).unwrap();
    symlink(place.path("elsewhere"), place.path("root/project")).unwrap();
    assert!(is_refused(place.open("root/project")));
    assert!(!workspace.is_current(&place.confinement));
    fs::remove_file(place.path("root/project")).unwrap();
    fs::create_dir(place.path("root/project")).unwrap();
    assert!(place.open("root/project").is_ok());
    assert!(!workspace.is_current(&place.confinement), "it is another");
}

#[test]
fn nothing_is_discovered_completed_or_told_of_a_directory_outside() {
    let place = Place::new();
    let commands = place.path("elsewhere/.greenroom/commands");
    fs::create_dir_all(&commands).unwrap();
    fs::write(commands.join("leak.md"), "Leak.").unwrap();
    symlink(place.path("elsewhere"), place.path("root/out")).unwrap();
    let directories = place.uris("root/out");
    let found = discover(&directories, &UserDirectories::default(), &[], &place.confinement);
    assert!(found.catalogue.lookup("/leak").is_none());
    let unconfined = discover(&directories, &UserDirectories::default(), &[], &Confinement::none());
    assert!(unconfined.catalogue.lookup("/leak").is_some());

    let project = ProjectReader::with_confinement(place.confinement.clone()).read(&directories);
    assert!(project.instructions.is_empty(), "{project:?}");
    let both = [place.uris("root/project"), directories].concat();
    assert_eq!(completed_paths(&place.confinement, both), ["AGENTS.md"]);
}

/// What completions suggest once there is an index: all directories are walked before it counts.
fn completed_paths(confinement: &Confinement, directories: Vec<String>) -> Vec<String> {
    let discovery = DiscoveryCache::default().with_confinement(confinement.clone());
    let completer = Completer::new(discovery);
    let request = CompletionRequest {
        brought: Vec::new(),
        switched_off: Default::default(),
        working_directories: directories,
        text: "@file:".to_owned(),
        offset: 6,
        contexts: Vec::new(),
        agent_commands: AgentCommands::default(),
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let paths = completer
            .complete(&request, |suggestion, _| match suggestion {
                Suggestion::Path(path) => Some(path.relative.to_owned()),
                _ => None,
            })
            .unwrap();
        if !paths.is_empty() {
            return paths;
        }
        assert!(Instant::now() < deadline, "there is an index by now");
        std::thread::yield_now();
    }
}

#[test]
fn the_hosts_own_directory_is_not_there_for_tools() {
    let place = Place::new();
    symlink("../data", place.path("root/project/link")).unwrap();
    symlink("../data/token", place.path("root/project/token")).unwrap();
    let own = place.path("root/data/staged/7");
    let workspace = place.open_with_copies(&own);
    let read = |path: &str| {
        let path = workspace.resolve(path).unwrap();
        workspace.read_lines(&path, 1, &Cancellation::default(), &mut |_| ControlFlow::Continue(()))
    };
    assert!(read("project/AGENTS.md").is_ok());
    assert!(read(own.join("own.txt").to_str().unwrap()).is_ok(), "its own copies");
    let other = place.path("root/data/staged/8/other.txt");
    for path in [
        "data/token",
        "project/link/token",
        "project/token",
        place.path("root/data/token").to_str().unwrap(),
        other.to_str().unwrap(),
    ] {
        let error = read(path).unwrap_err();
        assert!(matches!(error, FileError::PermissionDenied { .. }), "{path}: {error}");
    }
    let tree = |path: &str| {
        let limits = TreeLimits { depth: 9, entries: 99, bytes: 9_999 };
        let path = workspace.resolve(path)?;
        workspace.list_tree(&path, IgnoreMode::Disregard, limits, &Cancellation::default())
    };
    let lines = tree(".").unwrap().lines;
    assert_eq!(lines, ["project/", "project/AGENTS.md", "project/link@", "project/token@"]);
    assert!(matches!(tree("data"), Err(FileError::PermissionDenied { .. })));
    assert!(matches!(tree("project/link"), Err(FileError::PermissionDenied { .. })));
    assert_eq!(
        found_in(&workspace, ".").unwrap(),
        "project/AGENTS.md\n1:needle in root/project/AGENTS.md\n"
    );
    assert!(found_in(&workspace, "data").is_err());
    assert!(found_in(&workspace, "data/token").is_err());
}

fn found_in(workspace: &Workspace, path: &str) -> Result<String, FileError> {
    let pattern = SearchPattern::compile("needle", false, false)?;
    let options = SearchOptions {
        ignore: IgnoreMode::Disregard,
        globs: Vec::new(),
        context_lines: 0,
        output: workspace::SearchOutput::Lines,
        lines_max: 99,
        files_max: 99,
        text_bytes_max: 9_999,
    };
    let path = workspace.resolve(path)?;
    let found = workspace.search(&path, &pattern, &options, &Cancellation::default())?;
    Ok(found.text)
}

#[test]
fn nothing_is_written_into_the_hosts_own_directory() {
    let place = Place::new();
    symlink("../data", place.path("root/project/link")).unwrap();
    let own = place.path("root/data/staged/7");
    let workspace = place.open_with_copies(&own);
    let write = |path: &str| {
        let request = ChangeRequest { path, extent: Extent::Whole };
        workspace.apply_change::<FileError>(&request, &Cancellation::default(), |_, _| {
            Ok(b"mine".to_vec())
        })
    };
    assert!(write("project/new").is_ok());
    for path in [
        "data/new",
        "data/new/deep/file",
        "data/token",
        "project/link/new",
        "project/link/new/deep",
        own.join("new").to_str().unwrap(),
    ] {
        assert!(write(path).is_err(), "{path}");
    }
    let mut names: Vec<_> = fs::read_dir(place.path("root/data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["staged", "token"]);
    let token = fs::read_to_string(place.path("root/data/token")).unwrap();
    assert_eq!(token, "needle in root/data/token\n");
}

#[test]
fn the_hosts_own_directory_stays_hidden_when_it_is_moved_with_its_root() {
    let place = Place::new();
    let workspace = place.open("root").unwrap();
    fs::rename(place.path("root"), place.path("renamed")).unwrap();
    assert!(found_in(&workspace, "data/token").is_err());
    assert!(found_in(&workspace, "project/AGENTS.md").is_ok());
}

#[test]
fn messages_and_completions_do_not_reach_it() {
    let place = Place::new();
    let workspace = place.open("root").ok();
    let mut sources = WorkspaceSources { workspace, store: EmptyStore };
    let mut is_read = |path: &str| matches!(sources.file(path, 1_000), FileRead::Bytes { .. });
    assert!(is_read("project/AGENTS.md"));
    for path in ["data/token", "project/../data/token", "data/staged/7/own.txt"] {
        assert!(!is_read(path), "{path}");
    }
    let suggested = completed_paths(&place.confinement, place.uris("root"));
    assert!(suggested.iter().any(|path| path == "project/AGENTS.md"), "{suggested:?}");
    assert!(!suggested.iter().any(|path| path.starts_with("data")), "{suggested:?}");
}
