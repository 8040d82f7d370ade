//! What a target's models take, as data: a map that ships with the host, with a user's file merged over it (C-037).
//!
//! Promises: what the map does not say is not sent natively; a file that cannot be read is refused whole, with the
//! location of the error.
//! Must not know: parts. It answers what may be sent, not what is.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::Value;
use wire::Object;

use super::Target;
use crate::media_type::Class;
use crate::resolve::{Animation, ImageLimits};

const BUILT_IN: &str = include_str!("capabilities.json");

/// The map of all targets: `{target: {"default": {...}, "models": {pattern: {...}}}}`. A pattern is a model's id, with
/// `*` for any characters. What matches is laid over the default in the order of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct CapabilityMap(Object);

/// A map that cannot be used; for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("capabilities: {location}: {why}")]
pub struct BadCapabilities {
    location: String,
    why: String,
}

/// What one model of one target takes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Capabilities {
    /// Nothing but one string: all texts are joined, and media are described.
    pub text_only: bool,
    pub image: Option<Media>,
    pub pdf: Option<Media>,
    pub audio: Option<Media>,
    pub video: Option<Media>,
    /// Whatever else; only for targets that are more than a model.
    pub binary: Option<Media>,
    /// Whether slices of files go as resources of their own.
    pub embedded_text: bool,
    /// Of everything that is sent at once.
    pub request_bytes: Option<u64>,
}

/// What is taken of one class of media.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Media {
    /// Exact types; `image/*` and `*` where the target takes all.
    pub mimes: Vec<String>,
    pub base64_bytes_each: Option<u64>,
    /// Of an image's longer side.
    pub side_px: Option<u32>,
    /// What holds instead where there are many.
    pub crowded: Option<ManyImagesLimit>,
    /// In one request.
    pub count: Option<u64>,
    /// Types that are taken unless they move.
    pub still_only: Vec<String>,
    /// The most pages of a document.
    pub pages: Option<u64>,
    /// Whether a document may be encrypted.
    pub encrypted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManyImagesLimit {
    pub above: u64,
    pub side_px: u32,
}

impl CapabilityMap {
    pub fn built_in() -> Self {
        match serde_json::from_str(BUILT_IN) {
            Ok(Value::Object(map)) => Self(map),
            _ => unreachable!("the built-in map is an object, a test reads it"),
        }
    }

    /// The same for many: one map, however often it is asked for.
    pub fn shared_built_in() -> Arc<Self> {
        static MAP: LazyLock<Arc<CapabilityMap>> =
            LazyLock::new(|| Arc::new(CapabilityMap::built_in()));
        Arc::clone(&MAP)
    }

    /// This map with another laid over it: objects are merged, `null` takes away, all else replaces.
    pub fn with(mut self, over: &Value) -> Result<Self, BadCapabilities> {
        let bad = |why: String| BadCapabilities { location: "the file".to_owned(), why };
        let Value::Object(over) = over else { return Err(bad("is not an object".to_owned())) };
        merge_into(&mut self.0, over, DEPTH_MAX).map_err(bad)?;
        self.check()?;
        Ok(self)
    }

    /// What a model of a target takes.
    pub fn of(&self, target: Target, model: Option<&str>) -> Capabilities {
        // What is in the map was checked when it was put there.
        self.read(target, model).unwrap_or_default()
    }

    /// Whether it says something of what a model takes of a kind (`image`, `pdf`, ..), beside what holds for all.
    pub fn is_specific(&self, target: Target, model: &str, kind: &str) -> bool {
        let models = self
            .0
            .get(target.name())
            .and_then(|entry| entry.get("models"))
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let mut matching = models.filter(|(pattern, _)| matches(pattern, model));
        matching.any(|(_, entry)| entry.get(kind).is_some())
    }

    fn check(&self) -> Result<(), BadCapabilities> {
        for (name, entry) in &self.0 {
            let bad = |why: &str| BadCapabilities { location: name.clone(), why: why.to_owned() };
            let target = Target::from_name(name).ok_or_else(|| bad("is not a target"))?;
            let entry = entry.as_object().ok_or_else(|| bad("is not an object"))?;
            let known = ["default", "models"];
            if let Some(key) = entry.keys().find(|key| !known.contains(&key.as_str())) {
                return Err(bad(&format!("`{key}` is neither `default` nor `models`")));
            }
            if entry.get("default").is_some_and(|default| !default.is_object()) {
                return Err(bad("`default` is not an object"));
            }
            self.read(target, None)?;
            let models = match entry.get("models") {
                None => continue,
                Some(models) => {
                    models.as_object().ok_or_else(|| bad("`models` is not an object"))?
                }
            };
            for (pattern, entry) in models {
                let location = || format!("{name}: models: {pattern}");
                if !entry.is_object() {
                    let why = "is not an object".to_owned();
                    return Err(BadCapabilities { location: location(), why });
                }
                read(entry).map_err(|why| BadCapabilities { location: location(), why })?;
            }
        }
        Ok(())
    }

