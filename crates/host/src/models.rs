//! The models of the native agent while the host runs: those of the configuration, and those that clients add until it stops.
//!
//! Promises: a change is whole or none; what the kernel is told of the agents is in the order in which they changed; a client
//! cannot make the host run a command, or send anything of its own directory or environment anywhere.
//! Must not know: who may change models.

use std::path::PathBuf;
use std::sync::Arc;

use agent_api::{Agent, AgentInfo};
use agents::NativeAgent;
use kernel::{AgentFacts, ModelChange, ModelsChanged, WorkFailed};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use wire::ext::models::ModelsResult;
use wire::ext::system_message_transform::SystemMessageSection;
use wire::meta::OWN_COMMANDS;

use agents::provider::KEY_BYTES_MAX;

use crate::config::{Config, Model};
use crate::model_facts_file::load_facts;

/// What may be said of one model: every client is sent most of it.
const MODEL_BYTES_MAX: usize = 16 << 10;

/// All agents, the native one's models among what may change.
pub(crate) struct AgentRoster {
    native: Arc<NativeAgent>,
    agents: Vec<Arc<dyn Agent>>,
    restricted_sections: Vec<String>,
    data: PathBuf,
    file: PathBuf,
    first_models: Vec<Model>,
    environment_models: Vec<Model>,
    /// Held from a change until the kernel has got it.
    order: Mutex<()>,
}

impl AgentRoster {
    pub(crate) fn new(
        config: &Config,
        native: Arc<NativeAgent>,
        agents: Vec<Arc<dyn Agent>>,
    ) -> Self {
        config.models.iter().for_each(warn_of_open_key_file);
        // External agents run commands too.
        if native.has_models() || agents.iter().any(|agent| agent.has_own_commands()) {
            hide_environment();
        }
        Self {
            native,
            agents,
            restricted_sections: config.restricted_sections.clone(),
            data: config.data.clone(),
            file: config.file_path(),
            first_models: config.first_models.clone(),
            environment_models: config.environment_models.clone(),
            order: Mutex::default(),
        }
    }

    pub(crate) fn agents(&self) -> &[Arc<dyn Agent>] {
        &self.agents
    }

    /// What the kernel knows of the agents.
    pub(crate) fn facts(&self) -> Vec<AgentFacts> {
        let facts = self.agents.iter().map(|agent| self.describe(&**agent, agent.info()));
        facts.collect()
    }

    /// What it is to know of one that says this of itself; none if there is no such agent.
    pub(crate) fn facts_of(&self, info: AgentInfo) -> Option<AgentFacts> {
        let mut agents = self.agents.iter();
        let agent = agents.find(|agent| agent.info().provider == info.provider)?;
        Some(self.describe(&**agent, info))
    }

    fn describe(&self, agent: &dyn Agent, info: AgentInfo) -> AgentFacts {
        AgentFacts {
            provider: info.provider.clone(),
            // Without a model it could only apologise.
            hidden: info.provider == agents::native::PROVIDER && info.models.is_empty(),
            info: advertise(agent, &info),
            config_schema: info.config_schema,
            renamed_settings: info.renamed_settings,
            default_model: info.default_model,
            needs_history: agent.needs_history(),
            sections: mark_restricted(info.sections, &self.restricted_sections),
            ..AgentFacts::default()
        }
    }

