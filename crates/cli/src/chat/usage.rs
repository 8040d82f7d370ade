//! What a turn used, in one line: tokens, cost, time.
//!
//! Promises: what is not known is left out. Must not know: terminals.

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
    let mut parts = Vec::new();
    match (count("inputTokens"), count("cacheReadTokens")) {
        (Some(input), Some(cached @ 1..)) => {
            parts.push(format!("{} in ({} cached)", tokens(input), tokens(cached)));
        }
        (Some(input), _) => parts.push(format!("{} in", tokens(input))),
        (None, _) => {}
    }
    parts.extend(count("outputTokens").map(|output| format!("{} out", tokens(output))));
    parts.extend(usage.and_then(|usage| cost(&usage["_meta"]["cost"])));
    let is_worth_it = !parts.is_empty() || duration_ms.is_some_and(|ms| ms >= LONG_MS);
    let seconds = duration_ms.and_then(|ms| i64::try_from(ms / 1_000).ok());
    parts.extend(seconds.filter(|seconds| *seconds > 0).map(format_duration));
    is_worth_it.then(|| Line::new(Style::Dim, parts.join(" · ")))
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
    Some(match cost["currency"].as_str() {
        Some("USD") | None => format!("${amount:.4}"),
        Some(currency) => format!("{amount:.4} {currency}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(usage: Value, duration_ms: u64) -> String {
        let line = usage_line(
            Some(&usage).filter(|usage| !usage.is_null()),
            Some(duration_ms),
        );
        line.map_or(String::new(), |line| line.text())
    }

    #[test]
    fn what_is_known_is_said() {
        let sums = json!({"inputTokens": 12_400, "cacheReadTokens": 9_000, "outputTokens": 1_100});
        let usage = json!({"inputTokens": 7, "_meta": {"turn": sums, "cost": {"amount": 0.031, "currency": "USD"}}});
        assert_eq!(
            line(usage, 12_345),
            "12.4k in (9.0k cached) · 1.1k out · $0.0310 · 12 s"
        );
        let plain = json!({"inputTokens": 700, "outputTokens": 5});
        assert_eq!(line(plain, 900), "700 in · 5 out");
        assert_eq!(line(Value::Null, 9_999), "");
        assert_eq!(line(Value::Null, 75_000), "1 min");
        let odd =
            json!({"outputTokens": 3, "_meta": {"cost": {"amount": 1, "currency": "E\u{1b}UR"}}});
        assert_eq!(line(odd, 0), "3 out · 1.0000 E\\x1bUR");
    }
}
