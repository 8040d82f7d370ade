//! What is known of a configured model: what the configuration says, else what its server said, else what is known of the
//! model by its name.
//!
//! Promises: a local model that merely has a vendor's name for one is not taken for it.
//! Must not know: how anything of it is used.

use compositor::lower::{Capabilities, CapabilityMap};

use super::models::Model;
use crate::model_data::{self, ModelFacts};
use crate::provider::Api;

/// The window of a model that nothing is known of: usual today. A server that takes less says so when it is too much.
const CONTEXT_TOKENS: u64 = 128_000;

/// Servers of vendors and of those who pass their models on under the same names. Elsewhere a name may mean anything: some
/// local servers give small models the names of large ones.
const VENDORS: &[&str] = &[
    "anthropic.com",
    "openai.com",
    "openai.azure.com",
    "services.ai.azure.com",
    "openrouter.ai",
    "googleapis.com",
    "amazonaws.com",
    "api.aws",
];

impl Model {
    /// What is known of it.
    pub fn facts(&self) -> ModelFacts {
        self.configured_facts().or(self.reported.clone()).or(self.known())
    }

    /// What the configuration says.
    pub fn configured_facts(&self) -> ModelFacts {
        ModelFacts {
            context_tokens: self.context_tokens,
            output_tokens: self.output_tokens,
            image: self.vision,
            pdf: self.pdf,
            pdf_pages: self.pdf_pages,
            pdf_bytes: self.pdf_bytes,
            pdf_encrypted: self.pdf_encrypted,
            audio: self.audio,
            video: self.video,
            tools: self.tools,
            efforts: self.efforts.clone(),
            prices: self.prices,
            ..ModelFacts::default()
        }
    }

    /// What is known of it by its name.
    pub fn known(&self) -> ModelFacts {
        let known = match &self.known_as {
            Some(name) => model_data::find(name),
            None if self.is_named_by_vendor() => model_data::find(self.server_name()),
            None => None,
        };
        known.map(|known| known.facts.clone()).unwrap_or_default()
    }

    /// Whether its server's names are those of the vendors. The wire formats of vendors are spoken by few others.
    fn is_named_by_vendor(&self) -> bool {
        let is_vendor = |host: &str| {
            VENDORS.iter().any(|vendor| {
                let before = host.strip_suffix(vendor);
                before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
            })
        };
        match self.api {
            Api::Anthropic | Api::Responses | Api::Gemini => true,
            Api::Chat => self.endpoint().is_ok_and(|it| is_vendor(it.host())),
        }
    }

    pub fn context(&self) -> u64 {
        self.facts().context_tokens.unwrap_or(CONTEXT_TOKENS)
    }

    /// Whether it is offered tools.
    pub fn calls_tools(&self) -> bool {
        self.facts().tools.unwrap_or(true)
    }

    /// What it takes of attachments, by what is known of it. What a map says of this very model wins.
    pub fn capabilities(&self, map: &CapabilityMap) -> Capabilities {
        let (target, name) = (self.api.target(), self.server_name());
        let mut taken = map.of(target, Some(name));
        let facts = self.facts();
        let is_open = |kind: &str| !map.is_specific(target, name, kind);
        // Pages of a document and scenes of a film are pictures, too.
        let is_blind = facts.image == Some(false);
        let takes = |said: Option<bool>, known: Option<bool>| match said {
            None if is_blind => Some(false),
            said => said.or(known),
        };
        if is_open("image") && is_blind {
            taken.image = None;
        }
        if is_open("pdf") {
            let is_taken = takes(self.pdf, facts.pdf) != Some(false);
            taken.pdf = taken.pdf.filter(|_| is_taken);
            if let Some(pdf) = &mut taken.pdf {
                let base64 = facts.pdf_bytes.map(|bytes| bytes.div_ceil(3).saturating_mul(4));
                pdf.base64_bytes_each = base64.or(pdf.base64_bytes_each);
                pdf.pages = facts.pdf_pages.or(pdf.pages);
                pdf.encrypted = facts.pdf_encrypted.unwrap_or(pdf.encrypted);
            }
        }
        if is_open("audio") {
            taken.audio = taken.audio.filter(|_| facts.audio != Some(false));
        }
        if is_open("video") {
            let is_taken = takes(self.video, facts.video) != Some(false);
            taken.video = taken.video.filter(|_| is_taken);
        }
        taken
    }

