//! Channels that are their state and little else: how they are made and end, and what a watch tells. Who computes a changeset,
//! runs a terminal's process or watches files acts on them with `step.act`.
//!
//! Promises: what belongs to a session ends with it, whether it is in memory or not.

use wire::state::{AnnotationsState, PlainState};
use wire::{ChannelUri, Object, SessionPart};

use crate::channels::{Channel, PlainChannel};
use crate::io::ReadFailed;
use crate::record::{ChannelId, Record};
use crate::state::Step;

/// A plain channel to be made.
pub(crate) struct NewPlainChannel {
    pub uri: ChannelUri,
    pub state: PlainState,
    /// The session it belongs to, which is in memory; a terminal or watch of a client has none.
    pub session: Option<ChannelUri>,
    /// What only the host knows of it. It is stored, but for a watch.
    pub private: Object,
}

/// Makes a channel. The caller has checked that the URI is free and that it can be written, so this cannot fail.
pub(crate) fn create_channel(step: &mut Step, new: NewPlainChannel) {
    let session = new.session.map(|uri| {
        let id = step.id_of(&uri);
        (uri, id)
    });
    let bound = step.channels().terminal_bound();
    let plain = PlainChannel::new(new.state, session, new.private, bound);
    let id = ChannelId(step.next_seq().0);
    let channel = Channel::plain(id, step.now(), plain);
    step.insert_channel(new.uri.clone(), channel);
    step.write_head(&new.uri);
}

/// Ends a channel that is in memory, and its subscriptions.
pub(crate) fn end_channel(step: &mut Step, uri: &ChannelUri) {
    let (id, at) = (step.id_of(uri), step.now());
    if step.channels().is_stored(uri) {
        step.record(Record::Dispose { channel: id, at });
    }
    step.remove_channel(uri);
    debug_assert!(step.peers().watchers(uri).is_empty(), "nobody watches what is gone");
}

/// Ends what belongs to a session that is disposed of. Its rows go with the session's.
pub(crate) fn end_channels_of(step: &mut Step, session: &ChannelUri) {
    for uri in step.channels().plain_of(session) {
        step.remove_channel(&uri);
    }
    // What is watched but not in memory is known by its name.
    let watched = step
        .peers()
        .watched()
        .filter(|uri| uri.session_part().is_some_and(|(owner, _)| owner == *session));
    for uri in watched.cloned().collect::<Vec<_>>() {
        step.remove_channel(&uri);
    }
}

/// Every session has annotations (G-72): they are made when somebody first asks for them. Whether this is what was asked for.
pub(crate) fn create_annotations(step: &mut Step, uri: &ChannelUri) -> Result<bool, ReadFailed> {
    let Some((session, SessionPart::Annotations)) = uri.session_part() else { return Ok(false) };
    if step.find_session(&session).is_none() {
        return Ok(false);
    }
    if let Some(reason) = step.unwritable() {
        return Err(ReadFailed(reason));
    }
    let new = NewPlainChannel {
        uri: uri.clone(),
        state: AnnotationsState::default().into(),
        session: Some(session),
        private: Object::new(),
    };
    create_channel(step, new);
    Ok(true)
}
