//! `greenroom models`: lists the configured models and whether each answers; adds, removes and chooses them.
//!
//! Promises: a model is written to the configuration file and given to the host that runs; a key is named, never stored.

mod add;
mod choose;
pub(crate) mod config_file;
mod edit_config;
pub(crate) mod key_alone;
pub(crate) mod local_servers;
pub(crate) mod on_host;
mod refresh;

use std::path::PathBuf;

use anyhow::bail;
use client::endpoint;
use host::model_server::{self, ModelServerError};
use host::{Config, Model};
use serde_json::{Value, json};

use self::config_file::ConfigFile;
use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::serve::settings;
use crate::terminal::escape_line;

/// List the configured models and check that each answers; add, remove and choose them
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  greenroom models
  greenroom models add http://localhost:11434/v1#qwen3
  greenroom models add https://api.example.com/v1 --key-env EXAMPLE_KEY
  greenroom models default qwen3
  greenroom models refresh
  greenroom models remove qwen3

Exit codes: 0 all answer, 1 some do not, 2 wrong usage."
)]
pub(crate) struct ModelsOptions {
    #[command(subcommand)]
    verb: Option<ModelsVerb>,
    #[command(flatten)]
    list: ModelListOptions,
}

/// List the configured models and check that each answers, as `greenroom models` does
#[derive(Debug, clap::Args)]
struct ModelListOptions {
    /// Ask this model instead of those that are configured; may be repeated
    #[arg(long, value_name = "URL#MODEL", value_parser = Model::parse)]
    model: Vec<Model>,
    /// Print one JSON array instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigFileOptions,
}

/// Which configuration file is meant.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ConfigFileOptions {
    /// Data directory whose greenroom.toml is used
    /// [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// TOML file with settings, instead of the one in the data directory
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigFileOptions {
    fn data_directory(&self) -> anyhow::Result<PathBuf> {
        Ok(endpoint::data_directory(self.data.as_deref())?)
    }

    pub(crate) fn settings(&self) -> anyhow::Result<Config> {
        settings(self.data_directory()?, self.config.as_deref())
    }

    fn file(&self) -> anyhow::Result<ConfigFile> {
        let data = self.data_directory()?;
        let path = match &self.config {
            Some(file) => std::path::absolute(file)?,
            None => data.join(host::CONFIG_FILE),
        };
        Ok(ConfigFile::new(data, path))
    }
}

#[derive(Debug, clap::Subcommand)]
enum ModelsVerb {
    List(ModelListOptions),
    Add(add::AddOptions),
    Remove(RemoveOptions),
    Default(DefaultOptions),
    Refresh(refresh::RefreshOptions),
}

/// Remove a model from the configuration
#[derive(Debug, clap::Args)]
struct RemoveOptions {
    /// The model's id, as `greenroom models` lists it
    id: String,
    #[command(flatten)]
    config: ConfigFileOptions,
}

/// Choose the model that new messages go to unless they name another
#[derive(Debug, clap::Args)]
struct DefaultOptions {
    /// The model's id, as `greenroom models` lists it
    id: String,
    #[command(flatten)]
    config: ConfigFileOptions,
}

pub(crate) async fn run(options: ModelsOptions) -> anyhow::Result<Exit> {
    match options.verb {
        Some(ModelsVerb::List(options)) => list(options).await,
        Some(ModelsVerb::Add(add)) => add::run(add).await,
        Some(ModelsVerb::Remove(remove)) => run_remove(&remove).await,
        Some(ModelsVerb::Default(default)) => run_default(&default).await,
        Some(ModelsVerb::Refresh(refresh)) => refresh::run(refresh).await,
        None => list(options.list).await,
    }
}

async fn list(options: ModelListOptions) -> anyhow::Result<Exit> {
    let is_named = !options.model.is_empty();
    let models = if is_named { options.model } else { options.config.settings()?.ordered_models() };
    let asked = models.into_iter().map(|model| {
        tokio::spawn(async move {
            let answer = model_server::check(&model).await;
            (model, answer)
        })
    });
    let mut checked = Vec::new();
    for asked in asked.collect::<Vec<_>>() {
        checked.push(asked.await?);
    }
    if options.json {
        let models: Vec<Value> = checked
            .iter()
            .enumerate()
            .map(|(index, (model, answer))| {
                let mut json = to_json(model, answer, index == 0);
                json["source"] = json!(ModelSource::of(model, is_named).name());
                json
            })
            .collect();
        print_json(&Value::Array(models))?;
    } else if checked.is_empty() {
        print(HOW_TO_ADD)?;
    } else {
        for (index, (model, answer)) in checked.iter().enumerate() {
            let source = ModelSource::of(model, is_named);
            print(&format_line(model, answer, index == 0, source))?;
        }
    }
    let all_answer = checked.iter().all(|(_, answer)| answer.is_ok());
    Ok(if all_answer { Exit::Complete } else { Exit::Failed })
}

