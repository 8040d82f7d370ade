//! Where measurements happen: the programs, the scratch directory, the order of subjects, how long things take.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::measure::SeededRng;
use crate::process::{Process, Server};
use crate::rows::{changes, page_deltas, prompt, reading, results};
use crate::seed_data::{Seeder, Shape};
use crate::wire_format::WireFormat;

/// What the agent of every measured host plays: the words of a message say how much of what.
const SCRIPT: &str = r#"{"scenes": [
  {"when": "^stream (\\d+) (\\d+) (\\d+)$",
   "steps": [{"stream": {"chunks": "$1", "size": "$2", "every_ms": "$3"}}]},
  {"when": "^parts (\\d+) (\\d+) (\\d+)$",
   "steps": [{"parts": "$1"}, {"wait_ms": 700}, {"stream": {"chunks": "$2", "size": "$3"}},
             {"wait_ms": 700}]}
]}"#;

/// What an agent over ACP works among.
const PROJECT_FILES: usize = 200;

/// What the model server's only model is called.
pub(crate) const MODEL: &str = "bench";

/// The base URL of a model server on this machine.
pub(crate) fn model_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/v1")
}

/// How the host under measurement is set up. Everything else is as shipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JournalKind {
    Sqlite,
    Memory,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct HostSetup {
    pub journal: JournalKind,
    /// Channels leave memory after this instead of the default, so that one process can be cold again and again.
    pub idle_ms: Option<u64>,
    /// Pieces of a stream wait for so long after a commit, instead of the default.
    pub coalesce_ms: Option<u64>,
    /// The file of the script its agent plays.
    pub script: &'static str,
    /// Where on this machine the model of the native agent answers; without it there is only the scripted agent.
    pub model_port: Option<u16>,
    /// In which wire format it answers.
    pub wire: WireFormat,
    /// Clients need the token of its data directory.
    pub has_token: bool,
    /// It has an agent over ACP (`acp-agent`), with the id `acp`.
    pub acp: Option<AcpSetup>,
}

/// How the agent over ACP is set up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AcpSetup {
    /// Arguments of `acp-agent`.
    pub options: &'static [&'static str],
    /// Its process is stopped after so many idle seconds, instead of the default.
    pub idle_s: Option<u64>,
}

impl AcpSetup {
    /// Its table of the configuration.
    fn table(self, bench: &Path) -> String {
        let args: Vec<&str> =
            std::iter::once("acp-agent").chain(self.options.iter().copied()).collect();
        let mut table = format!(
            "[[agents]]\nid = \"acp\"\ncommand = {bench:?}\nargs = {args:?}\ntrust = \"always\"\n"
        );
        if let Some(idle_s) = self.idle_s {
            table.push_str(&format!("idle_s = {idle_s}\n"));
        }
        table
    }
}

impl HostSetup {
    pub(crate) const SHIPPED: Self = Self {
        journal: JournalKind::Sqlite,
        idle_ms: None,
        coalesce_ms: None,
        script: "script.json",
        model_port: None,
        wire: WireFormat::Chat,
        has_token: false,
        acp: None,
    };
}

pub(crate) struct Harness {
    bench: PathBuf,
    greenroom: PathBuf,
    scratch: PathBuf,
    pub quick: bool,
    rng: SeededRng,
    made: u32,
    cleanup: Process,
    /// Data directories with so many sessions of 20 turns.
    sessions: BTreeMap<u32, PathBuf>,
}

impl Harness {
    /// `greenroom`: the host to measure, instead of the one that is built beside this program.
    pub(crate) fn open(greenroom: Option<&Path>, quick: bool, seed: u64) -> Result<Self> {
        let bench = std::env::current_exe().context("where is this program?")?;
        let release = bench.parent().context("this program lies nowhere")?.to_owned();
        let target = release.parent().unwrap_or(&release).to_owned();
        let greenroom = match greenroom {
            Some(path) => path.to_owned(),
            None => {
                let built = release.join("greenroom");
                build_if_older(&built, &bench, &target)?;
                built
            }
        };
        let scratch = target.join(format!("bench-scratch-{}", std::process::id()));
        std::fs::create_dir_all(&scratch)?;
        std::fs::write(scratch.join("script.json"), SCRIPT)?;
        std::fs::write(scratch.join("results.json"), results::script())?;
        std::fs::write(scratch.join("page.json"), page_deltas::SCRIPT)?;
        std::fs::write(scratch.join("changes.json"), changes::script())?;
        std::fs::write(scratch.join("prompts.json"), prompt::script())?;
        std::fs::write(scratch.join("reading.json"), reading::SCRIPT)?;
        let arguments = ["cleanup".to_owned(), format!("--scratch={}", scratch.display())];
        let cleanup = Process::start(&bench, &arguments, scratch.join("cleanup-log"))?;
        Ok(Self {
            bench,
            greenroom,
            scratch,
            quick,
            rng: SeededRng::new(seed),
            made: 0,
            cleanup,
            sessions: BTreeMap::new(),
        })
    }

