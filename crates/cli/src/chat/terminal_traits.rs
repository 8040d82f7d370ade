//! What is known of a terminal by the environment it gives to programs.
//!
//! Promises: what is not known is assumed to be as most terminals are. Must not know: what is drawn.

use super::render::LinkStyle;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalTraits {
    pub(crate) reflow: Reflow,
    pub(crate) links: LinkStyle,
}

/// What becomes of the lines on a screen that is made narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reflow {
    /// Those that do not fit any more are broken.
    Breaks,
    /// They are cut, and stay one row each.
    Cuts,
}

/// Programs whose terminals show where links lead and follow them.
const LINK_PROGRAMS: &[&str] =
    &["iTerm.app", "WezTerm", "vscode", "ghostty", "rio", "Tabby", "Hyper"];
const LINK_TERMS: &[&str] = &[
    "xterm-kitty",
    "xterm-ghostty",
    "alacritty",
    "foot",
    "foot-extra",
    "contour",
    "wezterm",
    "rio",
];
/// Variables that only such terminals set.
const LINK_VARIABLES: &[&str] =
    &["KITTY_WINDOW_ID", "WEZTERM_PANE", "WT_SESSION", "KONSOLE_VERSION", "GHOSTTY_RESOURCES_DIR"];
/// The first version of VTE that has links.
const VTE_WITH_LINKS: u32 = 5_000;
/// The beginnings of names of terminals that break no lines.
const CUTTING_TERMS: &[&str] = &["linux", "vt", "st", "eterm", "cons", "screen"];

impl TerminalTraits {
    /// Reads them from the variables of the environment.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        let term = variable("TERM").unwrap_or_default();
        let program = variable("TERM_PROGRAM").unwrap_or_default();
        let vte = variable("VTE_VERSION").and_then(|version| version.parse().ok());
        // Between the program and the terminal that set the other variables.
        let is_in_tmux = is_set("TMUX") || term.starts_with("tmux");
        let is_in_screen = !is_in_tmux && (is_set("STY") || term.starts_with("screen"));
        let has_links = LINK_PROGRAMS.contains(&program.as_str())
            || LINK_TERMS.contains(&term.as_str())
            || LINK_VARIABLES.iter().any(|name| is_set(name))
            || vte.is_some_and(|version: u32| version >= VTE_WITH_LINKS);
        let is_cutting = if is_in_tmux {
            false
        } else {
            let is_xterm = is_set("XTERM_VERSION") && term.starts_with("xterm");
            is_in_screen
                || CUTTING_TERMS.iter().any(|name| term.starts_with(name))
                || (is_xterm && !has_links)
        };
        Self {
            reflow: if is_cutting { Reflow::Cuts } else { Reflow::Breaks },
            links: if has_links && !is_in_tmux && !is_in_screen {
                LinkStyle::Followed
            } else {
                LinkStyle::WrittenOut
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traits(variables: &[(&str, &str)]) -> (Reflow, LinkStyle) {
        let traits = TerminalTraits::read(|name| {
            let mut found = variables.iter().filter(|(known, _)| *known == name);
            found.next().map(|(_, value)| (*value).to_owned())
        });
        (traits.reflow, traits.links)
    }

    #[test]
    fn terminals_are_known_by_what_they_set() {
        use LinkStyle::{Followed, WrittenOut};
        use Reflow::{Breaks, Cuts};
        for (variables, expected) in [
            (&[][..], (Breaks, WrittenOut)),
            (&[("TERM", "xterm-256color")], (Breaks, WrittenOut)),
            (&[("TERM", "xterm-256color"), ("XTERM_VERSION", "XTerm(390)")], (Cuts, WrittenOut)),
            (&[("TERM", "xterm-256color"), ("VTE_VERSION", "7402")], (Breaks, Followed)),
            (
                // A new terminal that was started from an old one.
                &[("TERM", "xterm-kitty"), ("XTERM_VERSION", "XTerm(390)")],
                (Breaks, Followed),
            ),
            (&[("TERM", "tmux-256color"), ("KITTY_WINDOW_ID", "1")], (Breaks, WrittenOut)),
            (&[("TERM", "screen"), ("TMUX", "/x,1,0")], (Breaks, WrittenOut)),
            (&[("TERM", "screen"), ("STY", "1.pts")], (Cuts, WrittenOut)),
            (&[("TERM", "linux")], (Cuts, WrittenOut)),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "vscode")], (Breaks, Followed)),
        ] {
            assert_eq!(traits(variables), expected, "{variables:?}");
        }
    }
}
