//! `config`: a file that says everything, and mistakes that are found.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::Home;
use crate::terminal::Terminal;

#[test]
fn a_new_file_holds_every_setting_and_changes_nothing() {
    let home = Home::create();
    let file = home.data().join("greenroom.toml");
    let path = home.run(&["config", "path"]);
    assert_eq!(path.out.trim(), file.to_str().unwrap());
    let none = home.run(&["config", "check"]);
    assert_eq!(none.code, Some(0), "{none:?}");
    assert!(none.out.contains("config init"), "{none:?}");

    let defaults = home.run(&["serve", "--print-config"]);
    let made = home.run(&["config", "init"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("\n#listen = \"127.0.0.1:4790\"\n") && text.contains("\n#connections_max = ")
    );
    assert_eq!(home.run(&["config", "check"]).code, Some(0));
    assert_eq!(home.run(&["serve", "--print-config"]).out, defaults.out);

    fs::write(&file, "scripted = true\n").unwrap();
    let again = home.run(&["config", "init"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.err.contains("is there already and was not changed"), "{again:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "scripted = true\n");
}

#[test]
fn a_mistake_is_found_with_its_line_and_what_was_meant() {
    let home = Home::create();
    for (toml, words) in [
        (
            "\nlisen = \"127.0.0.1:1\"\n",
            "greenroom.toml:2: there is no setting `lisen`; did you mean `listen`?",
        ),
        (
            "[limits]\nclients_mx = 1\n",
            "greenroom.toml:2: there is no setting `limits.clients_mx`; did you mean `clients_max`?",
        ),
        (
            "[limits]\nshutdown_ms = 99999\n",
            "greenroom.toml:2: limits.shutdown_ms must be at most 4000",
        ),
        ("listen = \"here\"\n", "greenroom.toml:1: listen: invalid socket address"),
        ("workspaces = [\"no/such/place\"]\n", "workspace no/such/place"),
        ("script = \"none.json\"\n", "none.json"),
        ("a = [\n", "greenroom.toml:"),
    ] {
        home.settings(toml);
        let checked = home.run(&["config", "check"]);
        assert_eq!(checked.code, Some(2), "{checked:?}");
        assert!(checked.err.contains(words), "{words}: {checked:?}");
        // A host says the same.
        if words.contains("did you mean") {
            let served = home.run(&["serve"]);
            assert!(served.err.contains(words), "{served:?}");
        }
    }
    fs::remove_file(home.data().join("greenroom.toml")).unwrap();
    fs::create_dir(home.data().join("greenroom.toml")).unwrap();
    let unreadable = home.run(&["config", "check"]);
    assert_eq!(unreadable.code, Some(1), "{unreadable:?}");
    assert!(unreadable.err.contains("cannot read"), "{unreadable:?}");
}

/// An editor that replaces what it opens.
fn editor(home: &Home, toml: &str) -> String {
    let script = home.path().join("editor");
    fs::write(&script, format!("#!/bin/sh\ncat > \"$1\" <<'END'\n{toml}END\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script.to_str().unwrap().to_owned()
}

fn edit(home: &Home, toml: &str) -> Command {
    let mut command = home.greenroom();
    command.args(["config", "edit"]).env("EDITOR", editor(home, toml));
    command
}

#[test]
fn what_is_edited_is_checked_before_it_counts() {
    let home = Home::create();
    let elsewhere = home.path().join("dotfiles.toml");
    let file = home.data().join("greenroom.toml");
    fs::create_dir_all(home.data()).unwrap();
    fs::write(&elsewhere, "scripted = true\n").unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();

    let saved = edit(&home, "scripted = false\n").output().unwrap();
    assert_eq!(saved.status.code(), Some(0), "{saved:?}");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "scripted = false\n");
    assert!(file.is_symlink());

    // Without a terminal nobody can be asked.
    let wrong = edit(&home, "scriptd = 1\n").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    let words = String::from_utf8(wrong.stderr).unwrap();
    assert!(words.contains("did you mean `scripted`?"), "{words}");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "scripted = false\n");
    let copy = home.path().join("dotfiles.toml.edit.toml");
    assert!(words.contains(copy.to_str().unwrap()), "{words}");
    assert_eq!(fs::read_to_string(&copy).unwrap(), "scriptd = 1\n", "it is not lost");

    let failed = home.greenroom().args(["config", "edit"]).env("EDITOR", "false").output().unwrap();
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(copy.exists());
}

#[test]
fn a_wrong_file_is_kept_only_if_the_user_says_so() {
    let home = Home::create();
    let file = home.data().join("greenroom.toml");
    home.settings("scripted = true\n");
    let mut ann = Terminal::start("ann", edit(&home, "scriptd = 1\n"));
    ann.sees("keep it anyway");
    ann.type_line("q");
    assert_eq!(ann.ends(), Some(2));
    assert_eq!(fs::read_to_string(&file).unwrap(), "scripted = true\n");

    let mut ann = Terminal::start("ann", edit(&home, "scriptd = 2\n"));
    ann.sees("keep it anyway");
    ann.type_line("what");
    ann.type_line("k");
    assert_eq!(ann.ends(), Some(2));
    assert_eq!(fs::read_to_string(&file).unwrap(), "scriptd = 2\n");

    // A first edit begins with every setting.
    fs::remove_file(&file).unwrap();
    let unchanged =
        home.greenroom().args(["config", "edit"]).env("EDITOR", "true").output().unwrap();
    assert_eq!(unchanged.status.code(), Some(0), "{unchanged:?}");
    assert!(!file.exists(), "nothing was changed, so nothing is there");
}

#[test]
fn what_others_change_while_a_file_is_edited_is_not_lost() {
    let home = Home::create();
    let file = home.data().join("greenroom.toml");
    home.settings("scripted = true\n");
    let script = home.path().join("slow-editor");
    let other = "scripted = true\\nlog = \"debug\"\\n";
    let text = format!(
        "#!/bin/sh\nprintf 'scripted = false\\n' > \"$1\"\nprintf '{other}' > '{}'\n",
        file.display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let refused =
        home.greenroom().args(["config", "edit"]).env("EDITOR", &script).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.contains("was changed while you edited it"), "{words}");
    let now = fs::read_to_string(&file).unwrap();
    assert!(now.contains("debug"), "{now}");
    let copy = home.data().join("greenroom.toml.edit.toml");
    assert!(words.contains(copy.to_str().unwrap()), "{words}");
    assert_eq!(fs::read_to_string(&copy).unwrap(), "scripted = false\n");
}
