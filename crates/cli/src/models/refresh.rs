//! `greenroom models refresh`: asks the servers of models what they say of them, shows what is new, and keeps it for the host.
//!
//! Promises: the configuration is not changed, and wins over what servers say; nothing is written if nothing was said.

use anyhow::bail;
use host::model_data::ModelFacts;
use host::model_server::{self, ModelServerError};
use host::{Model, ModelFactsFile};
use serde_json::{Value, json};

use super::on_host::HostUpdate;
use super::{ConfigFileOptions, on_host};
use crate::clock::now;
use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::start_host::create_data_directory;
use crate::terminal::escape_line;

/// Servers that are asked at once.
const AT_ONCE_MAX: usize = 8;

/// Ask servers what their models can do, how much they read and what they cost
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom models refresh
  greenroom models refresh qwen3 --dry-run

What a server says is kept in model-facts.json of the data directory, and the host that runs has it at once. What the \
configuration says of a model wins; what nobody says is taken from what greenroom knows of models by their names. Ollama, \
llama.cpp, LM Studio, vLLM, OpenRouter, Anthropic and Gemini say something; OpenAI says nothing but names.

Exit codes: 0 all answered, 1 some did not, 2 wrong usage.")]
pub(super) struct RefreshOptions {
    /// The model's id, as `greenroom models` lists it [default: all of them]
    id: Option<String>,
    /// Show what is new and store nothing
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON array instead of text; `host` says whether the running host uses what is new
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigFileOptions,
}

/// The answer about one model.
struct Refreshed {
    model: Model,
    answer: Result<ModelFacts, ModelServerError>,
}

pub(super) async fn run(options: RefreshOptions) -> anyhow::Result<Exit> {
    let data = options.config.data_directory()?;
    let mut reported = ModelFactsFile::load(&data).or_else(|error| {
        if options.dry_run {
            Err(error)
        } else {
            eprintln!("greenroom: {}; it is written anew", escape_line(&error.to_string()));
            Ok(ModelFactsFile::default())
        }
    })?;
    let known = reported.facts();
    let models =
        choose(&options)?.into_iter().map(|model| Model { reported: known.of(&model), ..model });
    let refreshed = ask_all(models.collect()).await?;
    let mut is_new = false;
    for one in &refreshed {
        if let Ok(facts) = &one.answer
            && *facts != ModelFacts::default()
        {
            is_new |= *facts != one.model.reported;
            reported.insert(&one.model, facts.clone(), now().to_rfc3339());
        }
    }
    if !options.json {
        show(&refreshed)?;
    }
    let mut took = None;
    if is_new && !options.dry_run {
        create_data_directory(&data)?;
        reported.save(&data)?;
        took = Some(on_host::reload(&options.config.file()?, |_| true).await);
    }
    match (options.json, took) {
        (true, took) => print_json(&to_json(&refreshed, took))?,
        (false, Some(took)) => print(took.describe())?,
        (false, None) if is_new => print("Dry run: nothing was saved.\n")?,
        (false, None) => {} // that nothing is new was said of each
    }
    Ok(if refreshed.iter().all(|one| one.answer.is_ok()) { Exit::Complete } else { Exit::Failed })
}

fn choose(options: &RefreshOptions) -> anyhow::Result<Vec<Model>> {
    let models = options.config.settings()?.ordered_models();
    let Some(id) = &options.id else {
        if models.is_empty() {
            bail!("no models are configured; `greenroom models add` adds one");
        }
        return Ok(models);
    };
    let ids: Vec<String> = models.iter().map(|model| model.id.clone()).collect();
    let chosen = models.into_iter().find(|model| model.id == *id);
    match chosen {
        Some(model) => Ok(vec![model]),
        None if ids.is_empty() => {
            bail!("there is no model `{id}`, nor any other; `greenroom models add` adds one")
        }
        None => bail!("there is no model `{id}`; there are: {}", ids.join(", ")),
    }
}

