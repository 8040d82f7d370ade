//! What is found where, what a yes is bound to, and what is left out.

use super::*;

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn find(entries: &[McpEntry], root: &Path) -> DeclaredServers {
    find_with(entries, root, &McpInputs::new())
}

fn find_with(entries: &[McpEntry], root: &Path, inputs: &McpInputs) -> DeclaredServers {
    let sources = ServerSources {
        settings: (entries, Path::new("/c/greenroom.toml")),
        data: &root.join("data"),
        directory: &root.join("place"),
        plugins: &[],
        brought: &[],
    };
    find_declared(&sources, inputs)
}

fn find_answered(root: &Path, file: &str, value: &str) -> Vec<DeclaredServer> {
    let answers = FileInputs::from([("key".to_owned(), value.to_owned())]);
    let inputs = McpInputs::from([(root.join(file), answers)]);
    find_with(&[], root, &inputs).servers
}

#[test]
fn tr_2_an_answer_goes_to_servers_of_the_file_that_asked_alone() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let server = |name: &str| {
        format!(
            r#"{{"mcpServers": {{"{name}": {{"url": "https://h/", "headers": {{"X": "${{input:key}}"}}}}}}, "inputs": [{{"id": "key"}}]}}"#
        )
    };
    let files = ["data/mcp.json", "place/.mcp.json", "place/.vscode/mcp.json"];
    for file in files {
        write(&root.join(file), &server(file));
    }
    for file in files {
        let servers = find_answered(&root, file, "s3cret");
        assert_eq!(servers.len(), files.len());
        for server in servers {
            assert_eq!(server.wanted, ["key"]);
            let is_asker = server.file == root.join(file);
            assert_eq!(server.declaration.is_ok(), is_asker, "{}", server.name);
            assert_eq!(server.inputs.is_empty(), is_asker, "{}", server.name);
        }
    }
}

#[test]
fn tr_2_a_digest_changes_with_what_was_answered() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let file = "place/.vscode/mcp.json";
    let declare = |default: &str| {
        let text = format!(
            r#"{{"servers": {{"a": {{"command": "sh", "args": ["-c", "${{input:key}}"]}}}}, "inputs": [{{"id": "key", "default": "{default}"}}]}}"#
        );
        write(&root.join(file), &text);
    };
    let digest = |value: &str| find_answered(&root, file, value).remove(0).digest;
    declare("true");
    let first = digest("true");
    assert_eq!(digest("true"), first, "the same answer in another session");
    declare("false");
    assert_eq!(digest("true"), first, "what would run is the same");
    assert_ne!(digest("false"), first, "the new default was answered");
    assert_ne!(find(&[], &root).servers[0].digest, first, "no answer");
}

#[test]
fn the_first_of_a_name_wins_and_a_wrong_file_hides_no_other() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let entry =
        McpEntry { name: "a".to_owned(), command: Some("first".to_owned()), ..McpEntry::default() };
    write(
        &root.join("data/mcp.json"),
        r#"{"mcpServers": {"b": {"command": "second", "trust_hints": true}}}"#,
    );
    write(
        &root.join("place/.mcp.json"),
        r#"{"mcpServers": {"a": {"command": "x"}, "c": {"type": "http", "url": "https://h/${workspaceFolder}"}, "off": {"command": "x", "disabled": true}, "bad": {"command": 7}}}"#,
    );
    write(
        &root.join("place/.vscode/mcp.json"),
        "{ // VS Code\n\"servers\": {\"d\": {\"command\": \"./run\", \"trust_hints\": true, \"env\": {\"P\": \"${env:PATH}\"}}, \"e\": {\"command\": \"${input:x}\"},}, \"inputs\": []}",
    );
    let found = find(&[entry], &root);
    let names: Vec<(&str, bool)> =
        found.servers.iter().map(|server| (server.name.as_str(), server.is_users)).collect();
    assert_eq!(names, [("a", true), ("b", true), ("c", false), ("d", false), ("e", false)]);
    let hints = |index: usize| found.servers[index].declaration.as_ref().unwrap().trust_hints;
    assert!(hints(1) && !hints(3), "only the user is believed");
    assert_eq!(found.servers[3].variables, ["PATH"]);
    let (shadowed, by) = &found.shadowed[0];
    assert_eq!((shadowed.name.as_str(), by.as_path()), ("a", Path::new("/c/greenroom.toml")));
    assert!(found.servers[4].declaration.is_err());
    assert_eq!(found.problems.len(), 1);
    assert!(found.problems[0].contains("\"bad\""), "{:?}", found.problems);

    write(&root.join("data/mcp.json"), "{");
    let found = find(&[], &root);
    assert_eq!(found.servers[0].name, "a");
    assert!(found.problems[0].contains("data/mcp.json: it is not understood"));
}

