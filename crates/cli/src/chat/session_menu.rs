//! The sessions of a host as a list to choose from: what needs the user first, then those of this directory, then the rest.
//!
//! Must not know: terminals, connections.

use std::path::Path;

use client::SessionSummary;
use wire::{ChannelUri, Timestamp};

use super::directory::shorten_home;
use super::menu::{MenuItem, Tone};
use crate::format::{format_age, format_status, with_further};
use crate::terminal::escape_line;

/// A session that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionChosen {
    pub(crate) uri: ChannelUri,
    /// As the host has it.
    pub(crate) title: String,
    pub(crate) is_archived: bool,
}

/// Where the list is looked at from.
pub(crate) struct SessionMenuContext<'a> {
    /// The session that is open.
    pub(crate) current: &'a ChannelUri,
    pub(crate) directory: Option<&'a Path>,
    pub(crate) home: Option<&'a Path>,
    pub(crate) now: Timestamp,
}

pub(crate) fn items(
    sessions: &[SessionSummary],
    from: &SessionMenuContext<'_>,
) -> Vec<MenuItem<SessionChosen>> {
    let mut ranked: Vec<((bool, bool, bool), MenuItem<SessionChosen>)> = sessions
        .iter()
        .filter(|session| !session.is_empty())
        .filter_map(|session| {
            let directory = session.directory();
            let is_here = directory.is_some() && directory.as_deref() == from.directory;
            let rank = (session.is_archived(), !session.needs_attention(), !is_here);
            Some((rank, item(session, is_here, from)?))
        })
        .collect();
    // Stable: within a rank the newest stays first.
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, item)| item).collect()
}

/// One that a URI names; what cannot be opened is not offered.
fn item(
    session: &SessionSummary,
    is_here: bool,
    from: &SessionMenuContext<'_>,
) -> Option<MenuItem<SessionChosen>> {
    let uri = session.uri().ok()?;
    let mut label = match session.title().trim() {
        "" => "(no title)".to_owned(),
        title => escape_line(title),
    };
    if uri == *from.current {
        label.push_str(" (open)");
    }
    let mut detail = vec![
        format_status(session.status()),
        format_age(session.modified_at(), from.now),
        escape_line(session.agent()),
    ];
    if let Some(directory) = session.directory().filter(|_| !is_here) {
        let directory = escape_line(&shorten_home(&directory, from.home));
        detail.push(with_further(directory, session.further_directories()));
    }
    detail.retain(|piece| !piece.is_empty());
    let tone = match (session.is_archived(), session.needs_attention()) {
        (true, _) => Tone::Dim,
        (false, true) => Tone::Warn,
        (false, false) => Tone::Plain,
    };
    let choice = SessionChosen {
        uri,
        title: session.title().to_owned(),
        is_archived: session.is_archived(),
    };
    let mut item = MenuItem::new(choice, label, detail.join(" · "));
    item.tone = tone;
    Some(item)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_needs_the_user_comes_first_then_this_directory() {
        let session = |uri: &str, title: &str, status: u32, directories: &str| {
            let directories = directories.split(',').map(|path| format!("file://{path}"));
            SessionSummary::new(json!({
                "resource": uri, "title": title, "status": status, "provider": "native",
                "modifiedAt": "2026-11-15T11:00:00Z", "workingDirectories": directories.collect::<Vec<_>>(),
            }))
        };
        let sessions = [
            session("s:/1", "elsewhere", 1, "/home/ann/other,/srv"),
            session("s:/2", "put away", 1 | 64, "/home/ann/here"),
            session("s:/3", "here\u{7}", 1, "/home/ann/here"),
            session("s:/4", "", 24, "/srv"),
            session("no uri", "x", 1, "/srv"),
        ];
        let items = items(
            &sessions,
            &SessionMenuContext {
                current: &ChannelUri::parse("s:/3").unwrap(),
                directory: Some(Path::new("/home/ann/here")),
                home: Some(Path::new("/home/ann")),
                now: Timestamp::parse_rfc3339("2026-11-15T12:00:00Z").unwrap(),
            },
        );
        let rows: Vec<(&str, &str)> =
            items.iter().map(|item| (item.label.as_str(), item.detail.as_str())).collect();
        assert_eq!(
            rows,
            [
                ("(no title)", "needs you · 1 hour ago · native · /srv"),
                ("here\\x07 (open)", "idle · 1 hour ago · native"),
                ("elsewhere", "idle · 1 hour ago · native · ~/other +1"),
                ("put away", "idle, archived · 1 hour ago · native"),
            ]
        );
        assert_eq!(items[0].tone, Tone::Warn);
        assert_eq!(items[3].tone, Tone::Dim);
        assert_eq!(items[1].value.title, "here\u{7}");
    }
}