async fn ask_all(models: Vec<Model>) -> anyhow::Result<Vec<Refreshed>> {
    let mut refreshed = Vec::new();
    for some in models.chunks(AT_ONCE_MAX) {
        let asked = some.iter().cloned().map(|model| {
            tokio::spawn(async move {
                let answer = model_server::describe(&model).await;
                Refreshed { model, answer }
            })
        });
        for asked in asked.collect::<Vec<_>>() {
            refreshed.push(asked.await?);
        }
    }
    Ok(refreshed)
}

fn show(refreshed: &[Refreshed]) -> anyhow::Result<()> {
    for one in refreshed {
        print(&one.describe())?;
    }
    Ok(())
}

/// Each model with what its server says of it, whether that is kept, and what became of it at the host that runs.
fn to_json(refreshed: &[Refreshed], took: Option<HostUpdate>) -> Value {
    let all = refreshed.iter().map(|one| {
        let mut json = one.to_json();
        json["kept"] = json!(took.is_some());
        json["host"] = json!(took.map(HostUpdate::name));
        json
    });
    all.collect()
}

/// Something that a server says of a model.
struct ServerFact {
    name: String,
    before: Value,
    now: Value,
    /// The configuration says something else, and wins.
    overruled_by: Option<Value>,
}

impl Refreshed {
    /// What the server says, by name, with what was known before.
    fn new_facts(&self, facts: &ModelFacts) -> Vec<ServerFact> {
        let fields = |facts: &ModelFacts| match serde_json::to_value(facts) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) | Err(_) => wire::Object::new(), // facts are an object
        };
        let (before, configured) =
            (fields(&self.model.facts()), fields(&self.model.configured_facts()));
        let said = fields(facts).into_iter().map(|(name, now)| ServerFact {
            before: before.get(&name).cloned().unwrap_or_default(),
            overruled_by: configured.get(&name).filter(|it| **it != now).cloned(),
            name,
            now,
        });
        said.collect()
    }

    fn describe(&self) -> String {
        let id = escape_line(&self.model.id);
        let facts = match &self.answer {
            Ok(facts) => facts,
            Err(error) => {
                let advice = error.advice.map(|it| format!(" {it}")).unwrap_or_default();
                return format!(
                    "{id}: its server does not answer: {}{advice}\n",
                    escape_line(&error.message)
                );
            }
        };
        let said = self.new_facts(facts);
        if said.is_empty() {
            let known = if self.model.facts() == ModelFacts::default() {
                "Set what it can do in the configuration, such as `context_tokens`."
            } else {
                "What was known before stays."
            };
            return format!("{id}: the server gives no details about it. {known}\n");
        }
        let lines: Vec<String> = said.iter().filter_map(ServerFact::describe).collect();
        if lines.is_empty() {
            format!("{id}: nothing new\n")
        } else {
            format!("{id}:\n{}", lines.concat())
        }
    }

    fn to_json(&self) -> Value {
        let mut json = json!({"id": self.model.id, "answers": self.answer.is_ok()});
        match &self.answer {
            Err(error) => json["error"] = json!(error.message),
            Ok(facts) => {
                let said = self.new_facts(facts);
                let changes = said
                    .iter()
                    .filter(|it| it.before != it.now && it.overruled_by.is_none())
                    .map(|it| json!({"name": it.name, "before": it.before, "now": it.now}));
                json["told"] = json!(facts);
                json["changes"] = changes.collect();
                let overruled = said.iter().filter(|it| it.overruled_by.is_some());
                json["overruled"] = overruled.map(|it| json!(it.name)).collect();
            }
        }
        json
    }
}

impl ServerFact {
    fn describe(&self) -> Option<String> {
        let now = escape_line(&self.now.to_string());
        match (&self.overruled_by, &self.before) {
            (Some(configured), _) => Some(format!(
                "  {} {now}, but the configuration says {}\n",
                self.name,
                escape_line(&configured.to_string())
            )),
            (None, before) if *before == self.now => None,
            (None, Value::Null) => Some(format!("  {} {now}\n", self.name)),
            (None, before) => {
                let before = escape_line(&before.to_string());
                Some(format!("  {} {now}, not {before}\n", self.name))
            }
        }
    }
}
