//! Sessions read from a data directory, for verbs that need no host.

use std::path::Path;

use anyhow::{Context, anyhow};
use client::SessionSummary;
use host::journal::{Archive, ArchivedSession};

use crate::session_name::SessionName;
use crate::terminal::escape_line;

/// The session that is named, with the chats that were asked for.
pub(crate) fn find_session(
    data: &Path,
    name: &SessionName,
) -> anyhow::Result<(Archive, ArchivedSession)> {
    if !data.join("journal.sqlite").exists() {
        return Err(anyhow!(
            "there is no SQLite journal in {}; name the data directory with --data. What is in PostgreSQL cannot be read this way",
            data.display()
        ));
    }
    let archive = Archive::open(data)
        .with_context(|| format!("the journal in {} cannot be used", data.display()))?;
    let uri = match name.as_uri() {
        Some(uri) => uri?,
        None => {
            let listed = archive.sessions()?.into_iter().map(SessionSummary::new);
            name.choose(&listed.collect::<Vec<_>>())?
        }
    };
    let session = archive.session(&uri)?.ok_or_else(|| {
        anyhow!(
            "{} holds no session or chat {}; `greenroom sessions` lists those of a running host",
            data.display(),
            escape_line(uri.as_str())
        )
    })?;
    Ok((archive, session))
}
