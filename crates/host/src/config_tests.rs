//! Settings that can be loaded, and those that are refused with what is wrong.

use super::*;

#[test]
fn printed_settings_can_be_loaded_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("greenroom.toml");
    let mut config = Config::default_for(directory.path().to_owned());
    config.limits.kernel.clients_max = 7;
    std::fs::write(&path, config.to_toml()).unwrap();
    let mut again = Config::default_for(directory.path().to_owned());
    again.load_toml(&path).unwrap();
    assert_eq!(again.limits, config.limits);
    assert_eq!(again.to_toml(), config.to_toml());
}

#[test]
fn models_are_tables_and_a_bad_one_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("greenroom.toml");
    let mut config = Config::default_for(PathBuf::new());
    let local = "[[models]]\nid = \"qwen3\"\nbase_url = \"http://localhost:11434/v1\"\n";
    std::fs::write(&path, local).unwrap();
    config.load_toml(&path).unwrap();
    assert_eq!(config.models[0].id, "qwen3");
    std::fs::write(&path, config.to_toml()).unwrap();
    let mut again = Config::default_for(PathBuf::new());
    again.load_toml(&path).unwrap();
    assert_eq!(again.models, config.models);
    std::fs::write(&path, format!("{local}{local}")).unwrap();
    let error = config.load_toml(&path).unwrap_err().to_string();
    assert!(error.contains("qwen3") && error.contains("twice"), "{error}");
}

#[test]
fn cu_4_plugins_are_a_list_of_paths_or_tables_with_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("greenroom.toml");
    let load = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let mut config = Config::default_for(PathBuf::new());
        config.load_toml(&path).map(|()| config.settings.plugins)
    };
    let both = [PathBuf::from("/a"), PathBuf::from("/b")];
    assert_eq!(load("plugins = [\"/a\", \"/b\"]\n").unwrap(), both);
    let tables = "[[plugins]]\npath = \"/a\"\n[[plugins]]\npath = \"/b\"\n";
    assert_eq!(load(tables).unwrap(), both);
    for wrong in ["plugins = [5]\n", "[[plugins]]\nname = \"a\"\n"] {
        let error = load(wrong).unwrap_err().to_string();
        assert!(error.contains("[[plugins]] tables with a path"), "{error}");
    }
    let relative = load("[[plugins]]\npath = \"a\"\n").unwrap_err();
    assert!(relative.to_string().contains("absolute"), "{relative}");
}

#[test]
fn the_default_model_comes_first_unless_the_command_line_names_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(CONFIG_FILE);
    let mut config = Config::default_for(directory.path().to_owned());
    let models: String = ["a", "b", "c"]
        .map(|id| format!("[[models]]\nid = \"{id}\"\nbase_url = \"http://h/v1\"\n"))
        .concat();
    std::fs::write(&path, format!("default_model = \"b\"\n{models}")).unwrap();
    config.load_toml(&path).unwrap();
    let ids = |config: &Config| {
        config.ordered_models().into_iter().map(|model| model.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&config), ["b", "a", "c"]);
    config.put_models_first(vec![Model::parse("http://other/v1#c").unwrap()]);
    assert_eq!(ids(&config), ["c", "a", "b"]);
    assert_eq!(config.ordered_models()[0].base_url, "http://other/v1");
    std::fs::write(&path, format!("default_model = \"d\"\n{models}")).unwrap();
    let error = config.load_toml(&path).unwrap_err().to_string();
    assert!(error.contains("no model `d`"), "{error}");
}

#[test]
fn a_configured_model_wins_over_a_key_of_the_environment() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(CONFIG_FILE);
    let mut config = Config::default_for(directory.path().to_owned());
    config.environment_models = vec![Model::parse("http://h/v1#of-key").unwrap()];
    assert_eq!(config.ordered_models()[0].id, "of-key");
    std::fs::write(&path, "[[models]]\nid = \"mine\"\nbase_url = \"http://h/v1\"\n").unwrap();
    config.load_toml(&path).unwrap();
    let ids: Vec<String> = config.ordered_models().into_iter().map(|it| it.id).collect();
    assert_eq!(ids, ["mine"]);
    assert!(!config.to_toml().contains("of-key"), "it is nobody's setting");
}

#[test]
fn a_limit_that_cannot_work_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("greenroom.toml");
    std::fs::write(&path, "[limits]\ninputs_max = 0\n").unwrap();
    let error = Config::default_for(PathBuf::new()).load_toml(&path).unwrap_err().to_string();
    assert!(error.contains("inputs_max"), "{error}");
}

