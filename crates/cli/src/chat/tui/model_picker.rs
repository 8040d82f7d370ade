//! Choosing a model and its settings, and the permission mode.

use client::chat::{CurrentModel, ModelOffer, ModelSelection, ModelSetting, OfferedMode};
use serde_json::{Map, Value};

use super::TerminalChat;
use super::picker::{Picker, QuestionAction, YesNoQuestion};
use crate::chat::keys::Key;
use crate::chat::menu::{Menu, MenuItem, MenuOutcome, Tone};
use crate::chat::model_argument::{self, ArgumentProposal};
use crate::terminal::escape_line;

/// A setting of a model that was chosen; those behind it are asked for next.
#[derive(Debug)]
pub(super) struct SettingPicker {
    model: ModelSelection,
    /// What people call the model.
    name: String,
    setting: ModelSetting,
    others: Vec<ModelSetting>,
    pub(super) menu: Menu<Value>,
}

impl SettingPicker {
    pub(super) fn heading(&self) -> String {
        let title = escape_line(&self.setting.title);
        let about = if self.setting.description.is_empty() {
            String::new()
        } else {
            format!(": {}", escape_line(&self.setting.description))
        };
        format!("{title} of {}{about} · Escape leaves it as it is", escape_line(&self.name))
    }
}

impl TerminalChat {
    /// `/model`: the list, or the model that is named.
    pub(super) fn open_models(&mut self, name: &str) {
        let models = self.chat.models();
        if models.is_empty() {
            return self.note_error(if self.chat.has_agent() { "this agent has no models to choose from" } else {
                    "the agent of this session is not available on this host; /new starts another session"
                });
        }
        let current = self.current_model_id();
        if !name.is_empty() {
            return match model_argument::parse(name, &models) {
                Ok(named) if named.selection.settings.is_empty() => self.use_model(&named.offer),
                Ok(named) => self.select_model(named.selection, &named.offer),
                Err(why) => {
                    self.note_error(&why);
                    self.give_back_text(&format!("/model {name}"));
                }
            };
        }
        let mut menu = Menu::new(models.iter().map(|model| model_item(model, &current)).collect());
        menu.select(|model| Some(&model.id) == current.as_ref());
        self.open_picker(Picker::Models(menu));
    }

    pub(super) fn choose_model(&mut self, menu: Menu<ModelOffer>) {
        let Some(model) = menu.selected().map(|item| item.value.clone()) else {
            return self.open_picker(Picker::Models(menu)); // nothing matches what was typed
        };
        match model.unavailable {
            Some(why) => {
                self.note_error(&format!("{} is {why}; choose another", model.name));
                self.open_picker(Picker::Models(menu));
            }
            None => self.use_model(&model),
        }
    }

    /// Uses a model from now on, after asking for its settings.
    fn use_model(&mut self, model: &ModelOffer) {
        if let Some(why) = model.unavailable {
            return self.note_error(&format!("{} is {why}", model.name));
        }
        // What was chosen for the same model before stays until something else is.
        let is_current = self.current_model_id().as_ref() == Some(&model.id);
        let selection = ModelSelection {
            id: model.id.clone(),
            settings: if is_current { self.chat.model_settings() } else { Default::default() },
        };
        self.select_model(selection.clone(), model);
        let settings = model.settings.iter().cloned();
        // A number or a text is typed behind the name.
        let settings = settings.filter(|setting| !setting.values().is_empty());
        self.ask_for_setting(selection, &model.name, settings.collect());
    }

    fn select_model(&mut self, selection: ModelSelection, model: &ModelOffer) {
        let chosen = describe_settings(model, &selection.settings);
        self.chat.select_model(selection);
        let chosen = if chosen.is_empty() { String::new() } else { format!(" ({chosen})") };
        self.note(&format!("Later messages go to {}{chosen}", model.name));
    }

    fn current_model_id(&self) -> Option<String> {
        match self.chat.current_model() {
            CurrentModel::Offered(model) => Some(model.id),
            CurrentModel::Gone { .. } | CurrentModel::None => None,
        }
    }