    /// Keeps others from changing anything until the kernel has the change.
    pub(crate) async fn lock(&self) -> MutexGuard<'_, ()> {
        self.order.lock().await
    }

    /// Changes the models. Reads files.
    pub(crate) fn change(&self, change: ModelChange) -> Result<Box<ModelsChanged>, WorkFailed> {
        let model = match change {
            ModelChange::Add(model) => Some(self.add(model).map_err(WorkFailed)?),
            ModelChange::Reload => {
                self.reload().map_err(WorkFailed)?;
                None
            }
        };
        let answer = ModelsResult { provider: agents::native::PROVIDER.to_owned(), model };
        Ok(Box::new(ModelsChanged {
            agents: self.facts(),
            answer: wire::action::to_value(&answer),
        }))
    }

    fn add(&self, model: wire::Object) -> Result<String, String> {
        if wire::rpc::to_json(&model).len() > MODEL_BYTES_MAX {
            return Err(format!("`model` has at most {MODEL_BYTES_MAX} bytes"));
        }
        let model: Model = serde_json::from_value(Value::Object(model))
            .map_err(|error| format!("`model`: {error}"))?;
        let mut model = model.find_vendor().map_err(|error| error.to_string())?;
        model.check().map_err(|error| error.to_string())?;
        let endpoint = model.endpoint().map_err(|error| error.to_string())?;
        endpoint.check_encrypted().map_err(|error| {
            format!("`base_url`: {error}, or put the model into the configuration with `greenroom models add`")
        })?;
        self.check_key(&mut model)?;
        warn_of_open_key_file(&model);
        hide_environment();
        self.native.add_model(model).map_err(|error| error.to_string())
    }

    /// The host sends the key to the address that the client names: it must be nothing but a key.
    fn check_key(&self, model: &mut Model) -> Result<(), String> {
        if model.key_command.is_some() {
            return Err(
                "`key_command` is run only for models of the configuration: `greenroom models add` puts it there".to_owned(),
            );
        }
        let variable = model.key_env.as_deref().unwrap_or("");
        if variable.starts_with("GREENROOM_") {
            return Err(format!("`key_env`: {variable} is not the key of a model"));
        }
        let Some(file) = &model.key_file else { return Ok(()) };
        if !file.is_absolute() {
            return Err("`key_file` must be an absolute path".to_owned());
        }
        let unusable = |error| format!("`key_file`: {} cannot be used: {error}", file.display());
        let real = std::fs::canonicalize(file).map_err(unusable)?;
        let data = std::fs::canonicalize(&self.data)
            .map_err(|error| format!("the host's data directory cannot be read: {error}"))?;
        if real.starts_with(data) {
            return Err("`key_file` must not lie in the host's data directory".to_owned());
        }
        let opened = agents::provider::open_key_file(&real).map_err(unusable)?;
        let bytes = opened.metadata().map_err(unusable)?.len();
        if bytes == 0 || bytes > KEY_BYTES_MAX {
            return Err(format!(
                "`key_file`: {} holds no key: it has {bytes} bytes",
                file.display()
            ));
        }
        // From now on that file is read and no other, whatever the name leads to.
        model.key_file = Some(real);
        model.is_real_key_file = true;
        Ok(())
    }

    fn reload(&self) -> Result<(), String> {
        let mut config = Config {
            environment_models: self.environment_models.clone(),
            ..Config::default_for(self.data.clone())
        };
        let is_there = self.file.try_exists();
        if is_there.map_err(|error| format!("{} cannot be read: {error}", self.file.display()))? {
            config.load_toml(&self.file).map_err(|error| error.to_string())?;
        }
        config.put_models_first(self.first_models.clone());
        let models = config.ordered_models();
        models.iter().for_each(warn_of_open_key_file);
        if !models.is_empty() {
            hide_environment();
        }
        self.native
            .configure_models(models, load_facts(&self.data))
            .map_err(|error| error.to_string())
    }
}

/// What clients read of an agent.
fn advertise(agent: &dyn Agent, info: &AgentInfo) -> Value {
    let mut advertised = info.to_wire();
    if agent.has_own_commands() {
        advertised["_meta"] = json!({OWN_COMMANDS: true});
    }
    advertised
}

/// The sections as they are published: the content of a restricted one never leaves the host.
fn mark_restricted(
    mut sections: Vec<SystemMessageSection>,
    ids: &[String],
) -> Vec<SystemMessageSection> {
    for section in &mut sections {
        section.restricted = ids.contains(&section.id).then_some(true);
    }
    sections
}

