//! What a turn used, as agents tell it: tokens with the prompt's answer, the context and the cost beside it (G-45).

use agent_client_protocol_schema::v1 as acp;
use serde_json::{Map, Value, json};
use wire::published::state::UsageInfo;

/// What was said of a session's usage.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in super::super) struct UsageTotals {
    context: Option<(u64, u64)>,
    /// What the session has cost since it began, and in which currency.
    cost: Option<(f64, String)>,
    /// What it had cost when the turn began; absent if nobody knows.
    cost_before: Option<f64>,
}

impl UsageTotals {
    /// Of a session that has just begun.
    pub(in super::super) fn of_new_session() -> Self {
        Self { cost_before: Some(0.0), ..Self::default() }
    }

    pub(in super::super) fn apply_update(&mut self, usage: &acp::UsageUpdate) {
        self.context = Some((usage.used, usage.size));
        if let Some(cost) = &usage.cost {
            let currency = cost.currency.chars().take(8).collect();
            self.cost = Some((cost.amount, currency));
        }
    }

    /// What the next turn begins with.
    pub(in super::super) fn next_turn(&self) -> Self {
        Self {
            context: None,
            cost: None,
            cost_before: self.cost.as_ref().map(|(amount, _)| *amount).or(self.cost_before),
        }
    }

    /// The report at the end of a turn; none if nothing was said.
    pub(in super::super) fn report(
        &self,
        answer: &Value,
        model: Option<&str>,
    ) -> Option<UsageInfo> {
        let quota = &answer["_meta"]["quota"];
        let tokens = read_usage(&answer["usage"]).or_else(|| read_quota(&quota["token_count"]));
        if tokens.is_none() && self.context.is_none() {
            return None;
        }
        let tokens = tokens.unwrap_or_default();
        let said_model = quota["model_usage"][0]["model"].as_str().or(model);
        let mut meta = Map::new();
        meta.insert("turn".to_owned(), tokens.to_value());
        let mut info = UsageInfo {
            input_tokens: to_i64(tokens.input),
            output_tokens: to_i64(tokens.output),
            cache_read_tokens: to_i64(tokens.cache_read),
            model: said_model.map(|model| model.chars().take(200).collect()),
            meta: None,
        };
        if let Some((used, size)) = self.context {
            meta.insert("contextUsed".to_owned(), json!(used));
            meta.insert("contextSize".to_owned(), json!(size));
            // Clients show these as the context in use.
            info.input_tokens = to_i64(Some(used));
            info.output_tokens = None;
            info.cache_read_tokens = None;
        }
        if let Some(((amount, currency), before)) = self.cost.as_ref().zip(self.cost_before) {
            let amount = (amount - before).max(0.0);
            meta.insert("cost".to_owned(), json!({"amount": amount, "currency": currency}));
        }
        info.meta = Some(meta);
        Some(info)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Tokens {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
}

impl Tokens {
    fn to_value(self) -> Value {
        let mut fields = Map::new();
        for (name, count) in [
            ("inputTokens", self.input),
            ("outputTokens", self.output),
            ("cacheReadTokens", self.cache_read),
        ] {
            if let Some(count) = count {
                fields.insert(name.to_owned(), json!(count));
            }
        }
        Value::Object(fields)
    }
}

fn read_usage(usage: &Value) -> Option<Tokens> {
    let count = |name: &str| usage[name].as_u64();
    let (input, output) = (count("inputTokens")?, count("outputTokens")?);
    let cache_read = count("cachedReadTokens");
    let cached = cache_read.unwrap_or(0).saturating_add(count("cachedWriteTokens").unwrap_or(0));
    // Some agents count the cache in the input, some beside it: the total tells which (G-60).
    let beside = input.saturating_add(output).saturating_add(cached);
    let is_beside = cached > 0 && count("totalTokens").is_some_and(|total| total >= beside);
    Some(Tokens {
        input: Some(if is_beside { input.saturating_add(cached) } else { input }),
        output: Some(output),
        cache_read,
    })
}

fn read_quota(count: &Value) -> Option<Tokens> {
    let read = |names: [&str; 2]| names.into_iter().find_map(|name| count[name].as_u64());
    Some(Tokens {
        input: Some(read(["input_tokens", "inputTokens"])?),
        output: read(["output_tokens", "outputTokens"]),
        cache_read: read(["cached_input_tokens", "cachedInputTokens"]),
    })
}

fn to_i64(count: Option<u64>) -> Option<i64> {
    count.map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}
