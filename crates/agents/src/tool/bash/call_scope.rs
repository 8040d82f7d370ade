//! What a call knows of itself while it is carried out: its mark, and who shows the terminals that it opens.

use agent_api::TerminalOffer;
use terminals::{Mark, new_mark};
use tokio::sync::{mpsc, oneshot};

/// Asks for a terminal to be shown; answered with the URI of its channel, if it is.
pub(crate) struct ShowRequest {
    /// Without the number of the call.
    pub(crate) offer: TerminalOffer,
    pub(crate) shown: oneshot::Sender<Option<String>>,
}

/// What a call knows of itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallScope {
    /// What it starts can be found by who knows it; empty: it has none.
    pub(crate) mark: String,
    /// Absent where nobody shows terminals: then commands run behind a pipe.
    pub(crate) show: Option<mpsc::Sender<ShowRequest>>,
}

tokio::task_local! {
    static SCOPE: CallScope;
}

/// Carries out a call.
pub(crate) async fn in_scope<F: Future>(scope: CallScope, call: F) -> F::Output {
    SCOPE.scope(scope, call).await
}

/// The mark of the call, if it has one.
pub(super) fn current_mark() -> Mark {
    let given = SCOPE.try_with(|scope| scope.mark.clone()).unwrap_or_default();
    if given.is_empty() { Mark::named(new_mark()) } else { Mark::named(given) }
}

/// Who shows the call's terminals.
pub(super) fn current_terminal_viewer() -> Option<mpsc::Sender<ShowRequest>> {
    SCOPE.try_with(|scope| scope.show.clone()).ok().flatten()
}