#[test]
fn budgets_are_tables_and_a_limit_of_nothing_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("greenroom.toml");
    let mut config = Config::default_for(PathBuf::new());
    let text = "[budget.turn]\ntokens = 5\nusd = 0.5\n[budget.day]\ncalls = 7\nseconds = 9\n";
    std::fs::write(&path, text).unwrap();
    config.load_toml(&path).unwrap();
    assert_eq!(config.budget.turn.usd, Some(0.5));
    std::fs::write(&path, config.to_toml()).unwrap();
    let mut again = Config::default_for(PathBuf::new());
    again.load_toml(&path).unwrap();
    assert_eq!(again.budget, config.budget);
    for (wrong, words) in [
        ("[budget.turn]\ncalls = 0\n", "budget.turn.calls"),
        ("[budget.day]\nusd = -1.0\n", "budget.day.usd"),
        ("[budget.day]\nusd = nan\n", "budget.day.usd"),
        ("[budget.week]\nusd = 1.0\n", "week"),
        ("[budget.turn]\ntoken = 1\n", "token"),
    ] {
        std::fs::write(&path, wrong).unwrap();
        let error = config.load_toml(&path).unwrap_err().to_string();
        assert!(error.contains(words), "{wrong}: {error}");
    }
}

#[test]
fn variables_of_commands_are_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("greenroom.toml");
    let mut config = Config::default_for(PathBuf::new());
    std::fs::write(&path, "tool_env = [\"SSH_AUTH_SOCK\", \"CARGO_HOME\"]\n").unwrap();
    config.load_toml(&path).unwrap();
    assert_eq!(config.tool_env, ["SSH_AUTH_SOCK", "CARGO_HOME"]);
    for wrong in ["CARGO_*", "", "A=b"] {
        std::fs::write(&path, format!("tool_env = [{wrong:?}]\n")).unwrap();
        let error = config.load_toml(&path).unwrap_err().to_string();
        assert!(error.contains("tool_env") && error.contains("whole names"), "{error}");
    }
}

#[test]
fn an_unknown_key_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("greenroom.toml");
    std::fs::write(&path, "[limits]\nclients_maximum = 3\n").unwrap();
    let error = Config::default_for(PathBuf::new()).load_toml(&path).unwrap_err().to_string();
    assert!(error.contains("clients_maximum"), "{error}");
}

#[test]
fn a_node_of_a_cluster_needs_a_database_and_a_plain_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("greenroom.toml");
    let load = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let mut config = Config::default_for(PathBuf::new());
        config.load_toml(&path).map(|()| config).map_err(|error| error.to_string())
    };
    let database = "journal = \"postgres\"\npostgres = \"host=/run/postgresql\"\n";
    let node = "[cluster]\nname = \"a\"\n";
    let config = load(&format!("{database}{node}")).unwrap();
    assert_eq!(config.name_in_database("default"), "node-a");
    assert_eq!(config.name_in_database("team"), "team");
    assert_eq!(load(database).unwrap().name_in_database("default"), "default");
    for (text, why) in [
        (node.to_owned(), "only valid with journal"),
        (format!("{database}{}", node.replace("\"a\"", "\"A b\"")), "small letters"),
        (
            format!("{database}{node}address = \"10.0.0.11\"\n"),
            "cluster.address: \"10.0.0.11\" is not an address with its port",
        ),
        (format!("{database}{node}listen = \"0.0.0.0:x\"\n"), "cluster.listen"),
        (
            format!("listen = \"127.0.0.1:4791\"\n{database}{node}address = \"127.0.0.1:4791\"\n"),
            "is where clients connect",
        ),
        (
            "journal = \"postgres\"\npostgres = \"host=10.0.0.5\"\n".to_owned(),
            "postgres: \"10.0.0.5\" is another machine",
        ),
    ] {
        let error = load(&text).err().unwrap();
        assert!(error.contains(why), "{error}");
    }
}

/// One directory for the worktrees of all would let sessions of one space work in those of another.
#[test]
fn a_directory_for_worktrees_cannot_be_shared_by_spaces() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("greenroom.toml");
    let load = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let mut config = Config::default_for(PathBuf::new());
        config.load_toml(&path).map_err(|error| error.to_string())
    };
    let worktrees = "worktree_dir = \"/srv/worktrees\"\n";
    let spaces = "[[spaces]]\nname = \"team-a\"\ndata = \"/srv/a\"\n";
    assert_eq!(load(worktrees), Ok(()));
    assert_eq!(load(spaces), Ok(()));
    // A node serves whatever space of its database is wanted.
    let cluster = "journal = \"postgres\"\npostgres = \"host=/run/postgresql dbname=g\"\n";
    assert_eq!(load(cluster), Ok(()));
    for (shared, why) in [(spaces, "[[spaces]]"), (cluster, "journal = \"postgres\"")] {
        let error = load(&format!("{worktrees}{shared}")).unwrap_err();
        assert!(error.contains("worktree_dir") && error.contains(why), "{error}");
    }
}
