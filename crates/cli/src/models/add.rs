//! `greenroom models add`: asks a server which models it has, and puts one into the configuration.
//!
//! Promises: what was added answered, unless nobody wanted to know; a key is named by where it lies and never written down.

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail, ensure};
use host::model_server::{self, ServerModels};
use host::{Config, Model};

use super::key_alone::how_to_give_key;
use super::{ConfigFileOptions, choose, edit_config, on_host};
use crate::exit::Exit;
use crate::output::print;
use crate::terminal::{escape, escape_line};

/// Add a model to the configuration, and to the host that runs
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom models add http://localhost:11434/v1#qwen3
  greenroom models add https://api.example.com/v1 --key-env EXAMPLE_KEY
  greenroom models add https://api.example.com/v1#big --key-command 'pass show example'

The server is asked which models it has. The key itself is never written down: the host reads it from the variable or the \
file when it needs it, or runs the command once and again when its key is no longer accepted. The command is split into \
words as a shell would, but no shell runs: use `sh -c '..'` for pipes.

Exit codes: 0 added, 1 not added, 2 wrong usage.")]
pub(super) struct AddOptions {
    /// The server's base URL and the model's name there; without #MODEL, choose one of those it has
    #[arg(value_name = "URL#MODEL")]
    address: String,
    /// Environment variable of the host that holds the key
    #[arg(long, value_name = "VAR", group = "key")]
    key_env: Option<String>,
    /// File that holds the key and nothing else
    #[arg(long, value_name = "FILE", group = "key")]
    key_file: Option<PathBuf>,
    /// Command that prints the key
    #[arg(long, value_name = "CMD", group = "key")]
    key_command: Option<String>,
    /// Header that carries the key, instead of a bearer token in Authorization
    #[arg(long, value_name = "NAME", requires = "key")]
    key_header: Option<String>,
    /// What the model is called here [default: its name at the server]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Make it the default
    #[arg(long)]
    default: bool,
    /// Do not ask the server: it may not be there yet
    #[arg(long)]
    no_check: bool,
    #[command(flatten)]
    config: ConfigFileOptions,
}

pub(super) async fn run(options: AddOptions) -> anyhow::Result<Exit> {
    let (mut model, named) = options.model()?;
    if host::is_key_file_open(&model) {
        eprintln!(
            "greenroom: the key file can be read by others; `chmod 600` makes it yours alone"
        );
    }
    let name = if options.no_check {
        named.context("--no-check needs the name of a model: URL#MODEL")?
    } else {
        match choose_name(&model, named).await? {
            Some(name) => name,
            None => return Ok(Exit::Cancelled),
        }
    };
    name_model(&mut model, name, options.id.clone());
    model.check()?;
    let file = options.config.file()?;
    let mut is_new = true;
    file.change(|text, config| {
        is_new = give_free_id(&mut model, config, options.id.is_some())?;
        let mut text = if is_new { edit_config::add(text, &model)? } else { text.to_owned() };
        if options.default {
            text = edit_config::set_default(&text, Some(&model.id))?;
        }
        Ok(text)
    })?;
    let id = escape_line(&model.id);
    print(&if is_new {
        format!(
            "Added {id} at {} to {}.\n",
            escape_line(&model.endpoint()?.authority()),
            file.display()
        )
    } else {
        format!("{id} is in {} already.\n", file.display())
    })?;
    let default = options.config.settings()?.ordered_models();
    let default = default.first().map(|model| &model.id);
    if default == Some(&model.id) {
        print("It is the default.\n")?;
    } else {
        print(&format!("`greenroom models default {id}` makes it the default.\n"))?;
    }
    let took = on_host::reload(&file, |ids| ids.contains(&model.id)).await;
    print(took.describe())?;
    if let (Some(variable), true) = (&model.key_env, took.is_host_running()) {
        print(&format!(
            "The host reads {} from its own environment. If it was started without it: {}\n",
            escape_line(variable),
            how_to_give_key(variable, file.data())
        ))?;
    }
    Ok(Exit::Complete)
}

