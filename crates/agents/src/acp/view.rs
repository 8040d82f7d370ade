//! What an agent says of a session: its models, its settings, its commands (AG-24, AG-25, AG-28).
//!
//! Promises: bounded, and safe to show; values that are offered are those that the agent named.
//! Must not know: who reads it.

use std::collections::BTreeSet;

use agent_api::{AgentCommand, SettingValue};
use agent_client_protocol_schema::v1 as acp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::label::label;

const COMMANDS_MAX: usize = 256;
const OPTIONS_MAX: usize = 32;
const VALUES_MAX: usize = 512;
const DESCRIPTION_CHARS_MAX: usize = 300;

/// Options and values of longer names are not offered: they could not be given back as they are.
const ID_BYTES_MAX: usize = 256;

/// All commands together, as they are held.
const COMMAND_BYTES_MAX: usize = 64 * 1_024;

/// How a value is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Setter {
    Option,
    Mode,
    /// `session/set_model`, which the protocol no longer has.
    Model,
}

/// A setting that has one of some values, or is a switch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OptionValues {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    /// A text, or a boolean of a switch.
    pub(super) current: Value,
    /// None of a switch.
    pub(super) values: Vec<ChoiceValue>,
    pub(super) setter: Setter,
    /// It is the agent's mode, whatever the agent calls it.
    #[serde(default)]
    pub(super) is_mode: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ChoiceValue {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
}

/// What an agent said of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct SessionView {
    pub(super) model: Option<OptionValues>,
    pub(super) settings: Vec<OptionValues>,
    pub(super) commands: Vec<AgentCommand>,
}

/// What an update changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ViewChange {
    Settings,
    Commands,
}

impl OptionValues {
    /// The mode of an agent that has said nothing yet.
    pub(super) fn unknown_mode() -> Self {
        Self {
            id: "mode".to_owned(),
            name: "Mode".to_owned(),
            description: None,
            current: json!(""),
            values: Vec::new(),
            setter: Setter::Mode,
            is_mode: true,
        }
    }

    /// Whether `current_mode_update` is about it: an option that is called so is the mode, too.
    fn is_mode(&self) -> bool {
        self.is_mode || self.id == "mode"
    }

    /// The value of this name: its id, or else what people read.
    pub(super) fn value_named(&self, name: &str) -> Option<&str> {
        let by_id = self.values.iter().find(|value| value.id == name);
        let by_name = || self.values.iter().find(|value| value.name == name);
        by_id.or_else(by_name).map(|value| value.id.as_str())
    }

    pub(super) fn offers_name(&self, name: &str) -> bool {
        self.value_named(name).is_some()
    }

    /// The value in use as people read it; none of a switch, or if nothing is chosen.
    pub(super) fn current_name(&self) -> Option<String> {
        let current = self.current.as_str().filter(|id| !id.is_empty())?;
        let mut values = self.values.iter();
        let named = values.find(|value| value.id == current);
        Some(named.map_or_else(|| label(current, 200), |value| value.name.clone()))
    }

    /// The name of its setting of AHP sessions.
    pub(super) fn property(&self) -> String {
        format!("agent_{}", self.id)
    }

    pub(super) fn offers(&self, value: &Value) -> bool {
        match (&self.current, value) {
            (Value::Bool(_), Value::Bool(_)) => true,
            (_, Value::String(value)) => self.values.iter().any(|offered| offered.id == *value),
            _ => false,
        }
    }

    pub(super) fn setting_values(&self) -> Vec<SettingValue> {
        let values = self.values.iter().map(|value| SettingValue {
            value: json!(value.id),
            label: value.name.clone(),
            description: value.description.clone(),
        });
        values.collect()
    }

    /// As a property of a session's configuration.
    pub(super) fn schema(&self) -> Value {
        let mut schema = json!({"title": self.name, "sessionMutable": true});
        if let Some(description) = &self.description {
            schema["description"] = json!(description);
        }
        if self.current.is_boolean() {
            schema["type"] = json!("boolean");
        } else {
            schema["type"] = json!("string");
            schema["enumDynamic"] = json!(true);
        }
        schema
    }
}

