//! Which session a message goes to: options that verbs share.
//!
//! Must not know: what is done in it.

use std::path::PathBuf;

use anyhow::Context;
use client::Live;
use client::chat::{ChatSelector, WorktreeBase};

use crate::models::on_host::{ModelChoice, NATIVE, find_of_agent, find_or_add, models_of};
use crate::session_name::SessionName;
use crate::target::HostOptions;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct SessionChoice {
    /// Continue this session (its URI, a part of its id, or its title), or one chat of it; without it a new session is created
    #[arg(long, value_name = "SESSION")]
    session: Option<SessionName>,
    /// Continue the session that was used last in the current directory
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["session", "agent"])]
    latest: bool,
    /// Agent of the new session, as `greenroom agents` lists it [default: the first one the host offers]
    #[arg(long, value_name = "ID", conflicts_with = "session")]
    agent: Option<String>,
    /// Talk to this model: the id of one that the host has, or [WIRE+]BASE_URL#MODEL of any server, which the host then
    /// has until it stops; WIRE is chat (the default), anthropic, responses or gemini. With --agent: a model of that agent
    #[arg(long, value_name = "ID|URL#MODEL")]
    model: Option<ModelChoice>,
    /// Work in a git worktree with a branch of its own, made from BRANCH or from what is checked out. `/changes merge` brings the
    /// work back
    #[arg(
        long,
        value_name = "BRANCH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with_all = ["session", "latest"]
    )]
    worktree: Option<String>,
}

impl SessionChoice {
    /// The worktree that a new session is to have.
    pub(crate) fn worktree(&self) -> Option<WorktreeBase> {
        let branch = self.worktree.as_ref()?;
        Some(if branch.is_empty() {
            WorktreeBase::CheckedOut
        } else {
            WorktreeBase::Branch(branch.clone())
        })
    }

    /// Whether a session is wanted that is not there yet, with whichever agent comes first.
    pub(crate) fn is_new(&self) -> bool {
        self.session.is_none() && !self.latest && self.agent.is_none()
    }

    pub(crate) async fn selector(
        &self,
        live: &Live,
        directory: Option<PathBuf>,
    ) -> anyhow::Result<ChatSelector> {
        Ok(match (&self.session, self.latest) {
            (Some(name), _) => ChatSelector::Channel(name.find(live).await?),
            (None, true) => ChatSelector::LatestSession { directory },
            (None, false) => ChatSelector::NewSession {
                agent: match (&self.agent, &self.model) {
                    (None, Some(_)) => Some(NATIVE.to_owned()),
                    (agent, _) => agent.clone(),
                },
            },
        })
    }

    /// The id of the model that is wanted; the host has it then, and the user knows what there is to know of it.
    pub(crate) async fn find_model(&self, live: &Live) -> anyhow::Result<Option<String>> {
        let Some(choice) = &self.model else { return Ok(None) };
        if let Some(agent) = self.agent.as_deref().filter(|agent| *agent != NATIVE) {
            return find_of_agent(&models_of(live, agent), agent, choice).map(Some);
        }
        let found = find_or_add(live, choice).await?;
        if let Some(note) = found.note {
            eprintln!("{note}");
        }
        Ok(Some(found.id))
    }

    /// Where the agent of a new session works, and whose latest session is continued. None on another machine, whose
    /// directories are not ours.
    pub(crate) fn directory(&self, host: &HostOptions) -> anyhow::Result<Option<PathBuf>> {
        if host.named_host().is_some() {
            return Ok(None);
        }
        match std::env::current_dir() {
            Ok(directory) => Ok(Some(directory)),
            // A session that is named has a directory of its own.
            Err(_) if self.session.is_some() => Ok(None),
            Err(error) => Err(error).context(
                "the current directory cannot be used: go to one that is there and that you may enter",
            ),
        }
    }
}
