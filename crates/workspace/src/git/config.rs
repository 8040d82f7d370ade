//! Settings that every call of git gets, so that nothing that a repository configures is run.
//!
//! Promises: programs that a repository names by settings (hooks, monitors, filters, drivers for diffs and merges, pagers, editors,
//! signers, helpers) are switched off by name; drivers and hooks can have any name, so the names in use are read first, which runs
//! nothing.
//! Must not know: what is run then.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// Settings that name programs or make git do more than it is asked to.
const FIXED: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("sequence.editor", "false"),
    ("core.askPass", "false"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", "false"),
    ("credential.helper", ""),
    ("protocol.allow", "never"),
    ("diff.external", ""),
    ("diff.ignoreSubmodules", "dirty"),
    ("submodule.recurse", "false"),
    ("status.submoduleSummary", "false"),
    ("status.showUntrackedFiles", "all"),
    ("log.showSignature", "false"),
    ("merge.verifySignatures", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("gpg.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("rerere.enabled", "false"),
    ("core.quotePath", "false"),
    ("safe.bareRepository", "explicit"),
];

/// Settings for a call that the user asked for with all that the repository runs then (a commit): only what would ask somebody, and
/// what starts work of its own.
const ASKED_FOR: &[(&str, &str)] = &[
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", "false"),
    ("core.fsmonitor", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// Endings of settings of drivers that name programs.
const FILTER_COMMANDS: &[&str] = &["clean", "smudge", "process"];

/// Settings of drivers and hooks that are switched off at most: more is no repository to work with.
const DRIVERS_MAX: usize = 500;

/// What is known of the settings of a repository.
#[derive(Debug, Clone, Default)]
pub(super) struct GitSettings {
    /// What every call gets.
    pub safe: Vec<(OsString, OsString)>,
    /// Whether line ends may differ between the working tree and what git stores.
    pub converts_lines: bool,
}

/// What the first calls get, before the names of drivers are known: they open no file of the working tree.
pub(super) fn fixed_settings() -> Vec<(OsString, OsString)> {
    to_owned(FIXED)
}

/// What a call gets that the user asked for.
pub(super) fn user_settings() -> Vec<(OsString, OsString)> {
    to_owned(ASKED_FOR)
}

fn to_owned(settings: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let owned = settings.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    owned.collect()
}

impl GitSettings {
    /// Reads what `git config --list -z` printed. `None` if there are more drivers than can be switched off.
    pub(super) fn read(printed: &[u8]) -> Option<Self> {
        let mut settings = Self { safe: fixed_settings(), converts_lines: false };
        let mut off = std::collections::BTreeSet::new();
        for entry in printed.split(|byte| *byte == 0) {
            let (name, value) = match entry.iter().position(|byte| *byte == b'\n') {
                Some(end) => (&entry[..end], &entry[end + 1..]),
                None => (entry, &b"true"[..]),
            };
            let is_crlf = match name {
                b"core.autocrlf" => value.eq_ignore_ascii_case(b"true"),
                b"core.eol" => value.eq_ignore_ascii_case(b"crlf"),
                _ => false,
            };
            settings.converts_lines |= is_crlf;
            off.extend(switched_off(name));
        }
        if off.len() > DRIVERS_MAX {
            return None;
        }
        let off =
            off.into_iter().map(|(name, value)| (OsString::from_vec(name), OsString::from(value)));
        settings.safe.extend(off);
        Some(settings)
    }
}

/// What switches off the driver that a setting belongs to. Names are in lower case, except the driver's own.
fn switched_off(name: &[u8]) -> Vec<(Vec<u8>, &'static str)> {
    let driver = |section: &[u8]| {
        let rest = name.strip_prefix(section)?;
        let end = rest.iter().rposition(|byte| *byte == b'.')?;
        Some(rest[..end].to_vec())
    };
    let key = |section: &str, driver: &[u8], setting: &str| {
        [section.as_bytes(), driver, b".", setting.as_bytes()].concat()
    };
    if let Some(driver) = driver(b"filter.") {
        let commands = FILTER_COMMANDS.iter().map(|command| (key("filter.", &driver, command), ""));
        let required = (key("filter.", &driver, "required"), "false");
        return commands.chain([required]).collect();
    }
    if let Some(driver) = driver(b"diff.") {
        // An empty command would be run, so the driver's name is all that is left of it: `--no-ext-diff` and
        // `--no-textconv` are given with every diff besides.
        return vec![(key("diff.", &driver, "textconv"), "cat")];
    }
    if let Some(driver) = driver(b"merge.") {
        // A driver that fails leaves the file in conflict.
        return vec![(key("merge.", &driver, "driver"), "false")];
    }
    if let Some(hook) = driver(b"hook.") {
        // Hooks that settings name (git 2.54) run whatever `core.hooksPath` says.
        return vec![(key("hook.", &hook, "enabled"), "false")];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_switched_off_by_their_names() {
        let printed = b"core.autocrlf\nTRUE\0filter.a.b=c.clean\nevil\0diff.x.textconv\nevil\0merge.m.driver\nevil\0merge.tool\nx\0bare.key\0hook.my.h.command\nevil\0hook.jobs\n2\0";
        let settings = GitSettings::read(printed).unwrap();
        assert!(settings.converts_lines);
        let has = |name: &str, value: &str| {
            let wanted = (OsString::from(name), OsString::from(value));
            settings.safe.contains(&wanted)
        };
        for command in ["clean", "smudge", "process"] {
            assert!(has(&format!("filter.a.b=c.{command}"), ""));
        }
        assert!(has("filter.a.b=c.required", "false"));
        assert!(has("diff.x.textconv", "cat") && has("merge.m.driver", "false"));
        assert!(has("core.hooksPath", "/dev/null"));
        assert!(has("hook.my.h.enabled", "false"));
    }

    #[test]
    fn a_repository_with_drivers_without_number_is_not_worked_with() {
        let many: Vec<u8> = (0..600)
            .flat_map(|number| format!("diff.d{number}.command\nx\0").into_bytes())
            .collect();
        assert!(GitSettings::read(&many).is_none());
    }
}
