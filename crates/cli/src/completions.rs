//! `greenroom completions`: prints what a shell needs to complete this command line.

use clap_complete::Shell;

use crate::exit::Exit;
use crate::output::print;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom completions bash > ~/.local/share/bash-completion/completions/greenroom
  greenroom completions zsh > ~/.zfunc/_greenroom        (with ~/.zfunc in fpath)
  greenroom completions fish > ~/.config/fish/completions/greenroom.fish")]
pub(crate) struct CompletionsOptions {
    shell: Shell,
}

pub(crate) fn run(options: &CompletionsOptions) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    let mut command = crate::help::command();
    clap_complete::generate(options.shell, &mut command, "greenroom", &mut script);
    print(&String::from_utf8(script)?)?;
    Ok(Exit::Complete)
}
