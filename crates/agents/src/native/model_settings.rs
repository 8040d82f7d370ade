//! What a message may set of its model: the settings of the configuration, and those that are known of the model, in words that
//! are the same over all wire formats.
//!
//! Promises: what a client is offered is what the request then says; a setting that the wire format does not take is not offered.
//! Must not know: what a server makes of it.

use serde_json::{Map, Value, json};
use wire::Object;

use super::models::Model;
use super::settings;
use crate::model_data::{AdaptiveThinking, ModelFacts, ThinkingTokens};
use crate::provider::Api;

/// How much the model thinks.
const EFFORT: &str = "reasoningEffort";
/// How many tokens it may think.
const THINKING: &str = "thinkingTokens";
/// How long its answer may be, in tokens.
const ANSWER: &str = "maxOutputTokens";

/// The least that a model may be told to answer with.
const ANSWER_TOKENS_MIN: u64 = 256;

/// What a request says of the settings of a message.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct RequestSettings {
    pub max_output_tokens: Option<u64>,
    /// Fields of the request, in the words of its wire format.
    pub fields: Object,
}

/// The `configSchema` of a model, if it has any settings; an error says which of the configuration's cannot be published.
pub(super) fn schema(model: &Model) -> Result<Option<Value>, String> {
    let own = model.settings.as_ref().map(settings::schema_of).transpose()?;
    let known = known_settings(model);
    let Some(mut schema) = own else {
        let is_empty = known.is_empty();
        return Ok((!is_empty).then(|| json!({"type": "object", "properties": known})));
    };
    if let Some(properties) = schema["properties"].as_object_mut() {
        for (name, setting) in known {
            properties.entry(name).or_insert(setting);
        }
    }
    Ok(Some(schema))
}

/// The settings that are known of the model, as far as the configuration has none for the same.
fn known_settings(model: &Model) -> Map<String, Value> {
    let facts = model.facts();
    let own = model.settings.as_ref().and_then(Value::as_object);
    let is_free =
        |fields: &[&str]| own.is_none_or(|own| fields.iter().all(|it| !own.contains_key(*it)));
    let mut known = Map::new();
    let efforts = facts.efforts.as_ref().filter(|efforts| !efforts.is_empty());
    if let Some(efforts) = efforts.filter(|_| is_free(effort_fields(model.api))) {
        known.insert(EFFORT.to_owned(), effort_schema(efforts, facts.default_effort.as_deref()));
    }
    if let Some(tokens) =
        thinking_tokens(model.api, &facts).filter(|_| is_free(effort_fields(model.api)))
    {
        known.insert(THINKING.to_owned(), json!({
            "type": "integer", "title": "Thinking tokens", "minimum": tokens.min, "maximum": tokens.max,
            "description": "How many tokens the model may think before it answers. Without it the server decides.",
        }));
    }
    if let Some(most) = facts
        .output_tokens
        .filter(|_| is_free(&["max_tokens", "max_completion_tokens", "max_output_tokens"]))
    {
        known.insert(ANSWER.to_owned(), json!({
            "type": "integer", "title": "Longest answer", "minimum": ANSWER_TOKENS_MIN.min(most), "maximum": most,
            "description": "How many tokens an answer may have, thinking included.",
        }));
    }
    known
}

fn effort_schema(efforts: &[String], default: Option<&str>) -> Value {
    let labels: Vec<String> = efforts.iter().map(|effort| label_of(effort)).collect();
    let mut schema = json!({
        "type": "string", "title": "Reasoning effort", "enum": efforts, "enumLabels": labels,
        "description": "How much the model thinks before it answers.",
    });
    if let Some(default) = default {
        schema["default"] = json!(default);
    }
    schema
}

fn label_of(effort: &str) -> String {
    match effort {
        "xhigh" => "Extra high".to_owned(),
        other => settings::title_of(other),
    }
}

/// Fields of a request that say how much the model thinks.
fn effort_fields(api: Api) -> &'static [&'static str] {
    match api {
        Api::Chat => &["reasoning_effort", "reasoning"],
        Api::Anthropic => &["output_config", "thinking"],
        Api::Responses => &["reasoning"],
        Api::Gemini => &["thinkingConfig"],
    }
}