impl SessionView {
    /// Reads what the answer to `session/new`, `load` or `resume` says.
    pub(super) fn apply_response(&mut self, answer: &Value) {
        let options = &answer["configOptions"];
        if options.is_array() {
            // One that cannot be read takes none of the others with it.
            let read = |option: &Value| serde_json::from_value(option.clone()).ok();
            let options = options.as_array().into_iter().flatten();
            self.set_options(options.filter_map(read).collect());
        }
        if self.model.is_none() {
            self.model = read_models(&answer["models"]);
        }
        let has_mode = self.settings.iter().any(OptionValues::is_mode);
        if !has_mode && let Some(mode) = read_modes(&answer["modes"]) {
            self.settings.push(mode);
        }
    }

    pub(super) fn apply_update(&mut self, update: &acp::SessionUpdate) -> Option<ViewChange> {
        match update {
            acp::SessionUpdate::ConfigOptionUpdate(update) => {
                self.set_options(update.config_options.clone());
                Some(ViewChange::Settings)
            }
            acp::SessionUpdate::CurrentModeUpdate(update) => {
                let mode = self.settings.iter_mut().find(|setting| setting.is_mode())?;
                mode.current = json!(update.current_mode_id.to_string());
                Some(ViewChange::Settings)
            }
            acp::SessionUpdate::AvailableCommandsUpdate(update) => {
                self.commands = read_commands(&update.available_commands);
                Some(ViewChange::Commands)
            }
            _ => None,
        }
    }

    pub(super) fn set_options(&mut self, options: Vec<acp::SessionConfigOption>) {
        let legacy_mode = self
            .settings
            .iter()
            .position(|setting| setting.setter == Setter::Mode)
            .map(|mode| self.settings.remove(mode));
        self.settings.clear();
        let mut has_mode = false;
        for option in options.into_iter().take(OPTIONS_MAX) {
            let category = option.category.clone();
            let Some(mut choice) = read_option(option) else {
                continue; // of a kind that we do not know
            };
            match category {
                Some(acp::SessionConfigOptionCategory::Model) => self.model = Some(choice),
                Some(acp::SessionConfigOptionCategory::Mode) if !has_mode => {
                    has_mode = true;
                    choice.is_mode = true;
                    self.settings.push(choice);
                }
                _ => self.settings.push(choice),
            }
        }
        if !self.settings.iter().any(OptionValues::is_mode) {
            self.settings.extend(legacy_mode);
        }
    }

    /// The agent's modes, if it has any.
    pub(super) fn mode(&self) -> Option<&OptionValues> {
        mode_of(&self.settings)
    }

    pub(super) fn setting(&self, property: &str) -> Option<&OptionValues> {
        let mut settings = self.settings.iter();
        settings.find(|setting| setting.property() == property)
    }
}

/// Which of some settings is the agent's mode.
pub(super) fn mode_of(settings: &[OptionValues]) -> Option<&OptionValues> {
    settings.iter().find(|setting| setting.is_mode())
}

/// Whether something of this name can be offered.
fn is_offered_id(id: &str) -> bool {
    id.len() <= ID_BYTES_MAX && !id.chars().any(char::is_control)
}

fn read_option(option: acp::SessionConfigOption) -> Option<OptionValues> {
    let id = option.id.to_string();
    if !is_offered_id(&id) {
        return None;
    }
    let (current, values) = match option.kind {
        acp::SessionConfigKind::Boolean(boolean) => (json!(boolean.current_value), Vec::new()),
        acp::SessionConfigKind::Select(select) => {
            let options = match select.options {
                acp::SessionConfigSelectOptions::Ungrouped(options) => options,
                acp::SessionConfigSelectOptions::Grouped(groups) => {
                    groups.into_iter().flat_map(|group| group.options).collect()
                }
                _ => Vec::new(),
            };
            let values = options
                .into_iter()
                .take(VALUES_MAX)
                .map(|option| ChoiceValue {
                    id: option.value.to_string(),
                    name: label(&option.name, 200),
                    description: read_description(option.description.as_deref()),
                })
                .filter(|value| is_offered_id(&value.id));
            (json!(select.current_value.to_string()), values.collect())
        }
        _ => return None,
    };
    Some(OptionValues {
        id,
        name: label(&option.name, 100),
        description: read_description(option.description.as_deref()),
        current,
        values,
        setter: Setter::Option,
        is_mode: false,
    })
}