    fn read(&self, target: Target, model: Option<&str>) -> Result<Capabilities, BadCapabilities> {
        let bad = |why: String| BadCapabilities { location: target.name().to_owned(), why };
        let entry = self.0.get(target.name());
        let object = |key: &str| entry.and_then(|entry| entry.get(key)?.as_object());
        let mut entry = object("default").cloned().unwrap_or_default();
        let models = object("models").into_iter().flatten();
        let matching = models.filter(|(pattern, _)| model.is_some_and(|it| matches(pattern, it)));
        for (_, over) in matching {
            let over = over.as_object().ok_or_else(|| bad("is not an object".to_owned()))?;
            merge_into(&mut entry, over, DEPTH_MAX).map_err(bad)?;
        }
        read(&Value::Object(entry)).map_err(bad)
    }
}

impl Capabilities {
    /// What a target takes by the built-in map.
    pub fn built_in(target: Target) -> Self {
        CapabilityMap::built_in().of(target, None)
    }

    /// What is left of it for an agent whose handshake limits what its prompts may hold.
    pub fn with_prompt_capabilities(mut self, entry: &Object) -> Self {
        let accepts = |key: &str| entry.get(key) == Some(&Value::Bool(true));
        self.image = self.image.filter(|_| accepts("image"));
        self.audio = self.audio.filter(|_| accepts("audio"));
        let embedded = accepts("embeddedContext");
        self.pdf = self.pdf.filter(|_| embedded);
        self.video = self.video.filter(|_| embedded);
        self.binary = self.binary.filter(|_| embedded);
        self.embedded_text &= embedded;
        self
    }

    pub(crate) fn of_class(&self, class: Class) -> Option<&Media> {
        match class {
            _ if self.text_only => None,
            Class::Text => None,
            Class::Image => self.image.as_ref(),
            Class::Pdf => self.pdf.as_ref(),
            Class::Audio => self.audio.as_ref(),
            Class::Video => self.video.as_ref(),
            Class::Unknown => self.binary.as_ref(),
        }
    }
}

impl Media {
    pub(crate) fn takes(&self, mime: &str) -> bool {
        self.mimes.iter().any(|taken| match taken.strip_suffix('*') {
            Some(beginning) => mime.starts_with(beginning),
            None => taken == mime,
        })
    }

    /// The limits of an image when the request has so many.
    pub(crate) fn picture(&self, mime: &str, count: u64) -> ImageLimits {
        let crowded = self.crowded.filter(|crowded| count > crowded.above);
        let is_still_only = self.still_only.iter().any(|only| only == mime);
        ImageLimits {
            mimes: self.mimes.clone(),
            bytes_max: self.base64_bytes_each.map(|base64| base64 / 4 * 3),
            side_px_max: crowded.map(|crowded| crowded.side_px).or(self.side_px),
            animation: if is_still_only { Animation::Refused } else { Animation::Allowed },
        }
    }
}

/// Deeper than a map can be.
const DEPTH_MAX: usize = 8;

fn merge_into(under: &mut Object, over: &Object, depth_left: usize) -> Result<(), String> {
    let Some(depth_left) = depth_left.checked_sub(1) else {
        return Err("is nested too deeply".to_owned());
    };
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (_, Value::Null) => {
                under.shift_remove(key);
            }
            (Some(Value::Object(under)), Value::Object(over)) => {
                merge_into(under, over, depth_left)?;
            }
            (_, value) => {
                under.insert(key.clone(), value.clone());
            }
        }
    }
    Ok(())
}

/// A `null` says that something the default has is not there.
fn read(entry: &Value) -> Result<Capabilities, String> {
    Capabilities::deserialize(entry).map_err(|error| error.to_string())
}

/// Whether a model's id is one that a pattern means.
fn matches(pattern: &str, model: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or("");
    let Some(mut rest) = model.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}
