//! `greenroom models`: lists the configured models and checks that each is reachable.

use std::path::PathBuf;

use client::endpoint;
use host::Model;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::output::{print, print_json};
use crate::serve::settings;
use crate::terminal::escape_line;

/// List the configured models and check that each is reachable
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom models
  greenroom models --model http://localhost:11434/v1#qwen3

Exit codes: 0 all answer, 1 some do not, 2 wrong usage.")]
pub(crate) struct ModelsOptions {
    /// Data directory whose greenroom.toml names the models
    /// [default: $XDG_DATA_HOME/greenroom, else ~/.local/share/greenroom]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// TOML file with settings, instead of the one in the data directory
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Ask this model instead of those that are configured; may be repeated
    #[arg(long, value_name = "URL#MODEL", value_parser = Model::parse)]
    model: Vec<Model>,
    /// Print one JSON array instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(options: ModelsOptions) -> anyhow::Result<Exit> {
    let models = match options.model.is_empty() {
        false => options.model,
        true => {
            let data = endpoint::data_directory(options.data.as_deref())?;
            settings(data, options.config.as_deref())?.models
        }
    };
    let mut all_answer = true;
    let mut checked = Vec::new();
    for model in &models {
        let answer = host::check_model(model).await;
        all_answer &= answer.is_ok();
        checked.push((model, answer));
    }
    if options.json {
        let models: Vec<Value> = checked
            .iter()
            .map(|(model, answer)| to_json(model, answer))
            .collect();
        print_json(&Value::Array(models))?;
    } else if checked.is_empty() {
        print(HOW_TO_ADD)?;
    } else {
        for (model, answer) in &checked {
            print(&format_line(model, answer))?;
        }
    }
    Ok(match all_answer {
        true => Exit::Complete,
        false => Exit::Failed,
    })
}

const HOW_TO_ADD: &str = "No models are configured. Try one with

  greenroom --model http://localhost:11434/v1#qwen3

or add it to greenroom.toml in the data directory:

  [[models]]
  id = \"qwen3\"
  base_url = \"http://localhost:11434/v1\"
";

fn to_json(model: &Model, answer: &Result<(), String>) -> Value {
    let mut json = json!({
        "id": model.id,
        "name": model.name.as_ref().unwrap_or(&model.id),
        "baseUrl": model.base_url,
        "answers": answer.is_ok(),
    });
    if let Err(why) = answer {
        json["error"] = json!(why);
    }
    json
}

fn format_line(model: &Model, answer: &Result<(), String>) -> String {
    let state = match answer {
        Ok(()) => "answers".to_owned(),
        Err(why) => format!("does not answer: {}", escape_line(why)),
    };
    format!(
        "{}  {}  {state}\n",
        escape_line(&model.id),
        escape_line(&model.base_url)
    )
}
