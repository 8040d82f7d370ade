//! What stands behind `/model`: a model, and settings of it as KEY=VALUE.
//!
//! Promises: a setting that the model does not have, or a value that it does not take, is an error that names those that there are.
//! What is proposed while it is typed is what can be entered.
//! Must not know: terminals, connections.

use std::ops::Range;

use client::chat::{ModelOffer, ModelSelection};

use crate::terminal::escape_line;

/// Something that the word at the cursor may become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgumentProposal {
    /// What of the line it goes in place of, in bytes.
    pub(crate) replaces: Range<usize>,
    pub(crate) text: String,
    /// What else there is to know about it. Safe to print.
    pub(crate) about: String,
}

/// A model that was named, with what was set about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedModel {
    pub(crate) offer: ModelOffer,
    pub(crate) selection: ModelSelection,
}

/// Reads what was entered behind `/model`.
pub(crate) fn parse(arguments: &str, models: &[ModelOffer]) -> Result<NamedModel, String> {
    let Some((offer, rest)) = find_model(arguments.trim(), models) else {
        let name = arguments.split_whitespace().next().unwrap_or("");
        let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
        return Err(format!("there is no model {name}; there are {}", ids.join(", ")));
    };
    if let Some(why) = offer.unavailable {
        return Err(format!("{} is {why}", offer.name));
    }
    let mut selection = ModelSelection { id: offer.id.clone(), ..ModelSelection::default() };
    for word in rest.split_whitespace() {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| format!("{word} is not a setting: write KEY=VALUE"))?;
        let setting = offer
            .settings
            .iter()
            .find(|setting| setting.key == key)
            .ok_or_else(|| no_such_setting(offer, key))?;
        let value = setting.parse(value).map_err(|error| error.to_string())?;
        selection.settings.insert(key.to_owned(), value);
    }
    Ok(NamedModel { offer: offer.clone(), selection })
}

fn no_such_setting(offer: &ModelOffer, key: &str) -> String {
    let keys: Vec<&str> = offer.settings.iter().map(|setting| setting.key.as_str()).collect();
    if keys.is_empty() {
        format!("{} has no settings", offer.name)
    } else {
        format!("{} has no setting {key}; it has {}", offer.name, keys.join(", "))
    }
}

/// The model that a text begins with, by its id or its name, and what stands behind. A longer name wins: another may begin it.
fn find_model<'a, 'b>(
    text: &'b str,
    models: &'a [ModelOffer],
) -> Option<(&'a ModelOffer, &'b str)> {
    let named = models
        .iter()
        .flat_map(|model| {
            [&model.id, &model.name].map(|name| (model, text.strip_prefix(name.as_str())))
        })
        .filter_map(|(model, rest)| Some((model, rest?)));
    named
        .filter(|(_, rest)| rest.is_empty() || rest.starts_with(char::is_whitespace))
        .min_by_key(|(_, rest)| rest.len())
}

/// What the word before the cursor may become, in a line that begins with the command.
pub(crate) fn propose(line: &str, cursor: usize, models: &[ModelOffer]) -> Vec<ArgumentProposal> {
    let Some(typed) = line.get(..cursor) else {
        return Vec::new(); // the cursor is in no place of this line
    };
    let word_start = typed
        .char_indices()
        .rev()
        .find(|(_, c)| c.is_whitespace())
        .map_or(0, |(at, c)| at + c.len_utf8());
    let command_end = typed.find(char::is_whitespace).unwrap_or(typed.len());
    let before = typed.get(command_end..word_start).unwrap_or("").trim();
    let word = typed.get(word_start..).unwrap_or("");
    let replaces = word_start..cursor;
    match find_model(before, models) {
        Some((model, given)) => propose_settings(model, given, word, &replaces),
        None if before.is_empty() => propose_models(word, &replaces, models),
        None => Vec::new(),
    }
}

fn propose_models(
    word: &str,
    replaces: &Range<usize>,
    models: &[ModelOffer],
) -> Vec<ArgumentProposal> {
    let wanted = word.to_lowercase();
    let fits = |model: &&ModelOffer| {
        model.unavailable.is_none()
            && (model.id.to_lowercase().contains(&wanted)
                || model.name.to_lowercase().contains(&wanted))
    };
    let proposed = models.iter().filter(fits).map(|model| ArgumentProposal {
        replaces: replaces.clone(),
        text: model.id.clone(),
        about: if model.name == model.id { String::new() } else { escape_line(&model.name) },
    });
    proposed.collect()
}

