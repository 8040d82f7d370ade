//! The local host as a whole: the process that holds the data directory, where it listens, how it was started, and what it
//! says of itself.
//!
//! Promises: a host that does not answer delays nobody for longer than `ANSWER_WITHIN`; nothing is changed by looking.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use client::{
    ClientError, Endpoint, EndpointError, HostLocator, Live, Options, SessionSummary, ask_status,
};
use wire::ChannelUri;
use wire::state::status;

use crate::host_process::{Holder, find_holder};
use crate::host_record::HostRecord;
use crate::models::on_host::model_ids;
use crate::target::client_id;

/// How long a host may take to say how it is.
const ANSWER_WITHIN: Duration = Duration::from_secs(8);

/// The host that holds a data directory.
#[derive(Debug)]
pub(crate) struct LocalHost {
    /// As the system names it.
    pub(crate) pid: Option<i32>,
    /// Where it listens; not while it starts or stops, or if it serves standard input and output.
    pub(crate) endpoint: Result<Endpoint, EndpointError>,
    /// How it was started, if it is known.
    pub(crate) record: Option<HostRecord>,
}

impl LocalHost {
    /// `None`: no host holds the directory.
    pub(crate) fn find(data: &Path) -> anyhow::Result<Option<Self>> {
        let pid = match find_holder(data).with_context(|| unreadable(data))? {
            Holder::Nobody => return Ok(None),
            Holder::Process(pid) => Some(pid.as_raw_nonzero().get()),
            Holder::Unnamed => None,
        };
        Ok(Some(Self {
            pid,
            endpoint: Endpoint::find(data),
            record: pid.and_then(|pid| HostRecord::of_process(data, pid)),
        }))
    }

    /// Its address without anything secret.
    pub(crate) fn address(&self) -> Option<&str> {
        self.endpoint.as_ref().ok()?.url.split('?').next()
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.address()?.trim_end_matches('/').rsplit_once(':')?.1.parse().ok()
    }

    /// Asks the host what it is doing.
    pub(crate) async fn ask(&self, data: &Path) -> anyhow::Result<HostReport> {
        let endpoint = self.endpoint.clone()?;
        let asked = async {
            let destination = endpoint.destination(None);
            // Before this client is one of those that are counted.
            let clients = match ask_status(&destination).await {
                Ok(status) => status.clients,
                // One of an earlier version does not know the question.
                Err(ClientError::Refused { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            let locator = HostLocator::in_data_directory(data.to_owned());
            let options = Options { subscriptions: vec![ChannelUri::root()], ..Options::default() };
            let (live, _updates) = Live::connect(locator, &client_id(), options).await?;
            let sessions = live.list_all_sessions().await?;
            let models = model_ids(&live);
            live.close().await;
            anyhow::Ok(HostReport { clients, sessions, models })
        };
        tokio::time::timeout(ANSWER_WITHIN, asked).await.with_context(|| {
            let seconds = ANSWER_WITHIN.as_secs();
            format!("it does not answer within {seconds} s")
        })?
    }
}

fn unreadable(data: &Path) -> String {
    format!("the data directory {} cannot be read; check who owns it", data.display())
}

/// What a host says of itself.
#[derive(Debug)]
pub(crate) struct HostReport {
    /// How many clients are connected, if it says so.
    pub(crate) clients: Option<u64>,
    pub(crate) sessions: Vec<SessionSummary>,
    pub(crate) models: Vec<String>,
}

impl HostReport {
    /// Sessions whose agent is at work and waits for nobody.
    pub(crate) fn working(&self) -> Vec<&SessionSummary> {
        self.in_state(status::IN_PROGRESS)
    }

    /// Sessions that wait for an answer or a consent.
    pub(crate) fn waiting(&self) -> Vec<&SessionSummary> {
        self.in_state(status::INPUT_NEEDED)
    }

    fn in_state(&self, state: u32) -> Vec<&SessionSummary> {
        let is_in = |session: &&SessionSummary| session.status() & status::ACTIVITY_MASK == state;
        self.sessions.iter().filter(is_in).collect()
    }
}
