//! A request that its server refuses is sent again with less in it: first without what was likely refused, then as plain
//! text.
//!
//! Promises: at most two more tries, each different from the one before; something is learned only from a try that
//! was answered; one attachment cannot spoil a chat.
//! Must not know: what becomes of the answer.

use std::collections::BTreeSet;

use super::model_view::{HistoryEntry, ModelView, NativeBody};
use super::refusals::{Learned, Refusals};
use crate::provider::{Blame, MediaKind, ModelRequest, ProviderError, ProviderErrorKind};

/// How much less is sent than was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reduction {
    AsMeant,
    WithoutRefused,
    PlainText,
}

/// A request, as far as its server made it smaller.
pub(super) struct Fallback {
    /// What was known to be refused before.
    known: Refusals,
    reduction: Reduction,
}

impl Fallback {
    /// A request as it is meant. It begins with the `entries`.
    pub(super) fn begin(
        view: &ModelView<'_>,
        entries: &[HistoryEntry],
        request: &mut ModelRequest,
    ) -> Self {
        let fallback = Self {
            known: view.refusals().clone(),
            reduction: Reduction::AsMeant,
        };
        fallback.prepare(view, entries, request);
        fallback
    }

    fn prepare(&self, view: &ModelView<'_>, entries: &[HistoryEntry], request: &mut ModelRequest) {
        let has_bodies = !view.natives(entries).is_empty();
        request.reducible = match self.reduction {
            // Without bodies a server that fails has most likely failed, and not refused.
            Reduction::AsMeant => has_bodies,
            Reduction::WithoutRefused => has_bodies || view.has_lists(),
            Reduction::PlainText => false,
        };
        request.strings_only = view.refusals().strings_only;
    }

    /// Makes a request that failed smaller, so that it can be sent again; what is learned if that one is answered. The
    /// error, if nothing is left to do without.
    pub(super) async fn reduce(
        &mut self,
        view: &mut ModelView<'_>,
        (entries, newest): (&[HistoryEntry], usize),
        request: &mut ModelRequest,
        error: ProviderError,
    ) -> Result<Learned, ProviderError> {
        let less = error.blame.as_ref().and_then(|blame| {
            let sent = SentRequest {
                natives: view.natives(entries),
                has_lists: view.has_lists(),
                has_signatures: view.has_signatures(entries),
                newest,
                is_refused: error.kind == ProviderErrorKind::Rejected,
            };
            choose(&self.known, blame, self.reduction, &sent)
        });
        let Some((reduction, refusals, names)) = less else {
            view.set_refusals(self.known.clone());
            return Err(error);
        };
        self.reduction = reduction;
        let learned = refusals.learned_since(&self.known, &names);
        view.set_refusals(refusals);
        request.messages = view.lower_again(entries, newest).await;
        self.prepare(view, entries, request);
        Ok(learned)
    }
}

/// What a refused request held.
struct SentRequest<'a> {
    natives: Vec<NativeBody<'a>>,
    has_lists: bool,
    has_signatures: bool,
    /// Where the message stands that the turn answers.
    newest: usize,
    /// Whether the server said that it does not take it, and not merely failed.
    is_refused: bool,
}

/// What to do without next, and the names of single bodies among it.
fn choose(
    known: &Refusals,
    blame: &Blame,
    reduction: Reduction,
    sent: &SentRequest<'_>,
) -> Option<(Reduction, Refusals, Vec<String>)> {
    let mut refusals = known.clone();
    let has_bodies = !sent.natives.is_empty();
    let plain = |mut refusals: Refusals| {
        refusals.strings_only = true;
        let is_different = has_bodies || sent.has_lists;
        is_different.then_some((Reduction::PlainText, refusals, Vec::new()))
    };
    match (reduction, blame) {
        (Reduction::PlainText, _) => None,
        (Reduction::WithoutRefused, _) | (Reduction::AsMeant, Blame::Lists) => plain(refusals),
        (Reduction::AsMeant, Blame::Signatures) if sent.has_signatures => {
            refusals.signatures = true;
            Some((Reduction::WithoutRefused, refusals, Vec::new()))
        }
        // There is nothing to describe: perhaps it is the form of the texts.
        (Reduction::AsMeant, Blame::Unknown) if !has_bodies && sent.is_refused => plain(refusals),
        (Reduction::AsMeant, _) if !has_bodies => None,
        (Reduction::AsMeant, Blame::Body(kinds)) => {
            let names = describe_bodies(&mut refusals, kinds, sent);
            Some((Reduction::WithoutRefused, refusals, names))
        }
        (Reduction::AsMeant, Blame::Kinds(_) | Blame::Unknown | Blame::Signatures) => {
            let sent = sent.natives.iter().map(|native| native.kind);
            let named = sent.clone().filter(|kind| match blame {
                Blame::Kinds(kinds) => kinds.contains(kind),
                _ => true,
            });
            let before = refusals.kinds.len();
            refusals.kinds.extend(named);
            if refusals.kinds.len() == before {
                refusals.kinds.extend(sent);
            }
            Some((Reduction::WithoutRefused, refusals, Vec::new()))
        }
    }
}

