//! A request that its server refuses is sent again with less in it: first without what was likely refused, then as plain
//! text.
//!
//! Promises: at most two more tries, each different from the one before; something is learned only from a try that
//! was answered; one attachment cannot spoil a chat.
//! Must not know: what becomes of the answer.

use super::model_view::{HistoryEntry, ModelView, Native};
use super::refusals::{Learned, Refusals};
use crate::provider::{Blame, ModelRequest, ProviderError};

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
        request.reducible =
            self.reduction != Reduction::PlainText && view.can_do_with_less(entries);
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
        let blame = error.blame.clone().filter(|_| request.reducible);
        let less = blame.and_then(|blame| {
            let natives = view.natives(entries);
            choose(&self.known, &blame, self.reduction, &natives, newest)
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

/// What to do without next, and the names of single bodies among it.
fn choose(
    known: &Refusals,
    blame: &Blame,
    reduction: Reduction,
    natives: &[Native<'_>],
    newest: usize,
) -> Option<(Reduction, Refusals, Vec<String>)> {
    let mut refusals = known.clone();
    let plain = |mut refusals: Refusals| {
        refusals.strings_only = true;
        Some((Reduction::PlainText, refusals, Vec::new()))
    };
    match (reduction, blame) {
        (Reduction::PlainText, _) => None,
        (Reduction::WithoutRefused, _) | (Reduction::AsMeant, Blame::Lists) => plain(refusals),
        (Reduction::AsMeant, Blame::Signatures) if !known.signatures => {
            refusals.signatures = true;
            Some((Reduction::WithoutRefused, refusals, Vec::new()))
        }
        // There is nothing to describe: perhaps it is the form of the texts.
        (Reduction::AsMeant, Blame::Unknown | Blame::Signatures) if natives.is_empty() => {
            plain(refusals)
        }
        (Reduction::AsMeant, _) if natives.is_empty() => None,
        (Reduction::AsMeant, Blame::Body(kinds)) => {
            let named = natives.iter().filter(|native| kinds.contains(&native.kind));
            let mut blamed: Vec<&Native<'_>> = named.collect();
            if blamed.is_empty() {
                blamed = natives.iter().collect();
            }
            // What was sent before was taken before.
            if blamed.iter().any(|native| native.position == newest) {
                blamed.retain(|native| native.position == newest);
            }
            let names = blamed.iter().map(|native| native.name()).collect();
            for native in blamed {
                refusals.add_body(native.message, native.part);
            }
            Some((Reduction::WithoutRefused, refusals, names))
        }
        (Reduction::AsMeant, Blame::Kinds(_) | Blame::Unknown | Blame::Signatures) => {
            let sent = natives.iter().map(|native| native.kind);
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
