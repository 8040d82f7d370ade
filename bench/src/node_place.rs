//! Where a node of a cluster is: its settings, its data directory and its address, so that it can be started again after
//! it was killed.
//!
//! Must not know: what is measured.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::database::Database;
use crate::harness::Harness;
use crate::process::Server;

pub(crate) struct NodePlace {
    arguments: Vec<String>,
    data: PathBuf,
}

impl NodePlace {
    /// `limits`: lines of the table of this name; everything else is as shipped.
    pub(crate) fn make(
        harness: &mut Harness,
        database: &Database,
        name: &str,
        limits: &str,
    ) -> Result<Self> {
        let data = harness.directory()?;
        // A port that nobody has: it is free again for the node.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let url = database.url();
        let settings = format!(
            "journal = \"postgres\"\npostgres = {url:?}\nagents_auto = false\n\
             [limits]\n{limits}\n[cluster]\nname = \"{name}\"\naddress = \"{address}\"\n"
        );
        let config = data.join("bench.toml");
        std::fs::write(&config, settings)?;
        let text = |path: &Path| path.display().to_string();
        let (script, workspace) = (harness.scratch().join("script.json"), harness.scratch());
        let arguments = [
            ("--listen", "127.0.0.1:0".to_owned()),
            ("--data", text(&data)),
            ("--config", text(&config)),
            ("--script", text(&script)),
            ("--workspace", text(workspace)),
        ]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value]);
        let first = ["serve", "--ready-json"].map(str::to_owned);
        Ok(Self { arguments: first.into_iter().chain(arguments).collect(), data })
    }

    /// Dropping what this returns is `kill -9`.
    pub(crate) fn start(&self, harness: &mut Harness) -> Result<Server> {
        harness.start_host(&self.arguments, &self.data)
    }
}