    /// The longest answer that is asked for, unless a message says otherwise. Where a request need not say it, the server knows
    /// best: some ask for the money that the longest answer would cost.
    pub fn answer_tokens(&self) -> Option<u64> {
        match self.api {
            Api::Anthropic => self.facts().output_tokens,
            Api::Chat | Api::Responses | Api::Gemini => self.output_tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(text: &str) -> Model {
        Model::parse(text).unwrap()
    }

    #[test]
    fn the_configuration_wins_then_the_server_then_what_is_known() {
        let mut model = model("anthropic+http://h/v1#claude-haiku-4-5");
        assert_eq!(model.context(), 200_000);
        assert_eq!(model.facts().pdf_pages, Some(100));
        model.reported.context_tokens = Some(150_000);
        model.reported.image = Some(false);
        assert_eq!((model.context(), model.facts().image), (150_000, Some(false)));
        model.context_tokens = Some(90_000);
        model.vision = Some(true);
        assert_eq!((model.context(), model.facts().image), (90_000, Some(true)));
        assert_eq!(model.answer_tokens(), Some(64_000), "Anthropic is always told");
    }

    #[test]
    fn attachments_are_taken_as_far_as_is_known() {
        let map = CapabilityMap::built_in();
        let taken = |model: &Model| {
            let taken = model.capabilities(&map);
            [&taken.image, &taken.pdf, &taken.audio, &taken.video].map(Option::is_some)
        };
        let known = model("anthropic+http://h/v1#claude-haiku-4-5");
        assert_eq!(taken(&known), [true, true, false, false]);
        assert_eq!(known.capabilities(&map).pdf.unwrap().pages, Some(100));
        let gemini = model("gemini+http://h/v1#gemini-2.5-pro");
        assert_eq!(taken(&gemini), [true, true, true, true]);
        let mut blind = gemini;
        blind.vision = Some(false);
        assert_eq!(taken(&blind), [false, false, true, false]);
        blind.pdf = Some(true);
        assert_eq!(taken(&blind), [false, true, true, false], "it reads their text");
        let chat = model("https://api.openai.com/v1#gpt-4o");
        assert_eq!(taken(&chat), [true, true, false, false]);
        let unknown = model("http://localhost/v1#qwen3");
        assert_eq!(taken(&unknown), [true, true, true, false], "it is tried");
        let over = serde_json::json!({"openai_chat": {"models": {"gpt-4o": {"audio": {"mimes": ["audio/wav"]}}}}});
        let map = CapabilityMap::built_in().with(&over).unwrap();
        assert!(chat.capabilities(&map).audio.is_some(), "the file says so");
    }

    #[test]
    fn a_name_means_something_at_the_servers_of_vendors() {
        let prices = |text: &str| model(text).facts().prices;
        assert!(prices("https://api.openai.com/v1#gpt-4o").is_some());
        assert!(prices("https://openrouter.ai/api/v1#anthropic/claude-sonnet-4.5").is_some());
        assert!(prices("https://mine.openai.azure.com/openai/v1#gpt-4o").is_some());
        for elsewhere in [
            "http://localhost:8080/v1#gpt-4o",
            "https://notopenai.com/v1#gpt-4o",
            "https://openrouter.ai/api/v1#openai/gpt-4o:free",
        ] {
            assert_eq!(model(elsewhere).facts(), ModelFacts::default(), "{elsewhere}");
        }
        let mut named = model("http://localhost:8080/v1#mine");
        named.known_as = Some("gpt-4o".to_owned());
        assert_eq!(named.context(), 128_000);
        assert_eq!(named.answer_tokens(), None);
        named.known_as = Some("gpt-4oo".to_owned());
        let error = named.check().unwrap_err().to_string();
        assert!(error.contains("`gpt-4oo`"), "{error}");
    }
}
