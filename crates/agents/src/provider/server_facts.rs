//! What a server says of a model it has: in its list of models, or where its kind of server says such things.
//!
//! Promises: what it does not say stays unknown; a number that cannot be true is not believed; a server of another machine is
//! asked for nothing that its API does not have.
//! Must not know: what is done with it.

use serde_json::{Value, json};

use super::{Api, ModelEndpoint, ProviderError, ProviderErrorKind, gemini, http, openai_chat};
use crate::model_data::{ModelFacts, Prices};

/// More tokens than any model reads.
const TOKENS_MAX: u64 = 1 << 30;
/// More efforts than any model has, and the longest name of one.
const EFFORTS_MAX: usize = 16;
const EFFORT_BYTES_MAX: usize = 32;

/// Asks a server what it says of one of its models. Nothing said is nothing known.
pub async fn ask_facts(endpoint: &ModelEndpoint, model: &str) -> Result<ModelFacts, ProviderError> {
    match endpoint.api() {
        Api::Anthropic => {
            let entry = get_json(endpoint, &["models", model]).await?;
            Ok(of_anthropic(&entry.unwrap_or_default()))
        }
        Api::Gemini => {
            let name = gemini::short_name(model);
            let entry = get_json(endpoint, &["models", &name]).await?;
            Ok(of_gemini(&entry.unwrap_or_default()))
        }
        Api::Chat | Api::Responses => {
            let list = get_json(endpoint, openai_chat::MODELS_PATH).await?;
            let entry = list.as_ref().and_then(|list| find(list, model));
            let said = entry.map(of_entry).unwrap_or_default();
            let kind = match ServerKind::of(entry, endpoint) {
                // What it says of its models in its own list is what it has to say.
                ServerKind::AnyLocal if said != ModelFacts::default() => ServerKind::Other,
                kind => kind,
            };
            Ok(ask_kind(endpoint, model, kind).await?.or(said))
        }
    }
}

/// A document of the API; `None` where there is none.
async fn get_json(endpoint: &ModelEndpoint, path: &[&str]) -> Result<Option<Value>, ProviderError> {
    read(http::get(endpoint, path).await)
}

async fn get_beside(
    endpoint: &ModelEndpoint,
    path: &[&str],
    question: Option<&Value>,
) -> Result<Option<Value>, ProviderError> {
    read(http::get_beside(endpoint, path, question).await)
}

fn read(got: Result<Vec<u8>, ProviderError>) -> Result<Option<Value>, ProviderError> {
    match got {
        Ok(body) => Ok(serde_json::from_slice(&body).ok()),
        // It answers, and does not have that.
        Err(error)
            if matches!(
                error.kind,
                ProviderErrorKind::Rejected | ProviderErrorKind::Unreadable
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The entry of a model in a list.
fn find<'a>(list: &'a Value, model: &str) -> Option<&'a Value> {
    let entries = list["data"].as_array().or_else(|| list["models"].as_array())?;
    let is_meant = |entry: &&Value| {
        let names = ["id", "name", "model"].into_iter().filter_map(|field| entry[field].as_str());
        let mut names = names;
        names.any(|name| name == model || name.strip_suffix(":latest") == Some(model))
    };
    entries.iter().find(is_meant)
}

/// What kind of server it is, as far as that tells where more is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerKind {
    Ollama,
    LlamaCpp,
    LmStudio,
    /// A server of this machine that does not say what it is.
    AnyLocal,
    Other,
}

impl ServerKind {
    fn of(entry: Option<&Value>, endpoint: &ModelEndpoint) -> Self {
        match entry.and_then(|entry| entry["owned_by"].as_str()) {
            Some("library") => Self::Ollama,
            Some("llamacpp") => Self::LlamaCpp,
            Some("organization_owner" | "organization-owner") => Self::LmStudio,
            Some("vllm") => Self::Other, // its list says it all
            Some(_) | None if endpoint.is_local() => Self::AnyLocal,
            Some(_) | None => Self::Other,
        }
    }

    fn may_be(self, kind: Self) -> bool {
        self == kind || self == Self::AnyLocal
    }
}

