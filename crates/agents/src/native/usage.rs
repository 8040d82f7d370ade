//! What a turn uses: the tokens of each model call, and their sums (G-45).
//!
//! Must not know: wire formats.

use agent_api::{AgentEvent, CallPurpose, EventSink, TurnOver};
use serde_json::{Value, json};
use wire::Object;
use wire::published::state::UsageInfo;

use super::Model;
use super::recorded_call::FailedCall;
use crate::provider::Usage;

/// Under this name a report says that the last call was about a summary: it does not tell how long the conversation is.
pub(super) const SUMMARY_CALL: &str = "greenroom.summary";

/// What a turn has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct TurnUsage {
    tokens: Usage,
    /// In dollars, if the model has prices. Counted by request: a long one may cost more.
    cost: Option<f64>,
}

impl TurnUsage {
    /// What a resumed turn had used, as it was last reported. Reports of before sums were in `_meta` are sums.
    pub(super) fn resume(reported: Option<&Value>) -> Self {
        let Some(reported) = reported else {
            return Self::default(); // nothing was reported
        };
        let sums = reported["_meta"].get("turn").unwrap_or(reported);
        let tokens = Usage {
            input_tokens: sums["inputTokens"].as_u64(),
            output_tokens: sums["outputTokens"].as_u64(),
            cache_read_tokens: sums["cacheReadTokens"].as_u64(),
            cache_write_tokens: reported["_meta"]["cacheWriteTokens"].as_u64(),
        };
        let cost = reported["_meta"]["cost"]["amount"].as_f64();
        Self { tokens, cost }
    }

    /// Reports a model call, and the turn with it. Servers that count nothing report nothing.
    pub(super) async fn add(
        &mut self,
        call: Usage,
        purpose: CallPurpose,
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
        self.tokens = Usage {
            input_tokens: sum(self.tokens.input_tokens, call.input_tokens),
            output_tokens: sum(self.tokens.output_tokens, call.output_tokens),
            cache_read_tokens: sum(self.tokens.cache_read_tokens, call.cache_read_tokens),
            cache_write_tokens: sum(self.tokens.cache_write_tokens, call.cache_write_tokens),
        };
        if let Some(cost) = cost_of(call, model) {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
        let usage = UsageInfo {
            model: Some(model.id.clone()),
            meta: Some(self.meta(call, purpose, model)),
            ..counts(call)
        };
        events.send(AgentEvent::Usage(usage)).await
    }

    /// Reports what a call used that failed, or gives back what was set aside for it. If its server had begun to work on it and
    /// counted nothing, what was set aside stays spent.
    pub(super) async fn add_failed(
        &mut self,
        failed: &FailedCall,
        purpose: CallPurpose,
        model: &Model,
        events: &dyn EventSink,
    ) -> Result<(), TurnOver> {
        if failed.usage != Usage::default() {
            return self.add(failed.usage, purpose, model, events).await;
        }
        if !failed.is_billed {
            events.release_call().await;
        }
        Ok(())
    }

    fn meta(self, call: Usage, purpose: CallPurpose, model: &Model) -> Object {
        let mut meta = Object::new();
        meta.insert("turn".to_owned(), json!(counts(self.tokens)));
        match (purpose, call.input_tokens) {
            (CallPurpose::Compaction, _) => {
                meta.insert(SUMMARY_CALL.to_owned(), json!(true));
            }
            (CallPurpose::Answer, Some(input)) => {
                let used = input.saturating_add(call.output_tokens.unwrap_or(0));
                meta.insert("contextUsed".to_owned(), json!(used));
            }
            // A title says nothing of how long the conversation is.
            (CallPurpose::Answer, None) | (CallPurpose::Title, _) => {}
        }
        if let Some(written) = self.tokens.cache_write_tokens {
            meta.insert("cacheWriteTokens".to_owned(), json!(written));
        }
        if let Some(size) = model.facts().context_tokens {
            meta.insert("contextSize".to_owned(), json!(size));
        }
        if let Some(amount) = self.cost {
            let cost = json!({"amount": amount, "currency": "USD"});
            meta.insert("cost".to_owned(), cost);
        }
        meta
    }
}

/// What was used costs so much, if the model has prices.
pub(super) fn cost_of(used: Usage, model: &Model) -> Option<f64> {
    model.facts().prices?.cost(used)
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
        let reported = json!({"inputTokens": 9, "_meta": {
            "turn": {"inputTokens": 3_000_000, "outputTokens": 100_000, "cacheReadTokens": 1_000_000},
            "cost": {"amount": 5.5, "currency": "USD"},
        }});
        let usage = TurnUsage::resume(Some(&reported));
        let call = Usage {
            input_tokens: Some(7),
            output_tokens: Some(5),
            cache_read_tokens: None,
            cache_write_tokens: None,
        };
        assert_eq!(
            Value::Object(usage.meta(call, CallPurpose::Answer, &model)),
            json!({
                "turn": {"inputTokens": 3_000_000, "outputTokens": 100_000, "cacheReadTokens": 1_000_000},
                "contextUsed": 12,
                "contextSize": 8192,
                "cost": {"amount": 5.5, "currency": "USD"},
            })
        );
        let meta = usage.meta(call, CallPurpose::Compaction, &model);
        assert_eq!(meta[SUMMARY_CALL], true);
        assert!(!meta.contains_key("contextUsed"));
        let before_sums = json!({"inputTokens": 4, "outputTokens": 2});
        let usage = TurnUsage::resume(Some(&before_sums));
        assert_eq!(usage.tokens.input_tokens, Some(4));
        assert_eq!(TurnUsage::resume(None), TurnUsage::default());
    }
}