const HOW_TO_ADD: &str = "No models are configured. Add one:

  greenroom models add http://localhost:11434/v1#qwen3
  greenroom models add https://api.example.com/v1 --key-env EXAMPLE_KEY

The first asks no key; the second lists what the server has and lets you choose. A key in ANTHROPIC_API_KEY, OPENAI_API_KEY,
GEMINI_API_KEY or OPENROUTER_API_KEY is enough as well: a host that is started with it has that vendor's usual model.
";

/// Why a model is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModelSource {
    CommandLine,
    Configuration,
    Environment,
}

impl ModelSource {
    fn of(model: &Model, is_named: bool) -> Self {
        match (is_named, model.is_of_environment) {
            (true, _) => Self::CommandLine,
            (false, true) => Self::Environment,
            (false, false) => Self::Configuration,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::CommandLine => "commandLine",
            Self::Configuration => "configuration",
            Self::Environment => "environment",
        }
    }
}

fn to_json(model: &Model, answer: &Result<(), ModelServerError>, is_default: bool) -> Value {
    let mut json = json!({
        "id": model.id,
        "name": model.name.as_ref().unwrap_or(&model.id),
        "api": model.api.name(),
        "baseUrl": model.base_url,
        "default": is_default,
        "answers": answer.is_ok(),
    });
    if let Some(variable) = &model.key_env {
        json["keyVariable"] = json!(variable);
    }
    if let Err(error) = answer {
        json["error"] = json!(error.message);
        if let Some(advice) = error.advice {
            json["advice"] = json!(advice);
        }
    }
    json
}

fn format_line(
    model: &Model,
    answer: &Result<(), ModelServerError>,
    is_default: bool,
    source: ModelSource,
) -> String {
    let source = match (source, &model.key_env) {
        (ModelSource::CommandLine, _) => String::new(),
        (ModelSource::Configuration, _) => "  configured".to_owned(),
        (ModelSource::Environment, variable) => {
            let variable = variable.as_deref().unwrap_or_default();
            format!("  by the key in {}", escape_line(variable))
        }
    };
    let state = match answer {
        Ok(()) => "answers".to_owned(),
        Err(error) => format!("does not answer: {}", escape_line(&error.message)),
    };
    format!(
        "{}{}  {}{source}  {state}\n",
        escape_line(&model.id),
        if is_default { " (default)" } else { "" },
        escape_line(&model.address())
    )
}

async fn run_remove(options: &RemoveOptions) -> anyhow::Result<Exit> {
    let file = options.config.file()?;
    let id = &options.id;
    file.change(|text, config| {
        check_known(config, id)?;
        let mut text = edit_config::remove(text, id)?;
        if config.default_model.as_ref() == Some(id) {
            text = edit_config::set_default(&text, None)?;
        }
        Ok(text)
    })?;
    print(&format!("Removed {} from {}.\n", escape_line(id), file.display()))?;
    let left = options.config.settings()?.ordered_models();
    match left.first() {
        Some(default) => print(&format!("The default is {}.\n", escape_line(&default.id)))?,
        None => print("No model is left. Add one with `greenroom models add URL#MODEL`.\n")?,
    }
    let took = on_host::reload(&file, |ids| !ids.contains(id)).await;
    print(took.describe_removal())?;
    Ok(Exit::Complete)
}

async fn run_default(options: &DefaultOptions) -> anyhow::Result<Exit> {
    let file = options.config.file()?;
    let id = &options.id;
    file.change(|text, config| {
        check_known(config, id)?;
        edit_config::set_default(text, Some(id))
    })?;
    print(&format!("{} is the default.\n", escape_line(id)))?;
    let took = on_host::reload(&file, |ids| ids.first() == Some(id)).await;
    print(took.describe())?;
    Ok(Exit::Complete)
}

fn check_known(config: &Config, id: &str) -> anyhow::Result<()> {
    if config.models.iter().any(|model| model.id == id) {
        return Ok(());
    }
    let known: Vec<&str> = config.models.iter().map(|model| model.id.as_str()).collect();
    if let Some(model) = config.environment_models.iter().find(|model| model.id == id) {
        bail!(
            "`{id}` is there by the key in {}, and is not in the configuration: `greenroom models add {}` puts it there",
            model.key_env.as_deref().unwrap_or_default(),
            on_host::quote(&format!("{}#{}", model.address(), model.server_name()))
        );
    }
    if known.is_empty() {
        bail!("there is no model `{id}`, nor any other; `greenroom models add` adds one")
    } else {
        bail!("there is no model `{id}`; there are: {}", known.join(", "))
    }
}
