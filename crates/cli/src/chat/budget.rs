//! `/budget`: what a session may spend on models (G-69).

use client::chat::{OpenChat, SessionBudget};

use crate::dollars::{format_limit, parse_limit};

/// Sets the limit that is typed, or shows the one there is; what to say, or what is wrong.
pub(super) fn apply(chat: &OpenChat, amount: &str) -> Result<String, String> {
    let budget = chat.session_budget();
    if budget == SessionBudget::NotOffered {
        return Err("the agent of this session has no budget".to_owned());
    }
    if amount.trim().is_empty() {
        return Ok(match budget {
            SessionBudget::Usd(usd) => format!(
                "This session may spend {}; /budget DOLLARS changes that, /budget off removes it",
                format_limit(usd)
            ),
            SessionBudget::None | SessionBudget::NotOffered => {
                "This session has no limit of its own; /budget DOLLARS sets one".to_owned()
            }
        });
    }
    let usd = parse_limit(amount)?;
    chat.set_session_budget(usd).map_err(|error| error.to_string())?;
    Ok(if usd > 0.0 {
        format!("This session may spend {}; at the limit it asks", format_limit(usd))
    } else {
        "This session has no limit of its own any more".to_owned()
    })
}
