//! MCP servers of plugins, and plugins that clients brought.

use super::tests::Project;
use super::*;

fn servers(container: &Container) -> Vec<(&str, &PluginServer)> {
    let children = container.children.iter();
    let servers = children.filter_map(|child| match &child.content {
        ChildContent::McpServer(server) => Some((child.name.as_str(), server)),
        _ => None,
    });
    servers.collect()
}

#[test]
fn cu_004_servers_are_found_wherever_a_plugin_declares_them_and_nowhere_else() {
    let project = Project::new(&[
        (
            ".agents/plugins/a/.mcp.json",
            "{\n\"mcpServers\": {\n\"one\": {\"command\": \"x\"}, \"bad\": 5}}",
        ),
        (".agents/plugins/a/mcp.json", "{\"mcpServers\": {\"unread\": {}}}"),
        (".agents/plugins/b/mcp.json", "{\"bare\": {\"url\": \"https://h\"}}"),
        (".agents/plugins/c/plugin.json", "{\"mcpServers\": {\"inline\": {\"command\": \"y\"}}}"),
        (".agents/plugins/d/plugin.json", "{\"mcpServers\": \"./sub/servers.json\"}"),
        (".agents/plugins/d/sub/servers.json", "{\"mcpServers\": {\"far\": {\"command\": \"z\"}}}"),
        (".agents/plugins/e/plugin.json", "{\"mcpServers\": \"../../../.mcp.json\"}"),
        (".mcp.json", "{\"mcpServers\": {\"project\": {\"command\": \"p\"}}}"),
        (".agents/plugins/f/.mcp.json", "{not json"),
    ]);
    let found = project.discover();
    let plugin = |name: &str| {
        let mut containers = found.containers.iter();
        containers.find(|container| container.name == name).unwrap()
    };
    let names =
        |name: &str| servers(plugin(name)).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names("a"), ["one"]);
    assert_eq!(names("b"), ["bare"]);
    assert_eq!(names("c"), ["inline"]);
    assert_eq!(names("d"), ["far"]);
    for (broken, problem) in [("e", "leads out of the plugin"), ("f", "not JSON")] {
        assert_eq!(names(broken), [""; 0]);
        assert!(plugin(broken).problems.join("\n").contains(problem));
    }
    let one = &plugin("a").children[0];
    assert!(one.uri.ends_with("/a/.mcp.json"), "{}", one.uri);
    let range = one.range.unwrap();
    assert_eq!((range.start.line, range.start.character), (2, 0));
    let (_, server) = servers(plugin("a"))[0];
    assert_eq!(server.declaration["command"], "x");
    assert_eq!(server.root, project.path(".agents/plugins/a"));
    assert!(!format!("{server:?}").contains("command"));

    let only = find_plugin_servers(
        &[project.uri()],
        &UserDirectories::default(),
        &[],
        &Confinement::none(),
    );
    let only: Vec<&str> = only.iter().map(|plugin| plugin.name.as_str()).collect();
    assert_eq!(only, ["a", "b", "c", "d"]);
}

#[test]
fn cu_007_a_plugin_of_a_client_is_read_from_its_copy_and_known_by_its_own_uri() {
    let project = Project::new(&[("a.txt", "a")]);
    let copies = Project::new(&[
        ("plugins/1/commands/go.md", "Go."),
        ("plugins/1/agents/x.md", "---\ndescription: X\n---\nYou are X."),
        ("plugins/1/.mcp.json", "{\"s\": {\"command\": \"c\"}}"),
        ("plugins/2/commands/other.md", "Not named."),
    ]);
    let brought = ClientPluginCopy {
        client_id: "ann".to_owned(),
        name: "My  Plug-in!".to_owned(),
        uri: "vscode-memfs:/plugin/".to_owned(),
        directory: copies.path("plugins/1"),
    };
    let user = UserDirectories::default();
    let none = Confinement::none();
    let found = discover(&[project.uri()], &user, std::slice::from_ref(&brought), &none);
    let directories = [project.uri()];
    let copies_root = copies.path("");
    let workspace =
        Workspace::open_with_readable(&directories, Some(&copies_root), &user, &none).unwrap();
    assert_eq!(workspace.discover().containers, []);
    workspace.use_plugins(vec![brought]);
    assert_eq!(workspace.discover().containers, found.containers);

    let [plugin] = found.containers.as_slice() else {
        panic!("{:?}", found.containers);
    };
    assert_eq!(plugin.name, "my-plug-in");
    assert_eq!(plugin.uri, "vscode-memfs:/plugin/");
    assert_eq!(plugin.origin, ContainerOrigin::Client);
    assert!(found.catalogue.lookup("/my-plug-in:go").is_some());
    assert!(found.catalogue.lookup("/my-plug-in:other").is_none());
    let mut children = plugin.children.iter();
    let agent = children.find(|child| child.content.kind() == ChildKind::Agent).unwrap();
    assert_eq!(plugin.published_uri(agent), "vscode-memfs:/plugin/agents/x.md");
    let text = workspace.read_instructions(&agent.uri, 1_024);
    assert_eq!(text.unwrap(), "You are X.");
    assert_eq!(servers(plugin)[0].0, "s");
    // Where the copy lies is no part of what a decision of the user is remembered by.
    assert_eq!(plugin.child_key(agent).container, "client:vscode-memfs:/plugin/".to_owned());
    workspace.use_plugins(Vec::new());
    assert_eq!(workspace.discover().containers, []);
}