    fn ask_for_setting(
        &mut self,
        model: ModelSelection,
        name: &str,
        mut settings: Vec<ModelSetting>,
    ) {
        if settings.is_empty() {
            return; // all are chosen
        }
        let setting = settings.remove(0);
        let chosen = model.settings.get(&setting.key).cloned();
        let items = setting.values().iter().map(|one| {
            let is_default = setting.default.as_ref() == Some(&one.value);
            let detail = if chosen.as_ref() == Some(&one.value) {
                "in use"
            } else if is_default {
                "default"
            } else {
                ""
            };
            MenuItem::new(one.value.clone(), escape_line(&one.label), detail)
        });
        let mut menu = Menu::new(items.collect());
        let selected = chosen.or_else(|| setting.default.clone());
        menu.select(|value| selected.as_ref() == Some(value));
        self.open_picker(Picker::Setting(SettingPicker {
            model,
            name: name.to_owned(),
            setting,
            others: settings,
            menu,
        }));
    }

    pub(super) fn press_setting(&mut self, mut picker: SettingPicker, key: &Key) {
        match picker.menu.key(key) {
            MenuOutcome::Taken | MenuOutcome::Unused => self.open_picker(Picker::Setting(picker)),
            // The model is chosen; the rest of it stays at its defaults.
            MenuOutcome::Closed => {}
            MenuOutcome::Chosen => {
                if let Some(item) = picker.menu.selected() {
                    let key = picker.setting.key.clone();
                    picker.model.settings.insert(key, item.value.clone());
                }
                self.chat.select_model(picker.model.clone());
                self.ask_for_setting(picker.model, &picker.name, picker.others);
            }
        }
    }

    /// `/approvals`: the list, or the mode that is named.
    pub(super) fn open_modes(&mut self, name: &str) -> anyhow::Result<()> {
        let modes = self.chat.permission_modes();
        if modes.is_empty() {
            self.note_error("the agent of this session has no permission modes");
            return Ok(());
        }
        if !name.is_empty() {
            let is_named = |mode: &&OfferedMode| {
                mode.id == name || mode.title.to_lowercase() == name.to_lowercase()
            };
            return match modes.iter().find(is_named) {
                Some(mode) => self.set_or_ask(mode),
                None => {
                    let names: Vec<&str> = modes.iter().map(|mode| mode.id.as_str()).collect();
                    self.note_error(&format!(
                        "there is no mode {name}; there are {}",
                        names.join(", ")
                    ));
                    Ok(())
                }
            };
        }
        let mut menu = Menu::new(modes.into_iter().map(mode_item).collect());
        menu.select(|mode| mode.is_current);
        self.open_picker(Picker::Modes(menu));
        Ok(())
    }

    pub(super) fn press_modes(
        &mut self,
        mut menu: Menu<OfferedMode>,
        key: &Key,
    ) -> anyhow::Result<()> {
        let outcome = match key {
            Key::BackTab => {
                menu.step();
                MenuOutcome::Taken
            }
            key => menu.key(key),
        };
        match (outcome, menu.selected().map(|item| item.value.clone())) {
            (MenuOutcome::Chosen, Some(mode)) => self.set_or_ask(&mode)?,
            (MenuOutcome::Closed, _) => {}
            (MenuOutcome::Taken | MenuOutcome::Unused | MenuOutcome::Chosen, _) => {
                self.open_picker(Picker::Modes(menu));
            }
        }
        Ok(())
    }

    /// What the word behind `/approvals` may become.
    pub(super) fn propose_modes(&self, text: &str, cursor: usize) -> Vec<ArgumentProposal> {
        let typed = text.get(..cursor).unwrap_or(text);
        let word = typed.split_once(char::is_whitespace);
        let word = word.map_or("", |(_, word)| word.trim_start());
        let start = cursor - word.len();
        let word = word.to_lowercase();
        let modes = self
            .chat
            .permission_modes()
            .into_iter()
            .filter(|mode| mode.id.to_lowercase().contains(&word));
        let proposals = modes.map(|mode| ArgumentProposal {
            replaces: start..cursor,
            about: escape_line(&mode.description),
            text: mode.id,
        });
        proposals.collect()
    }