/// `models` of a session's answer: no longer in the protocol, and the only way of one agent.
fn read_models(models: &Value) -> Option<OptionValues> {
    Some(OptionValues {
        id: "model".to_owned(),
        name: "Model".to_owned(),
        description: None,
        current: json!(models["currentModelId"].as_str()?),
        values: read_values(&models["availableModels"], "modelId"),
        setter: Setter::Model,
        is_mode: false,
    })
}

fn read_modes(modes: &Value) -> Option<OptionValues> {
    Some(OptionValues {
        id: "mode".to_owned(),
        name: "Mode".to_owned(),
        description: None,
        current: json!(modes["currentModeId"].as_str()?),
        values: read_values(&modes["availableModes"], "id"),
        setter: Setter::Mode,
        is_mode: true,
    })
}

fn read_values(values: &Value, id: &str) -> Vec<ChoiceValue> {
    let values = values.as_array().into_iter().flatten().take(VALUES_MAX);
    let read = values.filter_map(|value| {
        let id = value[id].as_str().filter(|id| is_offered_id(id))?.to_owned();
        Some(ChoiceValue {
            name: label(value["name"].as_str().unwrap_or(&id), 200),
            description: read_description(value["description"].as_str()),
            id,
        })
    });
    read.collect()
}

fn read_description(text: Option<&str>) -> Option<String> {
    let text = label(text?, DESCRIPTION_CHARS_MAX);
    (!text.is_empty()).then_some(text)
}