/// Between which numbers its thinking may be limited, over a wire format that has a field for it.
fn thinking_tokens(api: Api, facts: &ModelFacts) -> Option<ThinkingTokens> {
    let tokens = facts.thinking_tokens?;
    let max = tokens.max.or(facts.output_tokens.map(|most| most.saturating_sub(1)));
    match api {
        Api::Anthropic | Api::Gemini => Some(ThinkingTokens { max, ..tokens }),
        Api::Chat | Api::Responses => None,
    }
}

/// What a request says of the settings of a message, as far as the model has settings of these names (G-22).
pub(super) fn read(model: &Model, message: &Value) -> RequestSettings {
    let given = message["model"]["config"].as_object();
    let own = model.settings.as_ref().and_then(Value::as_object);
    let known = known_settings(model);
    let given = |name: &str| given.and_then(|given| given.get(name));
    let chosen = |name: &str| known.get(name).and_then(|_| given(name));
    let wanted = chosen(ANSWER).and_then(Value::as_u64);
    let max_output_tokens = wanted.or_else(|| model.answer_tokens());
    let thinking = Thinking {
        effort: chosen(EFFORT).and_then(Value::as_str),
        tokens: chosen(THINKING).and_then(Value::as_u64),
        answer_tokens: max_output_tokens,
        // Some think unasked, but show nothing of it unless they are asked to.
        adaptive: model
            .facts()
            .adaptive_thinking
            .filter(|_| own.is_none_or(|own| !own.contains_key("thinking"))),
        is_shown: thinks(model)
            && own.is_none_or(|own| {
                let mut fields = effort_fields(model.api).iter();
                fields.all(|field| !own.contains_key(*field))
            }),
    };
    let mut fields = thinking.fields(model.api);
    for (name, _) in own.into_iter().flatten() {
        if let Some(value) = given(name) {
            fields.insert(name.clone(), value.clone());
        }
    }
    RequestSettings { max_output_tokens, fields }
}

/// What a request says to a model that is to think as little as it can.
pub(super) fn least_thinking(model: &Model) -> Object {
    let facts = model.facts();
    // One that thinks only when asked is not asked.
    let is_asked = facts.adaptive_thinking != Some(AdaptiveThinking::Off)
        && known_settings(model).contains_key(EFFORT);
    let efforts = facts.efforts.unwrap_or_default();
    let thinking = Thinking {
        effort: efforts.first().map(String::as_str).filter(|_| is_asked),
        tokens: None,
        answer_tokens: None,
        adaptive: None,
        is_shown: false,
    };
    thinking.fields(model.api)
}

/// Whether it is known of a model that it thinks. All of Google's that are known do.
fn thinks(model: &Model) -> bool {
    let facts = model.facts();
    let has_efforts = facts.efforts.is_some_and(|efforts| !efforts.is_empty());
    let is_known = model.known() != ModelFacts::default();
    has_efforts || facts.thinking_tokens.is_some() || (model.api == Api::Gemini && is_known)
}

/// How a request asks its model to think.
struct Thinking<'a> {
    effort: Option<&'a str>,
    tokens: Option<u64>,
    answer_tokens: Option<u64>,
    adaptive: Option<AdaptiveThinking>,
    /// Whether it asks for what the model thinks, where a server shows nothing of it unasked.
    is_shown: bool,
}

