//! What tokens cost.
//!
//! Promises: the cost of a request is counted by what its server reported, and by the prices for prompts of its length.
//! Must not know: models, turns, budgets.

use serde::{Deserialize, Serialize};

use crate::provider::Usage;

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    /// Of what came from the server's cache; as input if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Of what was put into the server's cache; as input if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// What a request with a long prompt costs instead, all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_prompt: Option<LongPromptPrices>,
}

/// The prices of requests whose prompt has more tokens than `above`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPromptPrices {
    pub above: u64,
    pub input: f64,
    pub output: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Prices {
    /// What one request cost, in dollars; `None` if its server counted nothing.
    pub fn cost(&self, request: Usage) -> Option<f64> {
        let prompt = request.input_tokens?;
        let prices = self.for_prompt(prompt);
        let cached = request.cache_read_tokens.unwrap_or(0);
        let written = request.cache_write_tokens.unwrap_or(0);
        let fresh = prompt.saturating_sub(cached.saturating_add(written));
        let output = request.output_tokens.unwrap_or(0);
        let amount = fresh as f64 * prices.input
            + cached as f64 * prices.cache_read.unwrap_or(prices.input)
            + written as f64 * prices.cache_write.unwrap_or(prices.input)
            + output as f64 * prices.output;
        Some(amount / 1_000_000.0)
    }

    /// The prices of a request with a prompt of so many tokens.
    fn for_prompt(&self, tokens: u64) -> Self {
        match self.long_prompt {
            Some(long) if tokens > long.above => Self {
                input: long.input,
                output: long.output,
                cache_read: long.cache_read,
                cache_write: long.cache_write,
                long_prompt: None,
            },
            Some(_) | None => *self,
        }
    }

    /// Whether each is an amount of money.
    pub(crate) fn are_possible(&self) -> bool {
        let long = self.long_prompt;
        let rare = [
            self.cache_read,
            self.cache_write,
            long.map(|long| long.input),
            long.map(|long| long.output),
            long.and_then(|long| long.cache_read),
            long.and_then(|long| long.cache_write),
        ];
        let all = [self.input, self.output].into_iter();
        all.chain(rare.into_iter().flatten()).all(|price| price.is_finite() && price >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input: u64, output: u64, cached: u64, written: u64) -> Usage {
        Usage {
            input_tokens: Some(input),
            output_tokens: Some(output),
            cache_read_tokens: Some(cached),
            cache_write_tokens: Some(written),
        }
    }

    fn prices() -> Prices {
        Prices {
            input: 2.0,
            output: 10.0,
            cache_read: Some(0.2),
            cache_write: Some(2.5),
            long_prompt: Some(LongPromptPrices {
                above: 200_000,
                input: 4.0,
                output: 15.0,
                cache_read: None,
                cache_write: None,
            }),
        }
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        let cost = prices().cost(usage(100_000, 10_000, 50_000, 20_000));
        let expected = (30_000.0 * 2.0 + 50_000.0 * 0.2 + 20_000.0 * 2.5 + 10_000.0 * 10.0) / 1e6;
        assert!((cost.unwrap() - expected).abs() < 1e-12, "{cost:?}");
        assert_eq!(prices().cost(Usage::default()), None);
        // Servers that count strangely cost nothing less than nothing.
        assert!(prices().cost(usage(1, 0, 10, 10)).unwrap() > 0.0);
    }

    #[test]
    fn a_long_prompt_makes_the_whole_request_dearer() {
        assert_eq!(prices().cost(usage(200_000, 0, 0, 0)), Some(0.4));
        assert_eq!(prices().cost(usage(200_001, 0, 0, 0)), Some(0.800_004));
        assert_eq!(prices().cost(usage(300_000, 100, 300_000, 0)), Some(1.2015));
    }

    #[test]
    fn prices_are_amounts() {
        assert!(prices().are_possible());
        for wrong in [f64::NAN, -1.0, f64::INFINITY] {
            let one = Prices { cache_read: Some(wrong), ..prices() };
            assert!(!one.are_possible(), "{wrong}");
        }
    }
}
