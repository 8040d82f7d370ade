//! What is known of models without asking anybody: sizes, what they take, how they think, what they cost.
//!
//! Promises: everything has a source and a date; what no source says is unknown, never zero; what a server or a user says wins
//! over it.
//! Must not know: how a model is asked.

mod names;
mod prices;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

pub use prices::{LongPromptPrices, Prices};

const DATA: &str = include_str!("models.toml");

static KNOWN: LazyLock<ModelData> = LazyLock::new(|| match toml::from_str(DATA) {
    Ok(data) => data,
    Err(error) => unreachable!("the data is read by a test: {error}"),
});

/// The file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelData {
    defaults: BTreeMap<String, String>,
    models: Vec<KnownModel>,
}

/// A model that something is known of.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "toml::Table")]
pub struct KnownModel {
    pub names: Vec<String>,
    /// When the source said it.
    pub date: String,
    pub source: String,
    pub facts: ModelFacts,
}

impl TryFrom<toml::Table> for KnownModel {
    type Error = toml::de::Error;

    /// All but the first three keys are facts; flattened, unknown ones would be ignored.
    fn try_from(mut entry: toml::Table) -> Result<Self, Self::Error> {
        let mut about = toml::Table::new();
        for key in ["names", "date", "source"] {
            about.extend(entry.remove_entry(key));
        }
        let about: DataOrigin = about.try_into()?;
        Ok(Self {
            names: about.names,
            date: about.date,
            source: about.source,
            facts: entry.try_into()?,
        })
    }
}

#[derive(Deserialize)]
struct DataOrigin {
    names: Vec<String>,
    date: String,
    source: String,
}

/// What is known of a model. `None` is unknown.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelFacts {
    /// What it can read at once, its answer included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// The longest answer it can write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdf: Option<bool>,
    /// The most pages of a PDF.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdf_pages: Option<u64>,
    /// The largest PDF.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdf_bytes: Option<u64>,
    /// Whether it can open an encrypted PDF.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdf_encrypted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audio: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// How much it may be told to think, in its server's words, least first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efforts: Option<Vec<String>>,
    /// How much it thinks if it is told nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_effort: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_thinking: Option<AdaptiveThinking>,
    /// Between which numbers of tokens its thinking may be limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_tokens: Option<ThinkingTokens>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// Whether a model that decides itself how much it thinks does so unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AdaptiveThinking {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThinkingTokens {
    pub min: u64,
    /// No more than the longest answer if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

impl ModelFacts {
    /// These facts, and what they leave open as another source has it.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            context_tokens: self.context_tokens.or(other.context_tokens),
            output_tokens: self.output_tokens.or(other.output_tokens),
            image: self.image.or(other.image),
            pdf: self.pdf.or(other.pdf),
            pdf_pages: self.pdf_pages.or(other.pdf_pages),
            pdf_bytes: self.pdf_bytes.or(other.pdf_bytes),
            pdf_encrypted: self.pdf_encrypted.or(other.pdf_encrypted),
            audio: self.audio.or(other.audio),
            video: self.video.or(other.video),
            tools: self.tools.or(other.tools),
            efforts: self.efforts.or(other.efforts),
            default_effort: self.default_effort.or(other.default_effort),
            adaptive_thinking: self.adaptive_thinking.or(other.adaptive_thinking),
            thinking_tokens: self.thinking_tokens.or(other.thinking_tokens),
            prices: self.prices.or(other.prices),
        }
    }
}

/// What is known of a model by a name that a server has for it.
pub fn find(name: &str) -> Option<&'static KnownModel> {
    let models = KNOWN.models.iter();
    let mut found = models.filter_map(|model| {
        let names = model.names.iter();
        let meant = names.filter(|known| names::means(name, known));
        meant.map(String::len).max().map(|length| (length, model))
    });
    let first = found.next()?;
    // The longest name says the most.
    let best = found.fold(first, |best, other| if other.0 > best.0 { other } else { best });
    Some(best.1)
}

/// The model that a vendor is asked for unless somebody says otherwise.
pub fn default_model(vendor: &str) -> Option<&'static str> {
    KNOWN.defaults.get(vendor).map(String::as_str)
}

