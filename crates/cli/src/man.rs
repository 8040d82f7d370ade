//! `greenroom man`: the manual pages, made from the command line itself.

use std::path::PathBuf;

use anyhow::Context;
use clap_mangen::Man;

use crate::exit::Exit;
use crate::output::print;

/// Write the manual pages
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  greenroom man | man -l -                         read the first page
  greenroom man ~/.local/share/man/man1            write them all; then `man greenroom-serve`")]
pub(crate) struct ManOptions {
    /// Directory to write a page for every verb to; without it the first page goes to standard output
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn run(options: &ManOptions) -> anyhow::Result<Exit> {
    // The page lists the verbs by itself, with references to their own pages.
    let command = crate::help::ungrouped_command();
    let Some(directory) = &options.directory else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        print(&String::from_utf8(page)?)?;
        return Ok(Exit::Complete);
    };
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command, directory));
    written.with_context(|| format!("the pages cannot be written to {}", directory.display()))?;
    eprintln!("Wrote the pages to {}.", directory.display());
    Ok(Exit::Complete)
}