async fn ask_kind(
    endpoint: &ModelEndpoint,
    model: &str,
    kind: ServerKind,
) -> Result<ModelFacts, ProviderError> {
    if kind.may_be(ServerKind::Ollama) {
        let shown = get_beside(endpoint, &["api", "show"], Some(&json!({"model": model}))).await?;
        if let Some(shown) = shown.filter(|shown| shown.get("model_info").is_some()) {
            let running = get_beside(endpoint, &["api", "ps"], None).await?;
            return Ok(of_ollama(&shown, running.as_ref().and_then(|list| find(list, model))));
        }
    }
    if kind.may_be(ServerKind::LlamaCpp) {
        let props = get_beside(endpoint, &["props"], None).await?;
        if let Some(props) =
            props.filter(|props| props.get("default_generation_settings").is_some())
        {
            return Ok(of_llama_cpp(&props));
        }
    }
    if kind.may_be(ServerKind::LmStudio) {
        let list = get_beside(endpoint, &["api", "v0", "models"], None).await?;
        if let Some(entry) = list.as_ref().and_then(|list| find(list, model)) {
            return Ok(of_lm_studio(entry));
        }
    }
    Ok(ModelFacts::default())
}

fn tokens(value: &Value) -> Option<u64> {
    value.as_u64().filter(|tokens| (1..=TOKENS_MAX).contains(tokens))
}

/// An entry of a list in the shape of OpenAI's, with what others add to it: OpenRouter, vLLM, Groq, Mistral, Together.
fn of_entry(entry: &Value) -> ModelFacts {
    let first = |fields: &[&str]| fields.iter().find_map(|field| tokens(&entry[*field]));
    let provider = &entry["top_provider"];
    let modalities = entry["architecture"]["input_modalities"].as_array();
    let takes = |name: &str| modalities.map(|all| all.iter().any(|it| it == name));
    let capabilities = &entry["capabilities"];
    let parameters = entry["supported_parameters"].as_array();
    let tools = parameters.map(|all| all.iter().any(|it| it == "tools"));
    ModelFacts {
        context_tokens: first(&[
            "context_length",
            "max_model_len",
            "context_window",
            "max_context_length",
        ]),
        output_tokens: tokens(&provider["max_completion_tokens"])
            .or(first(&["max_completion_tokens", "max_output_tokens"])),
        image: takes("image").or(capabilities["vision"].as_bool()),
        pdf: takes("file"),
        audio: takes("audio"),
        video: takes("video"),
        tools: tools.or(capabilities["function_calling"].as_bool()),
        prices: of_pricing(&entry["pricing"]),
        ..ModelFacts::default()
    }
}

/// OpenRouter's prices are texts, per token. Less than nothing means that it depends.
fn of_pricing(pricing: &Value) -> Option<Prices> {
    let price = |field: &str| {
        let per_token: f64 = pricing[field].as_str()?.parse().ok()?;
        // Rounded: a millionth of a cent is no price.
        let price = (per_token * 1e12).round() / 1e6;
        (price.is_finite() && price >= 0.0).then_some(price)
    };
    Some(Prices {
        input: price("prompt")?,
        output: price("completion")?,
        cache_read: price("input_cache_read"),
        cache_write: price("input_cache_write"),
        long_prompt: None,
    })
}

fn of_anthropic(entry: &Value) -> ModelFacts {
    let capabilities = &entry["capabilities"];
    let supports = |name: &str| capabilities[name]["supported"].as_bool();
    let efforts = capabilities["effort"].as_object().map(|levels| {
        let levels = levels
            .iter()
            .filter(|(_, level)| level["supported"] == true)
            .map(|(name, _)| name.clone());
        levels.filter(|name| name.len() <= EFFORT_BYTES_MAX).take(EFFORTS_MAX).collect()
    });
    ModelFacts {
        context_tokens: tokens(&entry["max_input_tokens"]),
        output_tokens: tokens(&entry["max_tokens"]),
        image: supports("image_input"),
        pdf: supports("pdf_input"),
        efforts,
        ..ModelFacts::default()
    }
}

fn of_gemini(entry: &Value) -> ModelFacts {
    ModelFacts {
        context_tokens: tokens(&entry["inputTokenLimit"]),
        output_tokens: tokens(&entry["outputTokenLimit"]),
        ..ModelFacts::default()
    }
}

/// What the model could read is not what its server lets it read: that is said of a model that runs, or by its parameters.
fn of_ollama(shown: &Value, running: Option<&Value>) -> ModelFacts {
    let capabilities = shown["capabilities"].as_array();
    let has = |name: &str| capabilities.map(|all| all.iter().any(|it| it == name));
    let parameters = shown["parameters"].as_str().unwrap_or("");
    let parameter = parameters
        .lines()
        .find_map(|line| line.trim().strip_prefix("num_ctx"))
        .and_then(|number| number.trim().parse().ok());
    let running = running.and_then(|model| tokens(&model["context_length"]));
    ModelFacts {
        context_tokens: running.or(parameter.filter(|tokens| (1..=TOKENS_MAX).contains(tokens))),
        image: has("vision"),
        // It has no shape for documents, sounds and films.
        pdf: Some(false),
        audio: Some(false),
        tools: has("tools"),
        ..ModelFacts::default()
    }
}

