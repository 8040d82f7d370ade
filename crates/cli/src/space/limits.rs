//! `greenroom space limits`: what a space may take.

use host::accounts::SpaceLimitKey;
use serde_json::{Value, json};

use super::DatabaseOptions;
use crate::exit::Exit;
use crate::format::{format_bytes, format_table};
use crate::output::{print, print_json};
use crate::terminal::escape_line;

/// Show or set what a space may take
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom space limits team-a
  greenroom space limits team-a --connections 50 --stored 20GiB
  greenroom space limits team-a --turns none
  greenroom space limits team-a --turns default

What is not set is as the settings of the nodes say: space_connections_max, space_turns_max, space_inputs_per_s, \
space_stored_bytes_max, space_record_bytes_per_s, space_log_days and space_loaded_bytes_max in [limits]. Nodes know a change within half a minute. A client too many is \
refused with 429; a turn too many, or one in a space that is full, ends as an error that can be resumed; messages that come too \
fast, and records above what may be written a second, wait.")]
pub(super) struct SpaceLimitsOptions {
    /// The space
    name: String,
    /// Clients at once: a number, `none` for any number, `default` for what the settings say
    #[arg(long, value_name = "NUMBER", value_parser = parse_count)]
    connections: Option<LimitSetting>,
    /// Turns at once; those of workers do not count
    #[arg(long, value_name = "NUMBER", value_parser = parse_count)]
    turns: Option<LimitSetting>,
    /// Messages a second of all clients together
    #[arg(long, value_name = "NUMBER", value_parser = parse_count)]
    inputs: Option<LimitSetting>,
    /// What its sessions and content may take: 500MB, 20GiB
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    stored: Option<LimitSetting>,
    /// What may be recorded a second: 500KB, 2MiB
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    records: Option<LimitSetting>,
    /// For how many days actions are kept for clients that come back; older ones get a snapshot
    #[arg(long, value_name = "DAYS", value_parser = parse_count)]
    log_days: Option<LimitSetting>,
    /// What its channels may take in memory: 64MiB; counts when the space is loaded next
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    loaded: Option<LimitSetting>,
    #[command(flatten)]
    database: DatabaseOptions,
}

/// What a limit becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LimitSetting {
    /// Not set for the space.
    Default,
    /// Zero is any number.
    Most(u64),
}

fn parse_word(text: &str) -> Option<LimitSetting> {
    match text {
        "default" => Some(LimitSetting::Default),
        "none" => Some(LimitSetting::Most(0)),
        _ => None,
    }
}

fn parse_count(text: &str) -> Result<LimitSetting, String> {
    if let Some(word) = parse_word(text) {
        return Ok(word);
    }
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("{text:?} is no number of at least 1, `none` or `default`")),
        Ok(count) => Ok(LimitSetting::Most(count)),
    }
}

fn parse_size(text: &str) -> Result<LimitSetting, String> {
    if let Some(word) = parse_word(text) {
        return Ok(word);
    }
    let wrong = || format!("{text:?} is no size; write 500MB, 20GiB, `none` or `default`");
    let digits = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit: u64 = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KIB" => 1 << 10,
        "MIB" => 1 << 20,
        "GIB" => 1 << 30,
        "TIB" => 1 << 40,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match number.checked_mul(unit) {
        Some(bytes) if bytes > 0 => Ok(LimitSetting::Most(bytes)),
        Some(_) | None => Err(wrong()),
    }
}

pub(super) async fn run(options: &SpaceLimitsOptions) -> anyhow::Result<Exit> {
    let admin = options.database.connect().await?;
    let name = &options.name;
    for (key, setting) in [
        (SpaceLimitKey::Connections, options.connections),
        (SpaceLimitKey::Turns, options.turns),
        (SpaceLimitKey::InputsPerSecond, options.inputs),
        (SpaceLimitKey::StoredBytes, options.stored),
        (SpaceLimitKey::RecordBytesPerSecond, options.records),
        (SpaceLimitKey::LogDays, options.log_days),
        (SpaceLimitKey::LoadedBytes, options.loaded),
    ] {
        match setting {
            Some(LimitSetting::Default) => admin.set_space_limit(name, key, None).await?,
            Some(LimitSetting::Most(most)) => admin.set_space_limit(name, key, Some(most)).await?,
            None => {}
        }
    }
    let set = admin.space_limits(name).await?;
    let of = |key: SpaceLimitKey| set.iter().find(|(it, _)| *it == key).map(|(_, most)| *most);
    if options.database.json {
        let limits: serde_json::Map<String, Value> =
            SpaceLimitKey::ALL.iter().map(|key| (key.name().to_owned(), json!(of(*key)))).collect();
        print_json(&json!({"name": name, "limits": limits}))?;
        return Ok(Exit::Complete);
    }
    let row = |key: &SpaceLimitKey| {
        let most = match of(*key) {
            None => "as the settings of the nodes say".to_owned(),
            Some(0) => "any number".to_owned(),
            Some(most) => match key {
                SpaceLimitKey::StoredBytes
                | SpaceLimitKey::RecordBytesPerSecond
                | SpaceLimitKey::LoadedBytes => {
                    format!("{most} bytes ({})", format_bytes(most))
                }
                SpaceLimitKey::Connections
                | SpaceLimitKey::Turns
                | SpaceLimitKey::InputsPerSecond => most.to_string(),
                SpaceLimitKey::LogDays => format!("{most} days"),
            },
        };
        [key.name().to_owned(), most]
    };
    let rows: Vec<_> = SpaceLimitKey::ALL.iter().map(row).collect();
    print(&format!("Limits of {}:\n{}", escape_line(name), format_table(&rows)))?;
    Ok(Exit::Complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_sizes_are_read() {
        assert_eq!(parse_count("12"), Ok(LimitSetting::Most(12)));
        assert_eq!(parse_count("none"), Ok(LimitSetting::Most(0)));
        assert_eq!(parse_size("default"), Ok(LimitSetting::Default));
        assert_eq!(parse_size("20GB"), Ok(LimitSetting::Most(20_000_000_000)));
        assert_eq!(parse_size("20GiB"), Ok(LimitSetting::Most(20 << 30)));
        assert_eq!(parse_size("7"), Ok(LimitSetting::Most(7)));
        for text in ["", "0", "-1", "many", "1.5"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
        for text in ["", "GB", "0MB", "1 GB", "99999999999TB", "1é"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
