//! What a chat has used: how full the model's window is, tokens, and what was paid (G-45).
//!
//! Promises: each turn is read once. What is not reported is not guessed: a chat whose older turns are not here says that its
//! sums are a part of the whole.

use std::collections::BTreeMap;

use serde_json::Value;
use wire::state::ChatState;

/// What was used so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatUsage {
    /// Tokens of the last model call: what was sent and what came back.
    pub context_used: Option<u64>,
    /// Tokens that the model of that call can look at, if it was said with it.
    pub context_size: Option<u64>,
    /// Of all turns that are here.
    pub tokens: TokenCounts,
    pub cost: Option<Cost>,
    /// Of the last turn that reported anything.
    pub last_turn: Option<TurnTotals>,
    /// Older turns are not here, and what they used is not in the sums.
    pub is_partial: bool,
}

/// What one turn used.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnTotals {
    pub tokens: TokenCounts,
    pub cost: Option<Cost>,
}

/// Tokens, as far as they were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenCounts {
    /// All that was sent, with what was read from a cache.
    pub input: Option<u64>,
    pub cached: Option<u64>,
    pub output: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    pub amount: f64,
    pub currency: String,
    /// Older turns are not here, and what they cost is not in the amount.
    pub is_partial: bool,
}

/// Reads what turns used, and remembers it.
#[derive(Debug, Default)]
pub struct UsageReader {
    /// By turn; those that are not in the chat any more are forgotten.
    turns: BTreeMap<String, Value>,
}

impl UsageReader {
    pub fn read(&mut self, chat: &ChatState) -> ChatUsage {
        let turns = chat.turns.as_slice();
        let mut known = std::mem::take(&mut self.turns);
        for turn in turns {
            let usage = known.remove(&turn.id);
            let usage = usage.unwrap_or_else(|| turn.value()["usage"].take());
            self.turns.insert(turn.id.clone(), usage);
        }
        let active = chat.active_turn.as_ref().and_then(|turn| turn.usage.as_ref());
        let completed = turns.iter().filter_map(|turn| self.turns.get(&turn.id));
        let mut used = ChatUsage::default();
        for usage in completed.chain(active) {
            used.add(usage);
        }
        used.is_partial = chat.turns_next_cursor.is_some();
        if let Some(cost) = &mut used.cost {
            cost.is_partial = used.is_partial;
        }
        used
    }
}

impl ChatUsage {
    fn add(&mut self, usage: &Value) {
        let meta = &usage["_meta"];
        let last_call = || {
            let input = usage["inputTokens"].as_u64()?;
            Some(input.saturating_add(usage["outputTokens"].as_u64().unwrap_or(0)))
        };
        if meta["greenroom.summary"] == true {
            // Earlier turns are summarised now; the next call shows how much that is.
            self.context_used = None;
            self.context_size = meta["contextSize"].as_u64();
        } else if let Some(context) = meta["contextUsed"].as_u64().or_else(last_call) {
            self.context_used = Some(context);
            self.context_size = meta["contextSize"].as_u64();
        }
        let turn = TurnTotals::read(usage);
        self.tokens = self.tokens.plus(turn.tokens);
        match (&mut self.cost, &turn.cost) {
            (_, None) => {} // a model without prices
            (Some(sum), Some(cost)) if sum.currency == cost.currency => sum.amount += cost.amount,
            // Amounts of another currency cannot be added up: the first one counts.
            (Some(_), Some(_)) => {}
            (None, Some(cost)) => self.cost = Some(cost.clone()),
        }
        if turn != TurnTotals::default() {
            self.last_turn = Some(turn);
        }
    }

    /// How much of a window is used; none if either is not known.
    pub fn context_percent(&self, context_tokens: Option<u64>) -> Option<u64> {
        let size = self.context_size.or(context_tokens).filter(|size| *size > 0)?;
        Some(self.context_used?.saturating_mul(100).div_ceil(size).min(999))
    }
}

impl TurnTotals {
    fn read(usage: &Value) -> Self {
        let meta = &usage["_meta"];
        // Agents that do not count the turn report its last call.
        let sums = meta.get("turn").unwrap_or(usage);
        Self {
            tokens: TokenCounts {
                input: sums["inputTokens"].as_u64(),
                cached: sums["cacheReadTokens"].as_u64(),
                output: sums["outputTokens"].as_u64(),
            },
            cost: meta["cost"]["amount"].as_f64().map(|amount| Cost {
                amount,
                currency: meta["cost"]["currency"].as_str().unwrap_or("USD").to_owned(),
                is_partial: false,
            }),
        }
    }
}

impl TokenCounts {
    fn plus(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input: sum(self.input, other.input),
            cached: sum(self.cached, other.cached),
            output: sum(self.output, other.output),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use wire::state::{Turn, TurnList};

    use super::*;

    #[test]
    fn turns_are_added_up_and_the_last_call_fills_the_window() {
        let turn = |id: &str, usage: Value| {
            let turn = json!({
                "id": id, "state": "complete", "responseParts": [], "message": {}, "usage": usage,
            });
            Arc::new(Turn::from_value(&turn).unwrap())
        };
        let cost = |amount: f64| json!({"amount": amount, "currency": "USD"});
        let mut chat = ChatState::new("ahp-chat:/c", "", 1, String::new());
        chat.turns = Arc::new(TurnList::new(vec![
            turn(
                "a",
                json!({"inputTokens": 10, "_meta": {"contextUsed": 20, "contextSize": 100, "cost": cost(0.25),
                    "turn": {"inputTokens": 500, "outputTokens": 60}}}),
            ),
            turn("b", json!({"inputTokens": 40, "outputTokens": 1, "_meta": {"cost": cost(0.5)}})),
            turn("c", Value::Null),
        ]));
        let mut reader = UsageReader::default();
        let used = reader.read(&chat);
        assert_eq!(used.context_used, Some(41));
        assert_eq!(used.context_percent(Some(200)), Some(21));
        assert_eq!(used.context_percent(None), None);
        let paid = used.cost.clone().unwrap();
        assert_eq!((paid.amount, paid.is_partial), (0.75, false));
        let counts = |input, output| TokenCounts { input: Some(input), cached: None, output };
        assert_eq!(used.tokens, counts(540, Some(61)), "sums where there are any");
        let last = used.last_turn.clone().unwrap();
        assert_eq!(last.tokens, counts(40, Some(1)));
        assert!(!used.is_partial);
        let summary =
            json!({"inputTokens": 90, "_meta": {"contextSize": 100, "greenroom.summary": true}});
        let mut summarised = chat.clone();
        let turns = chat.turns.as_slice().iter().cloned().chain([turn("d", summary)]).collect();
        summarised.turns = Arc::new(TurnList::new(turns));
        let used = UsageReader::default().read(&summarised);
        assert_eq!((used.context_used, used.context_size), (None, Some(100)));
        assert_eq!(used.tokens.input, Some(630), "it costs something all the same");
        chat.turns_next_cursor = Some("older".to_owned());
        assert!(reader.read(&chat).cost.unwrap().is_partial);
        chat.turns = Arc::default();
        chat.turns_next_cursor = None;
        assert_eq!(reader.read(&chat), ChatUsage::default());
    }
}