#[test]
fn tr_2_a_digest_changes_with_the_declaration_and_with_the_program() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let digest = || find(&[], &root).servers[0].digest.clone();
    let declare = |text: &str| write(&root.join("place/.mcp.json"), text);
    declare(r#"{"mcpServers": {"a": {"command": "./run", "args": ["1"]}}}"#);
    write_program(&root.join("place/run"), "one");
    let first = digest();
    declare("{\n \"mcpServers\": {\"a\": {\"args\": [\"1\"], \"command\": \"./run\"}}}");
    assert_eq!(digest(), first, "blanks and order say nothing");
    declare(r#"{"mcpServers": {"a": {"command": "./run", "args": ["2"]}}}"#);
    let second = digest();
    assert_ne!(second, first);
    write_program(&root.join("place/run"), "two");
    assert_ne!(digest(), second);

    // By a PATH of its own the command is a program of the directory, too.
    let found = |text: &str| {
        declare(text);
        let mut found = find(&[], &root);
        found.servers.remove(0).declaration.unwrap().program
    };
    let by_path =
        r#"{"mcpServers": {"a": {"command": "run", "env": {"PATH": "${workspaceFolder}"}}}}"#;
    assert!(found(by_path).is_some_and(|program| !program.digest.is_empty()));
    let elsewhere = r#"{"mcpServers": {"a": {"command": "/bin/sh"}}}"#;
    assert_eq!(found(elsewhere), None);
}

#[test]
fn tr_2_a_digest_changes_with_what_a_link_of_the_directory_means() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    for (directory, text) in [("one", "1"), ("two", "2")] {
        write_program(&root.join(directory).join("run"), text);
    }
    std::fs::create_dir_all(root.join("place")).unwrap();
    let link = |name: &str, target: &str| {
        let link = root.join("place").join(name);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(root.join(target), link).unwrap();
    };
    let absolute = root.join("one/../place/run");
    let through = root.join("one/../place/bin/run");
    for command in ["./run", "bin/run", absolute.to_str().unwrap(), through.to_str().unwrap()] {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "{command}"}}}}}}"#);
        write(&root.join("place/.mcp.json"), &text);
        let look = |target: &str| {
            link("run", &format!("{target}/run"));
            link("bin", target);
            let server = find(&[], &root).servers.remove(0);
            let program = server.declaration.unwrap().program;
            (server.digest, program.expect(command))
        };
        let (first, program) = look("one");
        assert!(!program.digest.is_empty(), "{command}");
        assert_eq!(program.path, root.join("place").join(command), "{command}");
        assert_eq!(look("one").0, first, "{command}");
        let (second, changed) = look("two");
        assert_ne!(second, first, "{command}");
        // What is looked at before each start is what the link means then.
        let now = super::super::program::digest_of(&program.path).unwrap();
        assert_eq!(now, changed.digest, "{command}");
        assert_ne!(now, program.digest, "{command}");
    }
}

fn write_program(path: &Path, text: &str) {
    write(path, text);
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(path, all).unwrap();
}

#[test]
fn a_file_with_much_that_is_wrong_is_said_by_a_number() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let wrong: Vec<String> = (0..1_000).map(|n| format!("\"s{n}\": 7")).collect();
    let text = format!("{{\"mcpServers\": {{{}}}}}", wrong.join(","));
    write(&root.join("place/.mcp.json"), &text);
    let problems = find(&[], &root).problems;
    assert_eq!(problems.len(), PROBLEMS_MAX + 1);
    assert!(problems[PROBLEMS_MAX].contains("992 more servers"), "{problems:?}");
}

#[test]
fn links_and_large_files_are_not_read() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    write(&root.join("elsewhere"), r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    std::fs::create_dir_all(root.join("place/.vscode")).unwrap();
    std::os::unix::fs::symlink(root.join("elsewhere"), root.join("place/.mcp.json")).unwrap();
    write(&root.join("place/.vscode/mcp.json"), &" ".repeat(300_000));
    let found = find(&[], &root);
    assert_eq!(found.servers, []);
    assert_eq!(found.problems.len(), 2, "{:?}", found.problems);
}