    /// This program: it plays other parts, too.
    pub(crate) fn bench(&self) -> &Path {
        &self.bench
    }

    /// The program that is measured.
    pub(crate) fn greenroom(&self) -> &Path {
        &self.greenroom
    }

    /// Where everything is that a measurement makes; it is gone afterwards.
    pub(crate) fn scratch(&self) -> &Path {
        &self.scratch
    }

    pub(crate) fn rounds(&self) -> usize {
        if self.quick { 3 } else { 5 }
    }

    /// A length of measuring: `seconds`, or a third of it in a quick run.
    pub(crate) fn seconds(&self, seconds: f64) -> Duration {
        Duration::from_secs_f64(if self.quick { seconds / 3.0 } else { seconds })
    }

    /// Runs every subject once a round, each round in another order.
    pub(crate) fn shuffled<S: Copy, T>(
        &mut self,
        subjects: &[S],
        mut run: impl FnMut(&mut Self, S) -> Result<T>,
    ) -> Result<Vec<(S, T)>> {
        let mut results = Vec::new();
        for _ in 0..self.rounds() {
            let mut order = subjects.to_vec();
            self.rng.shuffle(&mut order);
            for subject in order {
                results.push((subject, run(self, subject)?));
            }
        }
        Ok(results)
    }

    fn fresh(&mut self, name: &str) -> PathBuf {
        self.made += 1;
        self.scratch.join(format!("{name}-{}", self.made))
    }