impl Thinking<'_> {
    fn fields(&self, api: Api) -> Object {
        let mut fields = Object::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        match api {
            Api::Chat => {
                if let Some(effort) = self.effort {
                    put("reasoning_effort", json!(effort));
                }
            }
            Api::Responses => {
                let reasoning = self.responses();
                if !reasoning.is_empty() {
                    put("reasoning", Value::Object(reasoning));
                }
            }
            Api::Anthropic => {
                if let Some(effort) = self.effort {
                    put("output_config", json!({"effort": effort}));
                }
                if let Some(thinking) = self.anthropic() {
                    put("thinking", thinking);
                }
            }
            Api::Gemini => {
                let config = self.gemini();
                if !config.is_empty() {
                    put("thinkingConfig", Value::Object(config));
                }
            }
        }
        fields
    }

    fn responses(&self) -> Map<String, Value> {
        let effort = self.effort.map(|effort| ("effort", json!(effort)));
        let summary = self.is_shown.then(|| ("summary", json!("auto")));
        effort.into_iter().chain(summary).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn gemini(&self) -> Map<String, Value> {
        let much = match (self.effort, self.tokens) {
            (Some(effort), _) => Some(("thinkingLevel", json!(effort))),
            (None, Some(tokens)) => Some(("thinkingBudget", json!(tokens))),
            (None, None) => None,
        };
        // Of a model that is not to think there is nothing to show.
        let is_shown = self.is_shown && (self.effort.is_some() || self.tokens != Some(0));
        let shown = is_shown.then(|| ("includeThoughts", json!(true)));
        much.into_iter().chain(shown).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn anthropic(&self) -> Option<Value> {
        match (self.adaptive, self.tokens) {
            (Some(AdaptiveThinking::Off), _) if self.effort.is_none() => None,
            (Some(_), _) => Some(json!({"type": "adaptive", "display": "summarized"})),
            (None, Some(tokens)) => {
                // What is thought is part of the answer.
                let most = self.answer_tokens.map_or(u64::MAX, |answer| answer.saturating_sub(1));
                Some(json!({"type": "enabled", "budget_tokens": tokens.min(most)}))
            }
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::published::state::ConfigSchema;

    use super::*;

    fn model(text: &str) -> Model {
        Model::parse(text).unwrap()
    }

    fn request(model: &Model, config: Value) -> (Option<u64>, Value) {
        let read = read(model, &json!({"model": {"id": "m", "config": config}}));
        (read.max_output_tokens, Value::Object(read.fields))
    }

    #[test]
    fn settings_have_titles_and_can_be_decoded() {
        let model = model("anthropic+http://h/v1#claude-opus-5-5");
        let schema = schema(&model).unwrap().unwrap();
        let decoded: ConfigSchema = serde_json::from_value(schema.clone()).unwrap();
        let effort = &decoded.properties["reasoningEffort"];
        assert_eq!(effort.title, "Reasoning effort");
        assert_eq!(
            schema["properties"]["reasoningEffort"]["enum"],
            json!(["low", "medium", "high", "xhigh", "max"])
        );
        assert_eq!(schema["properties"]["reasoningEffort"]["default"], "medium");
        assert_eq!(schema["properties"]["maxOutputTokens"]["maximum"], 128_000);
        assert!(!decoded.properties.contains_key("thinkingTokens"), "it decides itself");
    }

    #[test]
    fn a_model_that_nothing_is_known_of_has_the_settings_of_its_configuration() {
        let mut model = model("http://localhost/v1#qwen3");
        assert_eq!(schema(&model), Ok(None));
        model.settings = Some(json!({"temperature": {"type": "number"}}));
        assert_eq!(
            request(&model, json!({"temperature": 0.5, "reasoningEffort": "low"})),
            (None, json!({"temperature": 0.5}))
        );
        model.efforts = Some(vec!["low".to_owned()]);
        let properties = schema(&model).unwrap().unwrap()["properties"].clone();
        let names: Vec<&String> = properties.as_object().unwrap().keys().collect();
        assert_eq!(names, ["temperature", "reasoningEffort"]);
    }

    #[test]
    fn each_wire_format_says_it_in_its_own_words() {
        let chosen = json!({"reasoningEffort": "high", "maxOutputTokens": 9000});
        for (address, fields) in [
            ("https://api.openai.com/v1#gpt-5.5", json!({"reasoning_effort": "high"})),
            (
                "responses+https://api.openai.com/v1#gpt-5.5",
                json!({"reasoning": {"effort": "high", "summary": "auto"}}),
            ),
            (
                "anthropic+http://h/v1#claude-opus-4-8",
                json!({"output_config": {"effort": "high"}, "thinking": {"type": "adaptive", "display": "summarized"}}),
            ),
            ("anthropic+http://h/v1#claude-opus-4-5", json!({"output_config": {"effort": "high"}})),
            (
                "gemini+http://h/v1#gemini-3.5-flash",
                json!({"thinkingConfig": {"thinkingLevel": "high", "includeThoughts": true}}),
            ),
        ] {
            assert_eq!(request(&model(address), chosen.clone()), (Some(9000), fields), "{address}");
        }
        let budget = json!({"thinkingTokens": 5000});
        assert_eq!(
            request(&model("anthropic+http://h/v1#claude-haiku-4-5"), budget.clone()),
            (Some(64_000), json!({"thinking": {"type": "enabled", "budget_tokens": 5000}}))
        );
        assert_eq!(
            request(&model("gemini+http://h/v1#gemini-2.5-pro"), budget.clone()),
            (None, json!({"thinkingConfig": {"thinkingBudget": 5000, "includeThoughts": true}}))
        );
        assert_eq!(request(&model("https://api.openai.com/v1#gpt-5.5"), budget), (None, json!({})));
    }

    #[test]
    fn thinking_fits_into_the_answer_and_what_is_thought_is_shown() {
        let both = json!({"thinkingTokens": 50_000, "maxOutputTokens": 2000});
        let (answer, fields) = request(&model("anthropic+http://h/v1#claude-haiku-4-5"), both);
        assert_eq!((answer, &fields["thinking"]["budget_tokens"]), (Some(2000), &json!(1999)));
        let (_, fields) = request(&model("anthropic+http://h/v1#claude-sonnet-5-5"), json!({}));
        assert_eq!(fields, json!({"thinking": {"type": "adaptive", "display": "summarized"}}));
        let (_, fields) = request(&model("anthropic+http://h/v1#claude-opus-4-8"), json!({}));
        assert_eq!(fields, json!({}), "it thinks only if it is asked to");
    }

    #[test]
    fn a_model_that_is_to_say_little_thinks_little() {
        for (address, fields) in [
            ("responses+https://h/v1#gpt-5", json!({"reasoning": {"effort": "minimal"}})),
            ("https://api.openai.com/v1#gpt-5-nano", json!({"reasoning_effort": "minimal"})),
            (
                "anthropic+http://h/v1#claude-sonnet-5-5",
                json!({"output_config": {"effort": "low"}}),
            ),
            ("anthropic+http://h/v1#claude-opus-4-8", json!({})),
            (
                "gemini+http://h/v1#gemini-3.1-flash-lite",
                json!({"thinkingConfig": {"thinkingLevel": "minimal"}}),
            ),
            ("http://localhost/v1#qwen3", json!({})),
        ] {
            assert_eq!(Value::Object(least_thinking(&model(address))), fields, "{address}");
        }
    }

    #[test]
    fn what_a_model_thinks_is_asked_for_where_it_is_known_to_think() {
        let unasked = |address: &str| request(&model(address), json!({})).1;
        let summary = json!({"reasoning": {"summary": "auto"}});
        assert_eq!(unasked("responses+https://h/v1#gpt-5.5"), summary);
        assert_eq!(unasked("responses+https://h/v1#gpt-4.1"), json!({}));
        assert_eq!(unasked("responses+https://h/v1#strange"), json!({}));
        let thoughts = json!({"thinkingConfig": {"includeThoughts": true}});
        assert_eq!(unasked("gemini+http://h/v1#gemini-3.8-flash"), thoughts);
        assert_eq!(unasked("gemini+http://h/v1#strange"), json!({}));
        let off = json!({"thinkingTokens": 0});
        assert_eq!(
            request(&model("gemini+http://h/v1#gemini-2.5-flash"), off).1,
            json!({"thinkingConfig": {"thinkingBudget": 0}})
        );
        let mut own = model("responses+https://h/v1#gpt-5.5");
        own.settings = Some(json!({"reasoning": {"type": "object"}}));
        assert_eq!(request(&own, json!({})).1, json!({}));
    }

    #[test]
    fn the_configuration_may_have_its_own_words_for_it() {
        let mut model = model("anthropic+http://h/v1#claude-sonnet-5-5");
        model.settings = Some(json!({"thinking": {"type": "object"}}));
        let schema = schema(&model).unwrap().unwrap();
        assert!(schema["properties"].get("reasoningEffort").is_none(), "{schema}");
        let off = json!({"thinking": {"type": "disabled"}, "reasoningEffort": "low"});
        assert_eq!(request(&model, off).1, json!({"thinking": {"type": "disabled"}}));
    }
}
