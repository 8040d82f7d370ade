//! The customizations of a session (H-300 to H-304, CU-1 to CU-6): what the host finds is published with what users decided
//! of it, and what they decide is remembered where they want it: for the session, for its directory, for all.
//!
//! The entries are made by the host; of their fields this directory knows `id`, `type`, `children`, `enabled` and `enablement`.

mod decision;
mod publish;
mod survey;
mod toggle;

pub(crate) use decision::{entries, keep_wider_decisions, named_agent, switched_off};
pub(crate) use publish::{check_mcp_request, publish, publish_servers};
pub(crate) use survey::{
    survey, survey_changed, survey_plugins, survey_plugins_of, survey_sessions_of,
};
pub(crate) use toggle::{check_toggled, toggle};