    /// Shift-Tab: the next mode of the list.
    pub(super) fn cycle_modes(&mut self) -> anyhow::Result<()> {
        let modes = self.chat.permission_modes();
        let current = modes.iter().position(|mode| mode.is_current);
        self.go_to_mode_after(&modes, current)
    }

    /// Shift-Tab at the question about a mode: the one after it.
    pub(super) fn skip_mode(&mut self, action: &QuestionAction) -> anyhow::Result<()> {
        let QuestionAction::SetMode(asked) = action else {
            return Ok(()); // the question is about something else
        };
        let modes = self.chat.permission_modes();
        let current = modes.iter().position(|mode| mode.id == asked.id);
        self.go_to_mode_after(&modes, current)
    }

    fn go_to_mode_after(
        &mut self,
        modes: &[OfferedMode],
        current: Option<usize>,
    ) -> anyhow::Result<()> {
        let next = current.map_or(0, |index| index + 1);
        match modes.get(next).or_else(|| modes.first()) {
            Some(mode) if mode.is_current => {}
            Some(mode) => return self.set_or_ask(mode),
            None => self.note("the agent of this session has no permission modes"),
        }
        Ok(())
    }

    /// Sets a mode; one that gives much is asked about first.
    fn set_or_ask(&mut self, mode: &OfferedMode) -> anyhow::Result<()> {
        if !mode.is_permissive() || mode.is_current {
            return self.set_mode(mode);
        }
        let text = format!("{}: {}", escape_line(&mode.title), escape_line(&mode.description));
        let yes = format!("Yes, {}", escape_line(&mode.title).to_lowercase());
        let question = YesNoQuestion::new(text, &yes, "No", QuestionAction::SetMode(mode.clone()));
        self.open_picker(Picker::YesNoQuestion(question));
        Ok(())
    }

    pub(super) fn set_mode(&mut self, mode: &OfferedMode) -> anyhow::Result<()> {
        self.chat.set_permission_mode(mode)?;
        self.note(&format!("{}. {}", mode.title, mode.description));
        Ok(())
    }
}

fn model_item(model: &ModelOffer, current: &Option<String>) -> MenuItem<ModelOffer> {
    let mut detail = Vec::new();
    if Some(&model.id) == current.as_ref() {
        detail.push("in use".to_owned());
    }
    detail.extend(model.unavailable.map(str::to_owned));
    if model.name != model.id {
        detail.push(escape_line(&model.id));
    }
    if let Some(tokens) = model.context_tokens {
        detail.push(format!("{}k tokens", tokens / 1_000));
    }
    let mut item = MenuItem::new(model.clone(), escape_line(&model.name), detail.join(" · "));
    if model.unavailable.is_some() {
        item.tone = Tone::Dim;
    }
    item
}

fn mode_item(mode: OfferedMode) -> MenuItem<OfferedMode> {
    let label = if mode.is_current {
        format!("{} (now)", escape_line(&mode.title))
    } else {
        escape_line(&mode.title)
    };
    let detail = escape_line(&mode.description);
    let gives_much = mode.is_permissive();
    let mut item = MenuItem::new(mode, label, detail);
    if gives_much {
        item.tone = Tone::Warn;
    }
    item
}

/// What was chosen about a model, in short.
pub(super) fn describe_settings(model: &ModelOffer, chosen: &Map<String, Value>) -> String {
    let described = model.settings.iter().filter_map(|setting| {
        let value = chosen.get(&setting.key)?;
        let label = setting.label_of(value);
        Some(escape_line(&match setting.values() {
            // A number says little without what it counts.
            [] => format!("{} {label}", setting.title),
            // So does a switch.
            [_, _] if value.is_boolean() => format!("{} {label}", setting.title),
            _ => label,
        }))
    });
    described.collect::<Vec<_>>().join(", ")
}