fn read_commands(commands: &[acp::AvailableCommand]) -> Vec<AgentCommand> {
    let mut bytes = 0;
    let mut names = BTreeSet::new();
    let mut read = Vec::new();
    for command in commands {
        let name = label(command.name.trim_start_matches('/'), 100);
        if name.is_empty() || !names.insert(name.clone()) {
            continue;
        }
        let hint = match &command.input {
            Some(acp::AvailableCommandInput::Unstructured(input)) => Some(label(&input.hint, 100)),
            _ => None,
        };
        let mut command = AgentCommand {
            name,
            description: read_description(Some(&command.description)),
            hint: hint.filter(|hint| !hint.is_empty()),
            expands: false,
        };
        // Each session holds them: not the room in which a text was made.
        let texts = [&mut command.description, &mut command.hint]
            .into_iter()
            .flatten()
            .chain([&mut command.name]);
        bytes += size_of::<AgentCommand>();
        for text in texts {
            text.shrink_to_fit();
            bytes += text.len();
        }
        if bytes > COMMAND_BYTES_MAX || read.len() == COMMANDS_MAX {
            break;
        }
        read.push(command);
    }
    read.shrink_to_fit();
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers to `session/new` of the agents on whose wires they were seen.
    fn answer_of(agent: &str) -> Value {
        let mut frames = include_str!("mapper/frames.jsonl")
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let answer = frames.find(|f| f["agent"] == agent && f["case"] == "session/new result");
        answer.unwrap()["frame"]["result"].clone()
    }

    #[test]
    fn ag_24_models_come_from_the_option_or_from_the_old_list() {
        for (agent, setter, first) in [
            ("claude", Setter::Option, "default"),
            ("gemini", Setter::Model, "auto"),
            ("opencode", Setter::Option, "opencode/big-pickle"),
            ("qwen", Setter::Option, "$runtime|openai|fake-model(openai)"),
        ] {
            let mut view = SessionView::default();
            view.apply_response(&answer_of(agent));
            let model = view.model.unwrap();
            assert_eq!((model.setter, model.values[0].id.as_str()), (setter, first), "{agent}");
        }
    }

    #[test]
    fn ag_25_modes_are_a_setting_unless_an_option_is() {
        for (agent, setter, current) in [
            ("claude", Setter::Option, "default"),
            ("gemini", Setter::Mode, "default"),
            ("codex", Setter::Option, "agent"),
        ] {
            let mut view = SessionView::default();
            view.apply_response(&answer_of(agent));
            let mode = view.setting("agent_mode").unwrap();
            assert_eq!((mode.setter, &mode.current), (setter, &json!(current)), "{agent}");
            assert_eq!(mode.schema()["enumDynamic"], true);
        }
        let mut view = SessionView::default();
        view.apply_response(&answer_of("gemini"));
        let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"});
        let change = view.apply_update(&serde_json::from_value(update).unwrap());
        assert_eq!(change, Some(ViewChange::Settings));
        let mode = view.setting("agent_mode").unwrap();
        assert_eq!(mode.current, json!("plan"));
        assert!(
            mode.offers(&json!("yolo"))
                && !mode.offers(&json!("none"))
                && !mode.offers(&json!(true))
        );
    }

    #[test]
    fn ag_25_an_option_of_another_name_is_the_mode_if_it_says_so() {
        let option = json!([{"id": "permission_mode", "name": "Permissions", "category": "mode", "type": "select",
            "currentValue": "ask", "options": [{"value": "ask", "name": "Ask"}, {"value": "auto", "name": "Auto"}]}]);
        let modes =
            json!({"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}]});
        let mut view = SessionView::default();
        view.apply_response(&json!({"configOptions": option, "modes": modes}));
        assert_eq!(view.settings.len(), 1, "there is one mode: {view:?}");
        let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": "auto"});
        view.apply_update(&serde_json::from_value(update).unwrap());
        let mode = view.setting("agent_permission_mode").unwrap();
        assert_eq!(mode.current, json!("auto"));
        assert_eq!(mode.current_name().as_deref(), Some("Auto"));
    }

    #[test]
    fn names_that_are_too_long_are_not_offered() {
        let long = "x".repeat(ID_BYTES_MAX + 1);
        let values = json!([{"value": long, "name": "L"}, {"value": "a\u{7}", "name": "A"}, {"value": "b", "name": "B"}]);
        let select = |id: &str| json!({"id": id, "name": "N", "type": "select", "currentValue": "b", "options": values});
        let mut view = SessionView::default();
        view.apply_response(&json!({"configOptions": [select(&long), select("s")]}));
        assert_eq!(view.settings.len(), 1);
        let offered: Vec<&str> = view.settings[0].values.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(offered, ["b"]);
    }

    #[test]
    fn ag_28_commands_are_bounded() {
        let command = |n: usize| json!({"name": format!("c{n}"), "description": "d".repeat(2_000)});
        let commands: Vec<Value> = (0..1_000).map(command).collect();
        let update =
            json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
        let mut view = SessionView::default();
        assert_eq!(
            view.apply_update(&serde_json::from_value(update).unwrap()),
            Some(ViewChange::Commands)
        );
        let held = |c: &AgentCommand| {
            let description = c.description.as_ref().unwrap().capacity();
            size_of::<AgentCommand>() + c.name.capacity() + description
        };
        let bytes: usize = view.commands.iter().map(held).sum();
        assert_eq!(view.commands.capacity(), view.commands.len());
        assert!(view.commands.len() <= COMMANDS_MAX && bytes <= COMMAND_BYTES_MAX, "{bytes}");
        assert_eq!(view.commands[0].description.as_ref().unwrap().chars().count(), 301);
    }

    #[test]
    fn switches_are_booleans() {
        let option =
            json!([{"id": "fast", "name": "Fast", "type": "boolean", "currentValue": false}]);
        let mut view = SessionView::default();
        view.apply_response(&json!({"configOptions": option}));
        let fast = view.setting("agent_fast").unwrap();
        assert_eq!(fast.schema()["type"], "boolean");
        assert!(fast.offers(&json!(true)) && !fast.offers(&json!("true")));
    }
}
