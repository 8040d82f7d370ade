//! What a turn uses: the tokens of each model call, and their sums (G-45).
//!
//! Must not know: wire formats.

use agent_api::{AgentEvent, EventSink, TurnOver};
use serde_json::{Value, json};
use wire::Object;
use wire::published::state::UsageInfo;

use super::Model;
use crate::provider::Usage;

/// Under this name a report says that the last call was about a summary: it does not tell how long the conversation is.
pub(super) const SUMMARY_CALL: &str = "greenroom.summary";

/// What a model call was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallPurpose {
    Conversation,
    Summary,
}

/// What a turn has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TurnUsage(Usage);

impl TurnUsage {
    /// What a resumed turn had used, as it was last reported. Reports of before sums were in `_meta` are sums.
    pub(super) fn resume(reported: Option<&Value>) -> Self {
        let Some(reported) = reported else {
            return Self::default(); // nothing was reported
        };
        let sums = reported["_meta"].get("turn").unwrap_or(reported);
        Self(Usage {
            input_tokens: sums["inputTokens"].as_u64(),
            output_tokens: sums["outputTokens"].as_u64(),
            cache_read_tokens: sums["cacheReadTokens"].as_u64(),
            cache_write_tokens: reported["_meta"]["cacheWriteTokens"].as_u64(),
        })
    }

    /// Reports a model call, and the turn with it. Servers that count nothing report nothing.
    pub(super) async fn add(
        &mut self,
        (call, purpose): (Usage, CallPurpose),
        model: &Model,
        events: &dyn EventSink,
    ) -> Result<(), TurnOver> {
        if call == Usage::default() {
            return Ok(());
        }
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        self.0 = Usage {
            input_tokens: sum(self.0.input_tokens, call.input_tokens),
            output_tokens: sum(self.0.output_tokens, call.output_tokens),
            cache_read_tokens: sum(self.0.cache_read_tokens, call.cache_read_tokens),
            cache_write_tokens: sum(self.0.cache_write_tokens, call.cache_write_tokens),
        };
        let usage = UsageInfo {
            model: Some(model.id.clone()),
            meta: Some(self.meta(call, purpose, model)),
            ..counts(call)
        };
        events.send(AgentEvent::Usage(usage)).await
    }

    fn meta(self, call: Usage, purpose: CallPurpose, model: &Model) -> Object {
        let mut meta = Object::new();
        meta.insert("turn".to_owned(), json!(counts(self.0)));
        if purpose == CallPurpose::Summary {
            meta.insert(SUMMARY_CALL.to_owned(), json!(true));
        } else if let Some(input) = call.input_tokens {
            let used = input.saturating_add(call.output_tokens.unwrap_or(0));
            meta.insert("contextUsed".to_owned(), json!(used));
        }
        if let Some(written) = self.0.cache_write_tokens {
            meta.insert("cacheWriteTokens".to_owned(), json!(written));
        }
        if let Some(size) = model.context_tokens {
            meta.insert("contextSize".to_owned(), json!(size));
        }
        if let Some(amount) = self.cost(model) {
            let cost = json!({"amount": amount, "currency": "USD"});
            meta.insert("cost".to_owned(), cost);
        }
        meta
    }

    /// What the turn cost so far, if the model has prices.
    fn cost(self, model: &Model) -> Option<f64> {
        let prices = model.prices?;
        let cached = self.0.cache_read_tokens.unwrap_or(0);
        let written = self.0.cache_write_tokens.unwrap_or(0);
        let fresh = self
            .0
            .input_tokens?
            .saturating_sub(cached.saturating_add(written));
        let output = self.0.output_tokens.unwrap_or(0);
        let cached_price = prices.cache_read.unwrap_or(prices.input);
        let amount = fresh as f64 * prices.input
            + cached as f64 * cached_price
            + written as f64 * prices.cache_write.unwrap_or(prices.input)
            + output as f64 * prices.output;
        Some(amount / 1_000_000.0)
    }
}

fn counts(usage: Usage) -> UsageInfo {
    let count = |tokens: Option<u64>| tokens.and_then(|tokens| i64::try_from(tokens).ok());
    UsageInfo {
        input_tokens: count(usage.input_tokens),
        output_tokens: count(usage.output_tokens),
        cache_read_tokens: count(usage.cache_read_tokens),
        ..UsageInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_go_on_where_a_turn_left_off_and_cost_what_the_prices_say() {
        let toml = r#"
            id = "m"
            base_url = "http://h/v1"
            context_tokens = 8192
            prices = { input = 2.0, output = 10.0, cache_read = 0.5 }
        "#;
        let model: Model = toml::from_str(toml).unwrap();
        let reported = json!({"inputTokens": 9, "_meta": {"turn": {
            "inputTokens": 3_000_000, "outputTokens": 100_000, "cacheReadTokens": 1_000_000,
        }}});
        let usage = TurnUsage::resume(Some(&reported));
        let call = Usage {
            input_tokens: Some(7),
            output_tokens: Some(5),
            cache_read_tokens: None,
            cache_write_tokens: None,
        };
        assert_eq!(
            Value::Object(usage.meta(call, CallPurpose::Conversation, &model)),
            json!({
                "turn": {"inputTokens": 3_000_000, "outputTokens": 100_000, "cacheReadTokens": 1_000_000},
                "contextUsed": 12,
                "contextSize": 8192,
                "cost": {"amount": 5.5, "currency": "USD"},
            })
        );
        let meta = usage.meta(call, CallPurpose::Summary, &model);
        assert_eq!(meta[SUMMARY_CALL], true);
        assert!(!meta.contains_key("contextUsed"));
        let before_sums = json!({"inputTokens": 4, "outputTokens": 2});
        let usage = TurnUsage::resume(Some(&before_sums));
        assert_eq!(usage.0.input_tokens, Some(4));
        assert_eq!(TurnUsage::resume(None), TurnUsage::default());
    }
}
