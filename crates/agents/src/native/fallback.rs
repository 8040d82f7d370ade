//! A request that its server refuses is sent again with less in it: first without what was likely refused, then with
//! nothing that a server could refuse.
//!
//! Promises: at most two more tries, and one without asking for what the model thinks, each different from the one before; something is learned only from a try that
//! was answered, and nothing of which that try says nothing; one attachment cannot spoil a chat.
//! Must not know: what becomes of the answer.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::model_view::{HistoryEntry, ModelView, NativeBody};
use super::refusals::{LearnedRefusal, Refusals};
use crate::provider::{MediaKind, ModelRequest, ProviderError, ProviderErrorKind, RefusalCause};

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

/// What the messages of a request were made from.
pub(super) struct SentEntries<'a> {
    pub entries: &'a [HistoryEntry],
    /// Where the message stands that the turn answers.
    pub newest: usize,
    /// What stands before this was taken before.
    pub answered: usize,
}

impl Fallback {
    /// A request as it is meant. It begins with the `entries`.
    pub(super) fn begin(
        view: &ModelView<'_>,
        entries: &[HistoryEntry],
        request: &mut ModelRequest,
    ) -> Self {
        let fallback = Self { known: view.refusals().clone(), reduction: Reduction::AsMeant };
        fallback.prepare(view, entries, request);
        fallback
    }

    fn prepare(&self, view: &ModelView<'_>, entries: &[HistoryEntry], request: &mut ModelRequest) {
        let has_bodies = !view.natives(entries).is_empty();
        request.reducible = match self.reduction {
            // Without bodies a server that fails has most likely failed, and not refused.
            Reduction::AsMeant => has_bodies,
            Reduction::WithoutRefused => {
                has_bodies || view.has_lists() || view.has_signatures(entries)
            }
            Reduction::PlainText => false,
        };
        request.strings_only = view.refusals().strings_only;
        request.blank_reasoning = view.refusals().blank_reasoning;
        if view.refusals().hides_thoughts {
            request.hide_thoughts();
        }
    }

    /// Makes a request that failed smaller, so that it can be sent again; what is learned if that one is answered. The
    /// error, if nothing is left to do without.
    pub(super) async fn reduce(
        &mut self,
        view: &mut ModelView<'_>,
        sent: &SentEntries<'_>,
        request: &mut ModelRequest,
        error: ProviderError,
    ) -> Result<LearnedRefusal, ProviderError> {
        let entries = sent.entries;
        let less = error.blame.as_ref().and_then(|blame| {
            let sent = SentRequest {
                natives: view.natives(entries),
                has_lists: view.has_lists(),
                has_signatures: view.has_signatures(entries),
                lacks_signatures: view.refusals().signatures,
                shows_thoughts: request.shows_thoughts(),
                without: view.refusals(),
                answered: sent.answered,
                is_refused: error.kind == ProviderErrorKind::Rejected,
            };
            choose(&self.known, blame, self.reduction, &sent)
        });
        let Some(less) = less else {
            view.set_refusals(self.known.clone());
            return Err(error);
        };
        self.reduction = less.reduction;
        let learned = less.learned.learned_since(&self.known, &less.names);
        view.set_refusals(less.without);
        request.messages = view.lower_again(entries, sent.newest).await;
        self.prepare(view, entries, request);
        Ok(learned)
    }
}

/// What a refused request held.
struct SentRequest<'a> {
    natives: Vec<NativeBody<'a>>,
    has_lists: bool,
    has_signatures: bool,
    /// Whether it was already sent without them.
    lacks_signatures: bool,
    /// Whether it asked to be shown what the model thinks.
    shows_thoughts: bool,
    /// What else it did without.
    without: &'a Refusals,
    /// What stands before this position was taken before.
    answered: usize,
    /// Whether the server said that it does not take it, and not merely failed.
    is_refused: bool,
}

/// What to do without next.
#[derive(Debug)]
struct NextReduction {
    reduction: Reduction,
    /// What the next try does without.
    without: Refusals,
    /// What of it is known to be refused if that try is answered.
    learned: Refusals,
    /// The names of single bodies among it.
    names: Vec<String>,
}

impl NextReduction {
    fn without(refusals: Refusals, names: Vec<String>) -> Self {
        Self {
            reduction: Reduction::WithoutRefused,
            learned: refusals.clone(),
            without: refusals,
            names,
        }
    }
}