/// Does without bodies of these kinds, or without all; their names.
fn describe_bodies(
    refusals: &mut Refusals,
    kinds: &BTreeSet<MediaKind>,
    sent: &SentRequest<'_>,
) -> Vec<String> {
    let natives = sent.natives.iter();
    let named = natives.clone().filter(|it| kinds.contains(&it.kind));
    let mut blamed: Vec<&NativeBody<'_>> = named.collect();
    if blamed.is_empty() {
        blamed = natives.collect();
    }
    // What was sent before was taken before.
    if blamed.iter().any(|native| native.position == sent.newest) {
        blamed.retain(|native| native.position == sent.newest);
    }
    let names = blamed.iter().map(|native| native.name()).collect();
    for native in blamed {
        refusals.add_body(native.message, native.part);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(blame: &Blame, sent: &SentRequest<'_>) -> Option<Reduction> {
        let known = Refusals::default();
        let chosen = choose(&known, blame, Reduction::AsMeant, sent);
        chosen.map(|(reduction, _, _)| reduction)
    }

    #[test]
    fn a_server_that_merely_fails_teaches_nothing_about_texts() {
        let mut sent = SentRequest {
            natives: Vec::new(),
            has_lists: true,
            has_signatures: true,
            newest: 0,
            is_refused: false,
        };
        assert_eq!(chosen(&Blame::Unknown, &sent), None);
        assert_eq!(
            chosen(&Blame::Lists, &sent),
            Some(Reduction::PlainText),
            "it says so"
        );
        assert_eq!(
            chosen(&Blame::Signatures, &sent),
            Some(Reduction::WithoutRefused)
        );
        sent.is_refused = true;
        assert_eq!(chosen(&Blame::Unknown, &sent), Some(Reduction::PlainText));
        assert_eq!(chosen(&Blame::Body(BTreeSet::new()), &sent), None);
        sent.has_lists = false;
        assert_eq!(chosen(&Blame::Unknown, &sent), None, "it would be the same");
        assert_eq!(chosen(&Blame::Lists, &sent), None, "it would be the same");
    }

    #[test]
    fn bodies_of_the_newest_message_are_blamed_first() {
        let message = agent_api::UserMessage::text("x");
        let native = |kind, position| NativeBody {
            kind,
            message: &message,
            position,
            part: 0,
        };
        let sent = SentRequest {
            natives: vec![
                native(MediaKind::Image, 0),
                native(MediaKind::Document, 2),
                native(MediaKind::Image, 2),
            ],
            has_lists: true,
            has_signatures: false,
            newest: 2,
            is_refused: true,
        };
        let blame = Blame::Body(BTreeSet::from([MediaKind::Image]));
        let known = Refusals::default();
        let (_, _, names) = choose(&known, &blame, Reduction::AsMeant, &sent).unwrap();
        assert_eq!(names.len(), 1);
        let blame = Blame::Kinds(BTreeSet::from([MediaKind::Audio]));
        let (_, refusals, _) = choose(&known, &blame, Reduction::AsMeant, &sent).unwrap();
        assert_eq!(
            refusals.kinds,
            BTreeSet::from([MediaKind::Image, MediaKind::Document]),
            "what is named is not there: all that is"
        );
    }
}
