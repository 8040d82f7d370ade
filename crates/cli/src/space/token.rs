//! Tokens of people: made once, shown once, revoked by their id.

use clap::ValueEnum;
use host::accounts::{NewToken, Role};
use serde_json::json;
use wire::Timestamp;

use super::DatabaseOptions;
use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::terminal::escape_line;

/// A hundred years: more is a mistake.
const LIFETIME_SECONDS_MAX: u64 = 36_525 * 86_400;

/// Make a token for somebody; it is shown once
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom space token team-a --for ann --role owner
  greenroom space token team-a --for dashboard --role viewer --expires 90d

Roles: a viewer reads; a member takes part in every session; an owner changes the settings of the space too.

To use the token in a terminal, on another machine than the node:
  ssh -N -L 4790:127.0.0.1:4790 you@node
  greenroom chat --host ws://127.0.0.1:4790/ --token-file FILE

The variable GREENROOM_TOKEN works too. greenroom's own commands speak no TLS, so ssh forwards a port; other AHP clients may show the \
token to wss://HOST/.")]
pub(super) struct IssueOptions {
    /// The space it is for
    name: String,
    /// Whom it is for: a person, or a program
    #[arg(long = "for", value_name = "WHO")]
    principal: String,
    /// What they may do
    #[arg(long, value_enum)]
    role: RoleChoice,
    /// When it expires: 30m, 12h, 90d, 4w [default: never]
    #[arg(long, value_name = "TIME", value_parser = parse_lifetime)]
    expires: Option<u64>,
    #[command(flatten)]
    database: DatabaseOptions,
}

/// Revoke a token; its connections close within seconds
#[derive(Debug, clap::Args)]
pub(super) struct RevokeTokenOptions {
    /// The id of the token, as `greenroom space list NAME` shows it, or the whole token
    id: String,
    #[command(flatten)]
    database: DatabaseOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RoleChoice {
    Owner,
    Member,
    Viewer,
}

impl From<RoleChoice> for Role {
    fn from(choice: RoleChoice) -> Self {
        match choice {
            RoleChoice::Owner => Self::Owner,
            RoleChoice::Member => Self::Member,
            RoleChoice::Viewer => Self::Viewer,
        }
    }
}

/// Seconds, of a number with its unit.
fn parse_lifetime(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no time; write 30m, 12h, 90d or 4w");
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 =
        text.get(..text.len() - 1).unwrap_or_default().parse().map_err(|_| wrong())?;
    match number.checked_mul(seconds) {
        Some(seconds) if (1..=LIFETIME_SECONDS_MAX).contains(&seconds) => Ok(seconds),
        Some(_) | None => Err(wrong()),
    }
}

pub(super) async fn issue(options: &IssueOptions) -> anyhow::Result<Exit> {
    let admin = options.database.connect().await?;
    let new_token = NewToken {
        space: options.name.clone(),
        principal: options.principal.clone(),
        role: options.role.into(),
        seconds: options.expires,
    };
    let issued = admin.issue_token(&new_token).await?;
    let expires = issued.expires.map(date_of);
    let token = issued.token.reveal();
    if options.database.json {
        print_json(&json!({
            "id": issued.token.id(), "token": token, "space": new_token.space, "principal": new_token.principal,
            "role": new_token.role.name(), "expiresAt": expires,
        }))?;
        return Ok(Exit::Complete);
    }
    // The token alone on standard output, so that it can go into a file.
    print(&format!("{token}\n"))?;
    let until = expires.map_or_else(String::new, |at| format!(", until {at}"));
    eprintln!(
        "This is the only time it is shown. It makes {} {} {} of {}{until}. To revoke it: greenroom space revoke {}",
        escape_line(&new_token.principal),
        match new_token.role {
            Role::Owner => "an",
            Role::Member | Role::Viewer => "a",
        },
        new_token.role.name(),
        escape_line(&new_token.space),
        issued.token.id()
    );
    Ok(Exit::Complete)
}

pub(super) async fn revoke(options: &RevokeTokenOptions) -> anyhow::Result<Exit> {
    let admin = options.database.connect().await?;
    // Whoever found a token somewhere has all of it.
    let id = options.id.strip_prefix("grt_").unwrap_or(&options.id);
    let id = id.split_once('_').map_or(id, |(id, _secret)| id);
    let (space, principal) = admin.revoke(id).await?;
    if options.database.json {
        print_json(&json!({"id": id, "space": space, "principal": principal}))?;
    } else {
        print(&format!(
            "The token {id} of {} for {} is revoked.\n",
            escape_line(&principal),
            escape_line(&space)
        ))?;
    }
    Ok(Exit::Complete)
}

/// A moment as people and programs read it.
pub(super) fn date_of(seconds: i64) -> String {
    Timestamp(seconds.saturating_mul(1_000)).to_rfc3339()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_have_a_unit() {
        for (text, seconds) in
            [("30m", 1_800), ("12h", 43_200), ("90d", 7_776_000), ("4w", 2_419_200)]
        {
            assert_eq!(parse_lifetime(text), Ok(seconds));
        }
        for text in ["", "d", "90", "-1d", "0d", "1.5h", "90 d", "9999999999w", "1é"] {
            assert!(parse_lifetime(text).is_err(), "{text}");
        }
    }
}
