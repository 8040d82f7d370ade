//! Sessions read from a data directory, for verbs that need no host.

use std::path::Path;

use anyhow::{Context, anyhow};
use host::journal::{Archive, ArchivedSession};
use wire::ChannelUri;

use crate::terminal::escape_line;

/// The session that a URI names, with the chats that were asked for.
pub(crate) fn find_session(
    data: &Path,
    uri: &ChannelUri,
) -> anyhow::Result<(Archive, ArchivedSession)> {
    if !data.join("journal.sqlite").exists() {
        return Err(anyhow!(
            "there is no journal in {}; name the data directory with --data",
            data.display()
        ));
    }
    let archive = Archive::open(data)
        .with_context(|| format!("the journal in {} cannot be used", data.display()))?;
    let session = archive.session(uri)?.ok_or_else(|| {
        anyhow!(
            "{} holds no session or chat {}; `greenroom sessions` lists those of a running host",
            data.display(),
            escape_line(uri.as_str())
        )
    })?;
    Ok((archive, session))
}