    /// An empty directory for the data of a host.
    pub(crate) fn directory(&mut self) -> Result<PathBuf> {
        let path = self.fresh("data");
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// A directory without git, with [`PROJECT_FILES`] files of 2 KB; made once.
    fn project(&self) -> Result<PathBuf> {
        let project = self.scratch.join("project");
        if project.exists() {
            return Ok(project);
        }
        for number in 0..PROJECT_FILES {
            let directory = project.join(format!("part-{}", number % 10));
            std::fs::create_dir_all(&directory)?;
            let line = format!("line of file {number}\n");
            let text = line.repeat(2_048 / line.len());
            std::fs::write(directory.join(format!("file-{number}.txt")), text)?;
        }
        Ok(project)
    }

    /// How long until a host need not read the files of the project again that it read before: it does so with those that changed less
    /// than two seconds before it looked, by whole seconds.
    pub(crate) fn until_settled(&self) -> Result<Duration> {
        const SETTLED: Duration = Duration::from_secs(4);
        let made = std::fs::metadata(self.project()?)?.modified()?;
        // A clock that was set back since says nothing of its age.
        Ok(SETTLED.saturating_sub(made.elapsed().unwrap_or_default()))
    }

    /// A data directory with so many sessions of 20 turns, made once; whoever uses it leaves it as it is.
    pub(crate) fn sessions(&mut self, count: u32) -> Result<PathBuf> {
        if let Some(made) = self.sessions.get(&count) {
            return Ok(made.clone());
        }
        let data = self.directory()?;
        let mut seeder = Seeder::open(&data)?;
        for number in 0..count {
            let shape = Shape { turns: 20, turn_bytes: 400, actions: 20 };
            seeder.session(&format!("session-{number:06}"), shape)?;
        }
        seeder.finish()?;
        // The first start takes up what this host's agents are; those that are measured find it done.
        self.host(&data, HostSetup::SHIPPED)?.stop()?;
        self.sessions.insert(count, data.clone());
        Ok(data)
    }

    /// A real host on a data directory.
    pub(crate) fn host(&mut self, data: &Path, setup: HostSetup) -> Result<Server> {
        self.host_at("127.0.0.1:0", data, setup)
    }

    /// The same at an address: where one was before.
    pub(crate) fn host_at(
        &mut self,
        address: &str,
        data: &Path,
        setup: HostSetup,
    ) -> Result<Server> {
        let config = self.fresh("config");
        let journal = match setup.journal {
            JournalKind::Sqlite => "sqlite",
            JournalKind::Memory => "memory",
        };
        let limits: String =
            [("channel_idle_ms", setup.idle_ms), ("stream_coalesce_ms", setup.coalesce_ms)]
                .into_iter()
                .filter_map(|(name, ms)| Some((name, ms?)))
                .map(|(name, ms)| format!("{name} = {ms}\n"))
                .collect();
        let agent = setup.acp.map(|acp| acp.table(&self.bench)).unwrap_or_default();
        std::fs::write(
            &config,
            format!("journal = \"{journal}\"\nagents_auto = false\n[limits]\n{limits}\n{agent}"),
        )?;
        // The host looks at the files of an agent that it did not write; the data directories of other rows are no project.
        let workspace = match setup.acp {
            Some(_) => self.project()?,
            None => self.scratch.clone(),
        };
        let text = |path: &Path| path.display().to_string();
        let mut arguments = vec![
            "serve".to_owned(),
            "--listen".to_owned(),
            address.to_owned(),
            "--ready-json".to_owned(),
            "--data".to_owned(),
            text(data),
            "--script".to_owned(),
            text(&self.scratch.join(setup.script)),
            "--config".to_owned(),
            text(&config),
            "--workspace".to_owned(),
            text(&workspace),
        ];
        if !setup.has_token {
            arguments.push("--no-token".to_owned());
        }
        if let Some(port) = setup.model_port {
            let (wire, url) = (setup.wire.name(), model_url(port));
            arguments.extend(["--model".to_owned(), format!("{wire}+{url}#{MODEL}")]);
        }
        self.start_host(&arguments, data)
    }

    /// The program that is measured, with these arguments. They name the scratch directory: it is ended with the run by that.
    pub(crate) fn start_host(&mut self, arguments: &[String], data: &Path) -> Result<Server> {
        let log = self.fresh("log");
        let server = Server::start(&self.greenroom, arguments, Some(data.to_owned()), log)?;
        self.cleanup.send_line(&server.pid().to_string())?;
        Ok(server)
    }

    /// The same WebSocket code without a kernel and without a journal.
    pub(crate) fn bare(&mut self, options: &[String]) -> Result<Server> {
        let arguments: Vec<String> =
            ["bare-server".to_owned()].into_iter().chain(options.iter().cloned()).collect();
        let log = self.fresh("log");
        Server::start(&self.bench, &arguments, None, log)
    }

    /// A relay of what a model answers that commits it first.
    pub(crate) fn recording_relay(&mut self, port: u16, wire: WireFormat) -> Result<Server> {
        let (wire, url, data) = (wire.name(), model_url(port), self.directory()?);
        self.bare(&[format!("--relay={wire}+{url}"), format!("--record={}", data.display())])
    }

    /// hyper alone, with a body of this length.
    pub(crate) fn bare_page(&mut self, bytes: usize) -> Result<Server> {
        let arguments = ["bare-page", "--bytes", &bytes.to_string()].map(str::to_owned);
        let log = self.fresh("log");
        Server::start(&self.bench, &arguments, None, log)
    }

    /// A model server that answers at a pace, and its port.
    pub(crate) fn model_server(&mut self) -> Result<(Process, u16)> {
        let mut process = self.child(&["model-server".to_owned()])?;
        let port = process.line()?["port"].as_u64();
        let port = port.and_then(|port| u16::try_from(port).ok());
        Ok((process, port.context("a model server without a port")?))
    }

    /// This program again, in another role: watching, requesting or opening.
    pub(crate) fn child(&mut self, arguments: &[String]) -> Result<Process> {
        let log = self.fresh("log");
        Process::start(&self.bench, arguments, log)
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        if std::fs::remove_dir_all(&self.scratch).is_err() {
            eprintln!("bench: {} could not be removed", self.scratch.display());
        }
    }
}

/// A host older than this program may be of other sources: in a build directory it is built again, which costs nothing
/// if it is not. Where copies of both exist, they are taken as they are.
fn build_if_older(greenroom: &Path, bench: &Path, target: &Path) -> Result<()> {
    let changed = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    if let (Some(host), Some(own)) = (changed(greenroom), changed(bench))
        && host >= own
    {
        return Ok(());
    }
    let is_build = bench.parent().is_some_and(|release| release.join(".fingerprint").exists());
    if greenroom.exists() && !is_build {
        return Ok(());
    }
    eprintln!("bench: building `greenroom`");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--release", "--quiet", "-p", "cli", "--target-dir"])
        .arg(target)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .status();
    match built {
        Ok(status) if status.success() => Ok(()),
        _ if greenroom.exists() => {
            eprintln!("bench: `greenroom` could not be built again; the older one is measured");
            Ok(())
        }
        _ => bail!("there is no `greenroom` beside this program and it could not be built"),
    }
}
