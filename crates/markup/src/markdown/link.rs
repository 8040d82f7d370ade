//! Where links lead: which targets are allowed, what a refused one reads as, and definitions that parts of a text share.
//!
//! Promises: an allowed target has an allowed scheme and no hidden character, so it can stand in an attribute or an escape
//! sequence. Must not know: who follows it.

use std::collections::BTreeMap;

use pulldown_cmark::LinkType;

use crate::visible::{is_hidden, write_out_name};

const SCHEMES: &[&str] = &["http://", "https://", "mailto:"];

/// How much of a refused target is shown: enough to know it by.
const SHOWN_MAX: usize = 200;

/// How many definitions of earlier parts are remembered, and of how many bytes in all.
const DEFINITIONS_MAX: usize = 1_000;
const DEFINITIONS_BYTES_MAX: usize = 256 << 10;

/// The link definitions of the parts of a text that were read so far. The first definition of a label holds.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    targets: BTreeMap<String, String>,
    bytes: usize,
}

impl Definitions {
    /// Remembers a definition if its label is new. One beyond the bounds is not remembered: later links to it are text.
    pub(super) fn add(&mut self, label: &str, target: &str) {
        let label = normalise(label);
        let bytes = self.bytes + label.len() + target.len();
        let is_full = self.targets.len() >= DEFINITIONS_MAX || bytes > DEFINITIONS_BYTES_MAX;
        if is_full || self.targets.contains_key(&label) {
            return;
        }
        self.bytes = bytes;
        self.targets.insert(label, target.to_owned());
    }

    pub(super) fn find(&self, label: &str) -> Option<&str> {
        self.targets.get(&normalise(label)).map(String::as_str)
    }
}

/// Labels are the same if they differ in case or in the length of their blanks only.
fn normalise(label: &str) -> String {
    let mut normal = String::with_capacity(label.len());
    for word in label.split_whitespace() {
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.extend(word.chars().flat_map(char::to_lowercase));
    }
    normal
}

/// Whether a link names its target by a label.
pub(super) fn is_by_label(kind: LinkType) -> bool {
    use LinkType::{
        Collapsed, CollapsedUnknown, Reference, ReferenceUnknown, Shortcut, ShortcutUnknown,
    };
    matches!(
        kind,
        Reference | ReferenceUnknown | Collapsed | CollapsedUnknown | Shortcut | ShortcutUnknown
    )
}

/// Whether a picture's target may be shown as one.
pub(super) fn is_allowed_image(target: &str) -> bool {
    is_allowed(target) && !starts_with_ignoring_case(target, "mailto:")
}

pub(super) fn is_allowed(target: &str) -> bool {
    SCHEMES.iter().any(|scheme| starts_with_ignoring_case(target, scheme)) && !has_forbidden(target)
}

fn has_forbidden(target: &str) -> bool {
    // Nearly all of them are ASCII, where three comparisons are enough.
    if target.is_ascii() {
        return target.bytes().any(|byte| byte <= b' ' || byte == 0x7f || byte == b'\\');
    }
    target.contains(|c: char| is_hidden(c) || c.is_whitespace() || c == '\\')
}

fn starts_with_ignoring_case(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
}

/// A refused target as it is shown.
pub(super) fn shorten(target: &str) -> String {
    let seen = write_out_name(target);
    if seen.chars().count() <= SHOWN_MAX {
        return seen.into_owned();
    }
    seen.chars().take(SHOWN_MAX).chain(['…']).collect()
}

/// The host of a target, if the text of its link reads as an address with another host, or may do so because not all of it is seen.
pub(super) fn find_other_host<'t>(text: &str, target: &'t str) -> Option<&'t str> {
    let real = find_host(target)?;
    let claimed = text.trim();
    if !claimed.is_ascii() && claimed.contains(|c: char| c != '\n' && is_hidden(c)) {
        return Some(real);
    }
    let claimed = find_host(claimed).or_else(|| find_bare_host(claimed))?;
    (!claimed.eq_ignore_ascii_case(real)).then_some(real)
}

fn find_host(address: &str) -> Option<&str> {
    let scheme = ["http://", "https://"]
        .into_iter()
        .find(|scheme| starts_with_ignoring_case(address, scheme))?;
    let rest = address.get(scheme.len()..)?;
    let authority = rest.split(['/', '?', '#']).next()?;
    // A user name before the host is a way to look like another host.
    let host = authority.rsplit('@').next()?;
    Some(host.split(':').next().unwrap_or(host))
}

/// `example.com/path` without a scheme, as people write it. A word with a dot in it may be a file's name; then the host is shown
/// once too often, which does no harm.
fn find_bare_host(text: &str) -> Option<&str> {
    let host = text.split(['/', '?', '#', ':']).next()?;
    let is_host = host.contains('.')
        && !host.starts_with('.')
        && !host.ends_with('.')
        && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-'));
    is_host.then_some(host)
}
