//! Looks what customizations there are for a session, where waiting for a disk harms nobody.
//!
//! Must not know: what users decided of them.

use kernel::{Input, SurveyedPlace};

use super::{Effects, send};
use crate::customization_entries::customization_entries;

impl Effects {
    /// Answers with what there is, if the session's agent reads it: what another agent reads itself is not ours to list (CU-11).
    pub(crate) fn survey(&self, survey: SurveyedPlace) {
        let SurveyedPlace {
            session,
            provider,
            working_directories,
        } = survey;
        let agent = self.agent(&provider);
        if !agent.is_some_and(|agent| agent.reads_customizations()) {
            return; // there is nothing to be told of such an agent's sessions
        }
        let (discovery, arrivals) = (self.bodies.discovery(), self.arrivals.clone());
        tokio::spawn(async move {
            let look =
                move || customization_entries(&discovery.look(&working_directories).containers);
            match tokio::task::spawn_blocking(look).await {
                Ok(found) => send(&arrivals, Input::Surveyed { session, found }).await,
                Err(error) => tracing::error!(%error, "looking for customizations failed"),
            }
        });
    }
}