/// Not refused: secrets that containers are given are often readable by all in them.
fn warn_of_open_key_file(model: &Model) {
    if is_key_file_open(model) {
        tracing::warn!(model = %model.id, "the key file of a model can be read by others; `chmod 600` makes it yours");
    }
}

/// Whether the key of a model lies in a file that others can read.
pub fn is_key_file_open(model: &Model) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let metadata = model.key_file.as_ref().map(std::fs::metadata);
    let mode = metadata.and_then(|metadata| Some(metadata.ok()?.permissions().mode()));
    mode.is_some_and(|mode| mode & 0o044 != 0)
}

/// Commands that an agent runs belong to the same user: without this they could read what they were not given of the
/// host's environment, such as the keys of models, from `/proc`.
fn hide_environment() {
    #[cfg(target_os = "linux")]
    if let Err(error) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::warn!(%error, "the environment could not be hidden: commands that agents run can read all of it");
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn roster(data: &Path) -> AgentRoster {
        let mut config = Config::default_for(data.to_owned());
        config.put_models_first(vec![Model::parse("http://first/v1#first").unwrap()]);
        let native = Arc::new(NativeAgent::new(config.ordered_models()).unwrap());
        let agents: Vec<Arc<dyn Agent>> = vec![Arc::clone(&native) as Arc<dyn Agent>];
        AgentRoster::new(&config, native, agents)
    }

    fn add(roster: &AgentRoster, model: &Value) -> Result<Value, String> {
        let change = ModelChange::Add(model.as_object().unwrap().clone());
        let changed = roster.change(change).map_err(|failed| failed.0)?;
        Ok(changed.answer)
    }

    fn ids(roster: &AgentRoster) -> Vec<String> {
        let facts = roster.facts();
        let models = facts[0].info["models"].as_array().unwrap();
        let ids = models.iter().map(|model| model["id"].as_str().unwrap());
        ids.map(str::to_owned).collect()
    }

    #[test]
    fn a_client_names_where_a_key_is_and_nothing_else_of_the_host() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join("token"), "t").unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("link");
        std::os::unix::fs::symlink(data.path().join("token"), &link).unwrap();
        let (empty, large) = (elsewhere.path().join("empty"), elsewhere.path().join("large"));
        std::fs::write(&empty, "").unwrap();
        std::fs::write(&large, "k".repeat(20_000)).unwrap();
        let roster = roster(data.path());
        let with =
            |name: &str, value: Value| json!({"id": "m", "base_url": "https://h/v1", name: value});
        for (model, words) in [
            (with("key_command", json!(["sh", "-c", "echo x"])), "models of the configuration"),
            (with("key_env", json!("GREENROOM_TOKEN")), "not the key of a model"),
            (with("key_file", json!(data.path().join("token"))), "data directory"),
            (with("key_file", json!(link)), "data directory"),
            (with("key_file", json!(elsewhere.path().join("none"))), "No such file"),
            (with("key_file", json!(elsewhere.path())), "not a file"),
            (with("key_file", json!("/dev/zero")), "not a file"),
            (with("key_file", json!(empty)), "holds no key"),
            (with("key_file", json!(large)), "holds no key"),
            (with("key_file", json!("key")), "absolute"),
            (with("key", json!("sk")), "unknown field"),
            (with("api", json!("other")), "chat"),
            (with("name", json!("x".repeat(20_000))), "at most"),
            (json!({"id": "m"}), "base_url"),
            (json!({"id": "m", "base_url": "ftp://h"}), "http"),
            (
                json!({"id": "m", "base_url": "http://h.example/v1", "key_env": "K"}),
                "unencrypted to h.example",
            ),
            (json!({"id": "m", "base_url": "https://h/v1?key=sk"}), "query parameter `key`"),
        ] {
            let error = add(&roster, &model).unwrap_err();
            assert!(error.contains(words), "{model}: {error}");
        }
        assert_eq!(ids(&roster), ["first"]);
        let answer = add(&roster, &with("key_env", json!("K"))).unwrap();
        assert_eq!(answer, json!({"provider": "native", "model": "m"}));
        assert_eq!(ids(&roster), ["first", "m"]);
        let key = elsewhere.path().join("key");
        std::fs::write(&key, "sk").unwrap();
        let linked = elsewhere.path().join("linked");
        std::os::unix::fs::symlink(&key, &linked).unwrap();
        let mut model = with("key_file", json!(linked));
        model["id"] = json!("linked");
        add(&roster, &model).unwrap();
        assert_eq!(ids(&roster), ["first", "m", "linked"]);
    }

    #[test]
    fn a_configuration_that_cannot_be_looked_at_is_an_error_and_not_an_empty_one() {
        let data = tempfile::tempdir().unwrap();
        let roster = roster(data.path());
        let file = data.path().join("greenroom.toml");
        // A link to itself: whether there is a file cannot be said.
        std::os::unix::fs::symlink(&file, &file).unwrap();
        let error = roster.change(ModelChange::Reload).unwrap_err();
        assert!(error.0.contains("greenroom.toml cannot be read"), "{error}");
        assert_eq!(ids(&roster), ["first"]);
    }

    #[test]
    fn what_servers_said_is_read_with_the_file_and_a_key_is_enough_while_nothing_is_configured() {
        let data = tempfile::tempdir().unwrap();
        let mut config = Config::default_for(data.path().to_owned());
        config.environment_models = vec![Model::parse("http://h/v1#of-key").unwrap()];
        let native = Arc::new(NativeAgent::new(config.ordered_models()).unwrap());
        let agents: Vec<Arc<dyn Agent>> = vec![Arc::clone(&native) as Arc<dyn Agent>];
        let roster = AgentRoster::new(&config, native, agents);
        let mut reported = crate::model_facts_file::ModelFactsFile::default();
        let facts =
            agents::model_data::ModelFacts { context_tokens: Some(4_321), ..Default::default() };
        reported.insert(&config.environment_models[0], facts, String::new());
        reported.save(data.path()).unwrap();
        roster.change(ModelChange::Reload).unwrap();
        assert_eq!(ids(&roster), ["of-key"]);
        assert_eq!(roster.facts()[0].info["models"][0]["maxContextWindow"], 4_321);
        let file = data.path().join("greenroom.toml");
        std::fs::write(&file, "[[models]]\nid = \"a\"\nbase_url = \"http://h/v1\"\n").unwrap();
        roster.change(ModelChange::Reload).unwrap();
        assert_eq!(ids(&roster), ["a"]);
        std::fs::remove_file(&file).unwrap();
        roster.change(ModelChange::Reload).unwrap();
        assert_eq!(ids(&roster), ["of-key"]);
    }

    #[test]
    fn the_file_is_read_again_and_what_was_added_stays() {
        let data = tempfile::tempdir().unwrap();
        let roster = roster(data.path());
        add(&roster, &json!({"id": "added", "base_url": "http://h/v1"})).unwrap();
        let file = data.path().join("greenroom.toml");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        let table = |id: &str| format!("[[models]]\nid = \"{id}\"\nbase_url = \"http://h/v1\"\n");
        write(&format!("default_model = \"b\"\n{}{}", table("a"), table("b")));
        roster.change(ModelChange::Reload).unwrap();
        assert_eq!(ids(&roster), ["first", "a", "b", "added"], "the command line wins");
        write("[[models]]\nid = 3\n");
        let error = roster.change(ModelChange::Reload).unwrap_err();
        assert!(error.0.contains("greenroom.toml"), "{error}");
        assert_eq!(ids(&roster).len(), 4, "a bad file changes nothing");
        std::fs::remove_file(&file).unwrap();
        roster.change(ModelChange::Reload).unwrap();
        assert_eq!(ids(&roster), ["first", "added"]);
    }
}