fn of_llama_cpp(props: &Value) -> ModelFacts {
    let modalities = &props["modalities"];
    ModelFacts {
        context_tokens: tokens(&props["default_generation_settings"]["n_ctx"]),
        image: modalities["vision"].as_bool(),
        audio: modalities["audio"].as_bool(),
        pdf: modalities.is_object().then_some(false),
        ..ModelFacts::default()
    }
}

fn of_lm_studio(entry: &Value) -> ModelFacts {
    let loaded = tokens(&entry["loaded_context_length"]);
    let capabilities = entry["capabilities"].as_array();
    ModelFacts {
        context_tokens: loaded.or(tokens(&entry["max_context_length"])),
        image: entry["type"].as_str().map(|kind| kind == "vlm"),
        tools: capabilities.map(|all| all.iter().any(|it| it == "tool_use")),
        ..ModelFacts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_say_more_or_less() {
        let router = json!({"id": "a/b", "context_length": 200_000, "top_provider": {"max_completion_tokens": 64_000},
            "architecture": {"input_modalities": ["text", "image", "file"]}, "supported_parameters": ["tools", "reasoning"],
            "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"}});
        let facts = of_entry(&router);
        assert_eq!((facts.context_tokens, facts.output_tokens), (Some(200_000), Some(64_000)));
        assert_eq!((facts.image, facts.pdf, facts.audio), (Some(true), Some(true), Some(false)));
        let prices = facts.prices.unwrap();
        assert_eq!(
            (prices.input, prices.output, prices.cache_read, prices.cache_write),
            (3.0, 15.0, Some(0.3), None)
        );
        assert_eq!(of_entry(&json!({"id": "m", "max_model_len": 8192})).context_tokens, Some(8192));
        assert_eq!(
            of_entry(&json!({"id": "gpt", "object": "model", "owned_by": "openai"})),
            ModelFacts::default()
        );
    }

    #[test]
    fn what_cannot_be_true_is_not_believed() {
        for entry in [
            json!({"context_length": 0}),
            json!({"context_length": -1}),
            json!({"context_length": "8192"}),
            json!({"context_length": u64::MAX}),
            json!({"pricing": {"prompt": "-1", "completion": "-1"}}),
            json!({"pricing": {"prompt": "NaN", "completion": "1"}}),
            json!([]),
            json!(null),
        ] {
            assert_eq!(of_entry(&entry), ModelFacts::default(), "{entry}");
        }
    }

    #[test]
    fn vendors_say_it_in_their_own_words() {
        let entry = json!({"id": "claude-x", "max_input_tokens": 1_000_000, "max_tokens": 128_000, "capabilities": {
            "image_input": {"supported": true}, "pdf_input": {"supported": false},
            "effort": {"supported": true, "low": {"supported": true}, "max": {"supported": false}}}});
        let facts = of_anthropic(&entry);
        assert_eq!((facts.context_tokens, facts.pdf), (Some(1_000_000), Some(false)));
        assert_eq!(facts.efforts, Some(vec!["low".to_owned()]));
        assert_eq!(of_anthropic(&json!({"id": "claude-x"})), ModelFacts::default());
        let facts = of_gemini(
            &json!({"name": "models/g", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}),
        );
        assert_eq!(facts.output_tokens, Some(65_536));
    }

    #[test]
    fn local_servers_say_what_they_let_a_model_read() {
        let shown = json!({"capabilities": ["completion", "vision"], "parameters": "stop \"x\"\nnum_ctx    16384",
            "model_info": {"qwen3.context_length": 262_144}});
        let facts = of_ollama(&shown, None);
        assert_eq!(
            (facts.context_tokens, facts.image, facts.tools),
            (Some(16_384), Some(true), Some(false))
        );
        let running = json!({"context_length": 4096});
        assert_eq!(of_ollama(&shown, Some(&running)).context_tokens, Some(4096));
        assert_eq!(
            of_ollama(&json!({"model_info": {"x.context_length": 9}}), None).context_tokens,
            None
        );
        let props = json!({"default_generation_settings": {"n_ctx": 8192}, "modalities": {"vision": false, "audio": false}});
        let facts = of_llama_cpp(&props);
        assert_eq!(
            (facts.context_tokens, facts.image, facts.pdf),
            (Some(8192), Some(false), Some(false))
        );
        let facts = of_lm_studio(
            &json!({"id": "m", "type": "vlm", "max_context_length": 32_768, "loaded_context_length": 4096}),
        );
        assert_eq!((facts.context_tokens, facts.image), (Some(4096), Some(true)));
    }
}
