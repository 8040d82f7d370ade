//! What a turn used, in one line: tokens, cost, time; and what a chat used, in a few.
//!
//! Promises: what is not known is left out. Must not know: terminals.

use client::chat::{ChatUsage, Cost, TokenCounts};
use serde_json::Value;

use super::line::{Line, Style};
use crate::format::format_duration;

/// A turn without counted tokens is worth a line from this length on.
const LONG_MS: u64 = 10_000;

/// The line, if there is something to say.
pub(crate) fn usage_line(usage: Option<&Value>, duration_ms: Option<u64>) -> Option<Line> {
    // The sums over the turn; agents that do not count them report the last call.
    let sums = usage.map(|usage| usage["_meta"].get("turn").unwrap_or(usage));
    let count = |field: &str| sums.and_then(|sums| sums[field].as_u64());
    let mut parts = token_parts(TokenCounts {
        input: count("inputTokens"),
        cached: count("cacheReadTokens"),
        output: count("outputTokens"),
    });
    parts.extend(usage.and_then(|usage| cost(&usage["_meta"]["cost"])));
    let is_worth_it = !parts.is_empty() || duration_ms.is_some_and(|ms| ms >= LONG_MS);
    let seconds = duration_ms.and_then(|ms| i64::try_from(ms / 1_000).ok());
    parts.extend(seconds.filter(|seconds| *seconds > 0).map(format_duration));
    is_worth_it.then(|| Line::new(Style::Dim, parts.join(" · ")))
}

/// `/usage`: the window, the last turn, and the whole chat. `window` is what the model of the next message can look at.
pub(crate) fn usage_rows(usage: &ChatUsage, window: Option<u64>) -> Vec<Line> {
    let row = |name: &str, value: String| {
        Line::new(Style::Bold, format!("  {name:12}")).then(Style::Plain, value)
    };
    let mut rows = Vec::new();
    if let Some(used) = usage.context_used {
        let size = usage.context_size.or(window);
        rows.push(row(
            "Context",
            match (size, usage.context_percent(window)) {
                (Some(size), Some(percent)) => {
                    format!("{} of {} tokens ({percent}%)", tokens(used), tokens(size))
                }
                _ => format!("{} tokens", tokens(used)),
            },
        ));
    }
    if let Some(turn) = &usage.last_turn {
        rows.push(row("Last turn", used_text(turn.tokens, turn.cost.as_ref())));
        let mut chat = used_text(usage.tokens, usage.cost.as_ref());
        if usage.is_partial {
            chat.push_str(" (without earlier turns: PageUp loads them)");
        }
        rows.push(row("This chat", chat));
    }
    if rows.is_empty() {
        rows.push(Line::new(Style::Dim, "  Unknown so far: the agent has not reported its usage"));
    }
    rows
}

fn used_text(counts: TokenCounts, cost: Option<&Cost>) -> String {
    let mut parts = token_parts(counts);
    parts.extend(cost.map(|cost| amount_text(cost.amount, &cost.currency)));
    parts.join(" · ")
}

fn token_parts(counts: TokenCounts) -> Vec<String> {
    let input = counts.input.map(|input| match counts.cached {
        Some(cached @ 1..) => format!("{} in ({} cached)", tokens(input), tokens(cached)),
        _ => format!("{} in", tokens(input)),
    });
    let output = counts.output.map(|output| format!("{} out", tokens(output)));
    input.into_iter().chain(output).collect()
}

fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{:.1}k", count as f64 / 1e3),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

fn cost(cost: &Value) -> Option<String> {
    let amount = cost["amount"].as_f64()?;
    Some(amount_text(amount, cost["currency"].as_str().unwrap_or("USD")))
}

fn amount_text(amount: f64, currency: &str) -> String {
    match currency {
        "USD" => format!("${amount:.4}"),
        currency => format!("{amount:.4} {currency}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(usage: Value, duration_ms: u64) -> String {
        let line = usage_line(Some(&usage).filter(|usage| !usage.is_null()), Some(duration_ms));
        line.map_or(String::new(), |line| line.text())
    }

    #[test]
    fn the_window_the_turn_and_the_chat_are_told_apart() {
        let rows = |usage: &ChatUsage, window| {
            let rows = usage_rows(usage, window).into_iter();
            rows.map(|line| line.text()).collect::<Vec<_>>().join("\n")
        };
        let counts = |input, output| TokenCounts {
            input: Some(input),
            cached: Some(input / 2),
            output: Some(output),
        };
        let cost = |amount| Some(Cost { amount, currency: "USD".to_owned(), is_partial: false });
        let mut usage = ChatUsage {
            context_used: Some(12_400),
            context_size: None,
            tokens: counts(80_000, 3_000),
            cost: cost(0.5),
            last_turn: Some(client::chat::TurnTotals {
                tokens: counts(20_000, 1_100),
                cost: cost(0.031),
            }),
            is_partial: false,
        };
        assert_eq!(
            rows(&usage, Some(128_000)),
            "  Context     12.4k of 128.0k tokens (10%)\n\
             \x20 Last turn   20.0k in (10.0k cached) · 1.1k out · $0.0310\n\
             \x20 This chat   80.0k in (40.0k cached) · 3.0k out · $0.5000"
        );
        usage.is_partial = true;
        assert!(rows(&usage, None).starts_with("  Context     12.4k tokens\n"));
        assert!(rows(&usage, None).contains("without earlier turns"));
        assert!(rows(&ChatUsage::default(), None).contains("Unknown so far"));
    }

    #[test]
    fn what_is_known_is_said() {
        let sums = json!({"inputTokens": 12_400, "cacheReadTokens": 9_000, "outputTokens": 1_100});
        let usage = json!({"inputTokens": 7, "_meta": {"turn": sums, "cost": {"amount": 0.031, "currency": "USD"}}});
        assert_eq!(line(usage, 12_345), "12.4k in (9.0k cached) · 1.1k out · $0.0310 · 12 s");
        let plain = json!({"inputTokens": 700, "outputTokens": 5});
        assert_eq!(line(plain, 900), "700 in · 5 out");
        assert_eq!(line(Value::Null, 9_999), "");
        assert_eq!(line(Value::Null, 75_000), "1 min");
        let odd =
            json!({"outputTokens": 3, "_meta": {"cost": {"amount": 1, "currency": "E\u{1b}UR"}}});
        assert_eq!(line(odd, 0), "3 out · 1.0000 E\\x1bUR");
    }
}