impl AddOptions {
    /// The model as far as the command line tells, and its name at the server if that is given.
    fn model(&self) -> anyhow::Result<(Model, Option<String>)> {
        let address = self.address.trim();
        let named = address.rsplit_once('#').filter(|(_, name)| !name.is_empty());
        let (url, named) = match named {
            Some((url, name)) => (url, Some(name.to_owned())),
            None => (address.trim_end_matches('#'), None),
        };
        // The name is checked with the rest, when it is known.
        let mut model = Model::parse(&format!("{url}#model"))
            .map_err(|error| anyhow!(error.to_string().replace("the model `model`: ", "")))?;
        let names_key = self.key_file.is_some() || self.key_command.is_some();
        if names_key || self.key_env.is_some() {
            // A vendor's usual variable counts only if nothing else is said.
            model.key_env = self.key_env.clone();
        }
        model.key_file = self.key_file.as_ref().map(std::path::absolute).transpose()?;
        if let Some(command) = &self.key_command {
            let words = shlex::split(command).context("--key-command: a quote is not closed")?;
            ensure!(!words.is_empty(), "--key-command names no program");
            model.key_command = Some(words);
        }
        model.key_header = self.key_header.clone();
        model.check()?;
        Ok((model, named))
    }
}

/// The model's name at its server, chosen by a person if need be; `None` if nobody wants one.
async fn choose_name(model: &Model, named: Option<String>) -> anyhow::Result<Option<String>> {
    let models = model_server::ask(model).await.map_err(|error| {
        let advice = error.advice.map(|advice| format!("\n{advice}")).unwrap_or_default();
        anyhow!("{}{advice}\nNothing was added; --no-check adds it anyway.", error.message)
    })?;
    let names = match models {
        ServerModels::Listed(names) => names,
        ServerModels::Unlisted(why) => {
            let named = named.with_context(|| {
                format!("the server does not say which models it has ({why}); name one: URL#MODEL")
            })?;
            eprintln!(
                "greenroom: the server does not say which models it has ({}); `{}` is taken as it is",
                escape(&why),
                escape_line(&named)
            );
            return Ok(Some(named));
        }
    };
    let listed = ServerModels::Listed(names.clone());
    if let Some(name) = named {
        if listed.has(&name) == Some(true) {
            return Ok(Some(name));
        }
        eprintln!("greenroom: the server has no model `{}`.", escape_line(&name));
    }
    if names.is_empty() {
        bail!("the server has no models; give it one first (with Ollama: `ollama pull NAME`)");
    }
    if !std::io::stdin().is_terminal() {
        eprint!("The server has:\n{}", choose::list(&names));
        bail!("name one of them: greenroom models add URL#MODEL");
    }
    println!("The server has:");
    let chosen = choose::choose(&names, std::io::stdin().lock(), std::io::stdout())?;
    Ok(chosen)
}

fn name_model(model: &mut Model, name: String, id: Option<String>) {
    match id.filter(|id| *id != name) {
        Some(id) => {
            model.id = id;
            model.model = Some(name);
        }
        None => model.id = name,
    }
}

/// Whether the model is new, with an id that no other has: the address of its server is put behind one that is taken.
fn give_free_id(model: &mut Model, config: &Config, is_id_given: bool) -> anyhow::Result<bool> {
    let find = |id: &str| config.models.iter().find(|other| other.id == id);
    let Some(taken) = find(&model.id) else { return Ok(true) };
    if taken.is_at(model) {
        let is_same = (&taken.key_env, &taken.key_file, &taken.key_command)
            == (&model.key_env, &model.key_file, &model.key_command);
        ensure!(
            is_same,
            "`{0}` is there with another key: `greenroom models remove {0}` first, or name this one with --id",
            model.id
        );
        return Ok(false);
    }
    ensure!(!is_id_given, "another model is called `{}`: choose another --id", model.id);
    let id = format!("{}@{}", model.id, model.endpoint()?.authority());
    if let Some(taken) = find(&id) {
        ensure!(taken.is_at(model), "other models are called `{}` and `{id}`: use --id", model.id);
        model.id = id;
        return Ok(false);
    }
    let name = std::mem::replace(&mut model.id, id);
    model.model.get_or_insert(name);
    Ok(true)
}