fn choose(
    known: &Refusals,
    blame: &RefusalCause,
    reduction: Reduction,
    sent: &SentRequest<'_>,
) -> Option<NextReduction> {
    let mut refusals = known.clone();
    refusals.hides_thoughts |= sent.without.hides_thoughts;
    let has_bodies = !sent.natives.is_empty();
    match (reduction, blame) {
        (_, RefusalCause::ShownThoughts) => choose_hidden_thoughts(reduction, sent),
        (Reduction::PlainText, _) => None,
        (_, RefusalCause::ReasoningMissing) => choose_blank_reasoning(reduction, sent),
        (Reduction::WithoutRefused, _) | (Reduction::AsMeant, RefusalCause::Lists) => {
            choose_plain(known, blame, sent)
        }
        // What is not taken may be the empty thoughts that it once wanted.
        (Reduction::AsMeant, RefusalCause::Signatures)
            if sent.has_signatures || sent.without.blank_reasoning =>
        {
            refusals.signatures |= sent.has_signatures;
            refusals.blank_reasoning = false;
            Some(NextReduction::without(refusals, Vec::new()))
        }
        // Nothing is named, and there is nothing to describe: perhaps it is what the server itself had added.
        (Reduction::AsMeant, RefusalCause::Unknown)
            if !has_bodies && sent.is_refused && sent.has_signatures =>
        {
            refusals.signatures = true;
            Some(NextReduction::without(refusals, Vec::new()))
        }
        // Perhaps it is the form of the texts.
        (Reduction::AsMeant, RefusalCause::Unknown) if !has_bodies && sent.is_refused => {
            choose_plain(known, blame, sent)
        }
        (Reduction::AsMeant, _) if !has_bodies => None,
        (Reduction::AsMeant, RefusalCause::Body(kinds)) => {
            let names = describe_bodies(&mut refusals, kinds, sent);
            Some(NextReduction::without(refusals, names))
        }
        (Reduction::AsMeant, RefusalCause::TooLong) => {
            let names = describe_bodies(&mut refusals, &BTreeSet::new(), sent);
            Some(NextReduction::without(refusals, names))
        }
        (
            Reduction::AsMeant,
            RefusalCause::Kinds(_) | RefusalCause::Unknown | RefusalCause::Signatures,
        ) => {
            let sent = sent.natives.iter().map(|native| native.kind);
            let named = sent.clone().filter(|kind| match blame {
                RefusalCause::Kinds(kinds) => kinds.contains(kind),
                _ => true,
            });
            let before = refusals.kinds.len();
            refusals.kinds.extend(named);
            if refusals.kinds.len() == before {
                refusals.kinds.extend(sent);
            }
            Some(NextReduction::without(refusals, Vec::new()))
        }
    }
}

/// Thoughts are wanted that nobody has: empty ones do. Whatever else the request did without stays out.
fn choose_blank_reasoning(reduction: Reduction, sent: &SentRequest<'_>) -> Option<NextReduction> {
    if sent.without.blank_reasoning {
        return None; // it would be the same
    }
    let mut refusals = sent.without.clone();
    refusals.blank_reasoning = true;
    Some(NextReduction {
        reduction: match reduction {
            Reduction::AsMeant => Reduction::WithoutRefused,
            Reduction::WithoutRefused | Reduction::PlainText => Reduction::PlainText,
        },
        ..NextReduction::without(refusals, Vec::new())
    })
}

/// Thoughts are not shown to this account: they are not asked for. Whatever else the request did without stays out, and as much can
/// be left out after it as before: this is no part of the conversation.
fn choose_hidden_thoughts(reduction: Reduction, sent: &SentRequest<'_>) -> Option<NextReduction> {
    if !sent.shows_thoughts {
        return None; // it would be the same
    }
    let mut refusals = sent.without.clone();
    refusals.hides_thoughts = true;
    Some(NextReduction { reduction, ..NextReduction::without(refusals, Vec::new()) })
}

/// Nothing that could be refused: neither bodies, nor lists, nor what the server had added. Empty thoughts stay if the server wants
/// them: it may have said so of this very request.
fn choose_plain(
    known: &Refusals,
    blame: &RefusalCause,
    sent: &SentRequest<'_>,
) -> Option<NextReduction> {
    let has_bodies = !sent.natives.is_empty();
    let has_blanks = sent.without.blank_reasoning;
    // What was wanted in an earlier turn may not be taken any more.
    let drops_blanks = has_blanks && known.blank_reasoning && *blame == RefusalCause::Signatures;
    if !has_bodies && !sent.has_lists && !sent.has_signatures && !drops_blanks {
        return None; // it would be the same
    }
    let mut without = known.clone();
    without.blank_reasoning = has_blanks && !drops_blanks;
    without.hides_thoughts = sent.without.hides_thoughts;
    without.strings_only = true;
    without.signatures |= sent.has_signatures || sent.lacks_signatures;
    let mut learned = without.clone();
    // The bodies were gone before, and that did not help: if this does, it was not the bodies.
    learned.strings_only = known.strings_only || has_bodies || sent.has_lists;
    Some(NextReduction { reduction: Reduction::PlainText, without, learned, names: Vec::new() })
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
    // What was taken before is not what is refused now.
    let is_new = |native: &&NativeBody<'_>| native.position >= sent.answered;
    if blamed.iter().any(is_new) {
        blamed.retain(is_new);
    }
    let names = blamed.iter().map(|native| native.name()).collect();
    for native in blamed {
        refusals.add_body(native.message, native.part);
    }
    names
}