fn propose_settings(
    model: &ModelOffer,
    given: &str,
    word: &str,
    replaces: &Range<usize>,
) -> Vec<ArgumentProposal> {
    let is_given = |key: &str| {
        let mut given = given.split_whitespace();
        given.any(|word| word.split('=').next() == Some(key))
    };
    let mut proposed = Vec::new();
    for setting in model.settings.iter().filter(|setting| !is_given(&setting.key)) {
        let mut propose = |text: String, about: &str| {
            if text.starts_with(word) {
                proposed.push(ArgumentProposal {
                    replaces: replaces.clone(),
                    text,
                    about: escape_line(about),
                });
            }
        };
        match setting.values() {
            // The value is typed: it is a number or a text.
            [] => propose(format!("{}=", setting.key), &setting.description),
            values => {
                for value in values {
                    let typed = match value.value.as_str() {
                        Some(text) => text,
                        None => value.label.as_str(),
                    };
                    let about = format!("{}: {}", setting.title, value.label);
                    propose(format!("{}={typed}", setting.key), &about);
                }
            }
        }
    }
    proposed
}

#[cfg(test)]
mod tests {
    use client::chat::{ModelSetting, ModelSettingValue, SettingKind};
    use serde_json::json;

    use super::*;

    fn models() -> Vec<ModelOffer> {
        let effort = ModelSetting {
            key: "effort".to_owned(),
            title: "Effort".to_owned(),
            description: String::new(),
            default: None,
            kind: SettingKind::OneOf(
                ["low", "high"]
                    .map(|value| ModelSettingValue {
                        value: json!(value),
                        label: value.to_uppercase(),
                    })
                    .to_vec(),
            ),
        };
        let tokens = ModelSetting {
            key: "tokens".to_owned(),
            title: "Tokens".to_owned(),
            description: "How many".to_owned(),
            default: None,
            kind: SettingKind::Number { is_whole: true, min: None, max: None },
        };
        let model = |id: &str, name: &str, settings: &[&ModelSetting]| ModelOffer {
            id: id.to_owned(),
            name: name.to_owned(),
            context_tokens: None,
            unavailable: None,
            settings: settings.iter().map(|setting| (*setting).clone()).collect(),
        };
        let mut gone = model("gone", "gone", &[]);
        gone.unavailable = Some("not available");
        vec![
            model("small", "The small one", &[]),
            model("small-2", "small-2", &[&effort, &tokens]),
            gone,
        ]
    }

    #[test]
    fn a_model_is_named_with_its_settings() {
        let parse = |arguments: &str| parse(arguments, &models());
        let named = parse("small-2 effort=high tokens=7").unwrap();
        assert_eq!(named.offer.id, "small-2");
        let settings = json!(named.selection.settings);
        assert_eq!(settings, json!({"effort": "high", "tokens": 7}));
        assert_eq!(parse("The small one").unwrap().offer.id, "small");
        for (arguments, why) in [
            ("large", "there is no model large; there are small, small-2, gone"),
            ("small-2 effort", "effort is not a setting: write KEY=VALUE"),
            ("small-2 effort=most", "effort is one of low, high"),
            ("small-2 tokens=x", "tokens is a whole number"),
            ("small-2 heat=1", "small-2 has no setting heat; it has effort, tokens"),
            ("small heat=1", "The small one has no settings"),
            ("gone", "gone is not available"),
        ] {
            assert_eq!(parse(arguments).unwrap_err(), why);
        }
    }

    #[test]
    fn what_can_be_entered_is_proposed() {
        let propose = |line: &str| {
            let proposed = propose(line, line.len(), &models());
            let proposed = proposed.iter().map(|proposal| {
                let mut line = line.to_owned();
                line.replace_range(proposal.replaces.clone(), &proposal.text);
                line
            });
            proposed.collect::<Vec<String>>().join("|")
        };
        assert_eq!(propose("/model "), "/model small|/model small-2");
        assert_eq!(propose("/model ONE"), "/model small");
        assert_eq!(propose("/model small"), "/model small|/model small-2");
        assert_eq!(propose("/model small "), "");
        assert_eq!(
            propose("/model small-2 "),
            "/model small-2 effort=low|/model small-2 effort=high|/model small-2 tokens="
        );
        assert_eq!(propose("/model small-2 effort=h"), "/model small-2 effort=high");
        assert_eq!(propose("/model small-2 effort=low t"), "/model small-2 effort=low tokens=");
        assert_eq!(propose("/model large x"), "");
    }
}
