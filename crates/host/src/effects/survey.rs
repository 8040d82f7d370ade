//! Looks what customizations there are for a session, where waiting for a disk or a client harms nobody.
//!
//! Promises: what an earlier look saw does not follow what a later one saw.
//! Must not know: what users decided of them.

use std::path::{Path, PathBuf};

use kernel::{ChannelId, Input, PluginOffer, SurveyRequest};
use wire::ChannelUri;

use super::{Effects, send};
use crate::client_plugins::{
    ClientAsker, PluginCopy, PluginFile, UnreadPlugin, copy_directory, copy_files, read_plugin,
    remove_copies,
};
use crate::customization_entries::{UsedEntries, customization_entries, used_entries};
use crate::task;

impl Effects {
    /// Answers with what there is, if the session's agent uses it: what another agent reads itself is not ours to list (CU-11).
    pub(crate) fn survey(&self, survey: SurveyRequest) {
        let SurveyRequest { session, session_id, provider, working_directories, plugins, said_by } =
            survey;
        let Some(agent) = self.agent(&provider) else {
            return; // it is gone, and a turn says so
        };
        let custom_agents = agent.custom_agents(session.as_str());
        let uses_agents = custom_agents.as_ref().is_none_or(|names| !names.is_empty());
        if !agent.takes_servers() && !uses_agents {
            return self.survey_nothing(session, session_id);
        }
        let used = UsedEntries {
            servers: agent.takes_servers(),
            custom_agents: custom_agents.unwrap_or_default(),
        };
        self.take_plugins(&session, session_id, plugins, said_by.as_deref());
        let (discovery, arrivals) = (self.bodies.discovery(), self.arrivals.clone());
        let known = self.bodies.plugins().clone();
        let look = known.begin_look(&session);
        let reads_all = agent.reads_customizations();
        task::spawn(async move {
            let (place, brought) = (session.clone(), known.clone());
            let looking = move || {
                let mut found =
                    discovery.look(&working_directories, &brought.searched_plugins(&place));
                let mut entries = if reads_all {
                    let missing = discovery.find_missing_writable(&working_directories);
                    found.containers.extend(missing);
                    customization_entries(&found.containers)
                } else {
                    used_entries(&found.containers, &used)
                };
                entries.extend(brought.unread_entries(&place));
                entries
            };
            let found = task::spawn_blocking(looking).await;
            if !known.end_look(&session, look) {
                return; // somebody looks already at what changed since
            }
            match found {
                Ok(found) => send(&arrivals, Input::Surveyed { session, found }).await,
                Err(error) => tracing::error!(%error, "looking for customizations failed"),
            }
        });
    }

    /// The agent uses nothing of what there is. It may have done so before: what was listed then goes, and clients' plugins with it.
    fn survey_nothing(&self, session: ChannelUri, session_id: ChannelId) {
        self.take_plugins(&session, session_id, Vec::new(), None);
        let (known, arrivals) = (self.bodies.plugins().clone(), self.arrivals.clone());
        let look = known.begin_look(&session);
        task::spawn(async move {
            if !known.end_look(&session, look) {
                return; // somebody looks already at what changed since
            }
            let found = Vec::new();
            send(&arrivals, Input::Surveyed { session, found }).await;
        });
    }

    /// Takes over which plugins clients have now; what is new of them is read.
    fn take_plugins(
        &self,
        session: &ChannelUri,
        session_id: ChannelId,
        offers: Vec<PluginOffer>,
        said_by: Option<&str>,
    ) {
        let change = self.bodies.plugins().offer(session, offers, said_by);
        remove_in_background(change.unused);
        for (number, offer) in change.unread {
            let (asker, arrivals) = (self.tools().asker.clone(), self.arrivals.clone());
            let (plugins, session) = (self.bodies.plugins().clone(), session.clone());
            let staging = self.tools().services.staging.as_deref();
            let directory = staging.map(|staging| copy_directory(staging, session_id, number));
            task::spawn(async move {
                let Some(permit) = plugins.begin_read(&session, number).await else {
                    return; // its client left, or offers another one, while it waited
                };
                let read = loop {
                    match read_and_copy(&asker, &offer, directory.as_deref()).await {
                        Err(UnreadPlugin::Away) if plugins.note_away(&session, number) => {}
                        // The kernel looks again by itself when the client is back.
                        Err(UnreadPlugin::Away) => return,
                        read => break read,
                    }
                };
                drop(permit);
                let unused = plugins.finish(&session, number, read);
                remove_in_background(unused.into_iter().collect());
                send(&arrivals, Input::PluginsRead { session }).await;
            });
        }
    }

    /// A session is gone, and with it what clients brought along.
    pub(super) fn forget_plugins(&self, session: &ChannelUri) {
        remove_in_background(self.bodies.plugins().forget(session));
    }
}

async fn read_and_copy(
    asker: &ClientAsker,
    offer: &PluginOffer,
    directory: Option<&Path>,
) -> Result<PluginCopy, UnreadPlugin> {
    let Some(directory) = directory else {
        return Err(UnreadPlugin::Failed("this host keeps no files".to_owned()));
    };
    let files = read_plugin(asker, offer).await?;
    copy(directory.to_owned(), files).await
}

async fn copy(directory: PathBuf, files: Vec<PluginFile>) -> Result<PluginCopy, UnreadPlugin> {
    let copying = task::spawn_blocking({
        let directory = directory.clone();
        move || copy_files(directory, files)
    });
    match copying.await {
        Ok(Ok(copy)) => Ok(copy),
        Ok(Err(error)) => {
            remove_in_background(vec![directory]);
            Err(UnreadPlugin::Failed(format!("it could not be stored: {error}")))
        }
        Err(died) => std::panic::resume_unwind(died.into_panic()),
    }
}

fn remove_in_background(directories: Vec<PathBuf>) {
    if !directories.is_empty() {
        task::spawn_blocking(move || remove_copies(&directories));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agents::scripted::Locale;
    use agents::{Script, ScriptedAgent};

    use super::super::tests::TestHost;
    use super::*;
    use crate::kernel_queue::QueuedInput;

    #[tokio::test]
    async fn cu_9_an_agent_that_uses_nothing_lists_nothing_any_more() {
        let script = Script::parse("{\"scenes\": []}").unwrap();
        let agent = ScriptedAgent::with_locale(script, Locale::English);
        let mut host = TestHost::with_agent(Arc::new(agent));
        let asked = ChannelUri::parse("ahp-session:/s").unwrap();
        host.effects.survey(SurveyRequest {
            session: asked.clone(),
            session_id: ChannelId(1),
            provider: "scripted".to_owned(),
            working_directories: Vec::new(),
            plugins: Vec::new(),
            said_by: None,
        });
        let told = host.arrivals.recv().await;
        let Some(Input::Surveyed { session, found }) = told.and_then(QueuedInput::into_input)
        else {
            panic!("what is listed is answered");
        };
        assert_eq!((session, found), (asked, Vec::new()));
    }
}