/// All that is known, for tables.
pub fn all() -> &'static [KnownModel] {
    &KNOWN.models
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_can_be_read_and_says_where_it_is_from() {
        let read: Result<ModelData, _> = toml::from_str(DATA);
        let data = read.unwrap();
        assert!(data.models.len() > 50);
        for model in &data.models {
            let name = &model.names;
            let date: Result<jiff::civil::Date, _> = model.date.parse();
            assert!(date.is_ok(), "{name:?}: {}", model.date);
            assert!(model.source.contains('.'), "{name:?}: {}", model.source);
            let facts = &model.facts;
            let (context, output) = (facts.context_tokens, facts.output_tokens);
            assert!(context.unwrap() >= output.unwrap(), "{name:?}");
            assert!(facts.prices.unwrap().are_possible(), "{name:?}");
            assert_ne!(facts.pdf_pages, Some(0), "{name:?}");
            if facts.pdf != Some(true) {
                assert_eq!((facts.pdf_pages, facts.pdf_encrypted), (None, None), "{name:?}");
            }
            if let Some(default) = &facts.default_effort {
                assert!(facts.efforts.as_ref().unwrap().contains(default), "{name:?}");
            }
        }
    }

    /// A row of the table in docs/models.md.
    fn row(model: &KnownModel) -> String {
        let facts = &model.facts;
        let grouped = |number: Option<u64>| number.map_or("?".to_owned(), group);
        let pages = facts.pdf_pages.map(|pages| format!(" ({} pages)", group(pages)));
        let takes = [
            (facts.image, "images".to_owned()),
            (facts.pdf, format!("PDFs{}", pages.unwrap_or_default())),
            (facts.audio, "audio".to_owned()),
            (facts.video, "video".to_owned()),
        ];
        let takes: Vec<String> = takes
            .into_iter()
            .filter(|(takes, _)| *takes == Some(true))
            .map(|(_, name)| name)
            .collect();
        let by_tokens = facts.thinking_tokens.map_or("", |_| "tokens");
        let efforts = facts.efforts.as_ref().map(|efforts| efforts.join(" "));
        let prices = facts.prices.unwrap();
        let mut price = format!("{} / {}", prices.input, prices.output);
        if let Some(cached) = prices.cache_read {
            price.push_str(&format!(" / {cached}"));
        }
        if let Some(long) = prices.long_prompt {
            let above = group(long.above);
            let (input, output) = (long.input, long.output);
            price.push_str(&format!("; from {above} tokens {input} / {output}"));
        }
        let names: Vec<String> = model.names.iter().map(|name| format!("`{name}`")).collect();
        format!(
            "| {} | {} | {} | {} | {} | {price} | {}, {} |",
            names.join(", "),
            grouped(facts.context_tokens),
            grouped(facts.output_tokens),
            takes.join(", "),
            efforts.as_deref().unwrap_or(by_tokens),
            model.date,
            model.source,
        )
    }

    fn group(number: u64) -> String {
        let digits = number.to_string();
        let mut grouped = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        grouped
    }

    #[test]
    fn the_table_of_the_documents_says_the_same() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models.md");
        let document = std::fs::read_to_string(path).unwrap();
        for model in &KNOWN.models {
            let row = row(model);
            assert!(document.contains(&row), "docs/models.md lacks\n{row}");
        }
        for (vendor, name) in &KNOWN.defaults {
            let cell = format!("| `{name}` |");
            assert!(document.contains(&cell), "{vendor}: {name}");
        }
    }

    #[test]
    fn no_unknown_key_goes_unnoticed() {
        let model =
            "[defaults]\n[[models]]\nnames = [\"m\"]\ndate = \"2026-01-01\"\nsource = \"s\"\n";
        let read = |more: &str| toml::from_str::<ModelData>(&format!("{model}{more}"));
        assert!(read("context_tokens = 1\n").is_ok());
        let error = read("contxt_tokens = 1\n").unwrap_err().to_string();
        assert!(error.contains("contxt_tokens"), "{error}");
    }

    #[test]
    fn a_name_belongs_to_one_model() {
        let models = &KNOWN.models;
        for model in models {
            for name in &model.names {
                assert_eq!(find(name), Some(model), "{name}");
                let owners = models.iter().filter(|other| other.names.contains(name));
                assert_eq!(owners.count(), 1, "{name}");
            }
        }
        assert_eq!(find("qwen3:8b"), None);
    }

    #[test]
    fn every_vendor_has_a_default_that_is_known() {
        for vendor in ["anthropic", "openai", "gemini", "openrouter"] {
            let name = default_model(vendor).unwrap();
            let known = find(name).unwrap();
            assert!(known.facts.tools == Some(true), "{name}");
        }
        assert_eq!(default_model("nobody"), None);
    }

    #[test]
    fn what_is_said_wins_over_what_is_known() {
        let said =
            ModelFacts { context_tokens: Some(1), image: Some(false), ..ModelFacts::default() };
        let known = find("claude-haiku-4-5-20251001").unwrap().facts.clone();
        let facts = said.or(known.clone());
        assert_eq!((facts.context_tokens, facts.image), (Some(1), Some(false)));
        assert_eq!(facts.output_tokens, known.output_tokens);
        assert_eq!(facts.pdf_pages, Some(100));
    }
}
