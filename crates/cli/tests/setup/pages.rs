//! Help, completions and manual pages.

use std::fs;
use std::process::Command;

use crate::Home;

const VERBS: [&str; 15] = [
    "open",
    "pair",
    "devices",
    "agents",
    "status",
    "stop",
    "restart",
    "logs",
    "service",
    "space",
    "migrate",
    "config",
    "doctor",
    "completions",
    "man",
];

#[test]
fn help_has_groups_and_every_verb() {
    let home = Home::create();
    let help = home.run(&["--help"]);
    assert_eq!(help.code, Some(0), "{help:?}");
    for group in
        ["Talk to agents:", "Other devices:", "Sessions:", "The host:", "Several teams:", "Set-up:"]
    {
        assert!(help.out.contains(group), "{group}: {}", help.out);
    }
    for verb in VERBS {
        assert!(help.out.contains(&format!("\n  {verb} ")), "{verb}: {}", help.out);
        let own = home.run(&[verb, "--help"]);
        assert_eq!(own.code, Some(0), "{own:?}");
        assert!(own.out.contains(&format!("greenroom {verb}")), "{}", own.out);
    }
}

#[test]
fn shells_take_their_completions() {
    let home = Home::create();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.run(&["completions", shell]);
        assert_eq!(script.code, Some(0), "{script:?}");
        for verb in VERBS {
            assert!(script.out.contains(verb), "{shell}: {verb}");
        }
    }
    let script = home.path().join("greenroom.bash");
    fs::write(&script, home.run(&["completions", "bash"]).out).unwrap();
    // What bash itself makes of it: the words that begin with `rest`.
    let complete = format!(
        ". {}; COMP_WORDS=(greenroom rest); COMP_CWORD=1; _greenroom greenroom rest greenroom; echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let output = Command::new("bash").args(["-c", &complete]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "restart");
    assert_eq!(home.run(&["completions", "ash"]).code, Some(2));
}

#[test]
fn there_is_a_page_for_every_verb() {
    let home = Home::create();
    let page = home.run(&["man"]);
    assert_eq!(page.code, Some(0), "{page:?}");
    assert!(page.out.contains(".TH greenroom 1"), "{}", page.out);
    let pages = home.path().join("man1");
    let written = home.run(&["man", pages.to_str().unwrap()]);
    assert_eq!(written.code, Some(0), "{written:?}");
    for verb in VERBS {
        let page = fs::read_to_string(pages.join(format!("greenroom-{verb}.1"))).unwrap();
        assert!(page.contains(".TH"), "{page}");
    }
    let occupied = home.path().join("file");
    fs::write(&occupied, "").unwrap();
    let refused = home.run(&["man", occupied.to_str().unwrap()]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
}
