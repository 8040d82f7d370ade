//! What it costs to find what a project keeps for agents: 200 files of skills, commands, custom agents and rules, read and
//! understood, against reading the same files.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{median_of, values};
use crate::harness::Harness;
use crate::host_api::completion::{Confinement, DiscoveryCache, UserDirectories, discover};
use crate::measure::{now_ns, spread};
use crate::table::Figure;

const FILES: usize = 200;
const BOUND_MS: f64 = 150.0;

/// Until a file's next change can be told by its times.
const SETTLED: Duration = Duration::from_millis(2_200);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Subject {
    Discovery,
    Reading,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let project = harness.directory()?;
    let files = write_project(&project)?;
    let subjects = [Subject::Discovery, Subject::Reading];
    let results = harness.shuffled(&subjects, |_, subject| measure(&project, &files, subject))?;
    let cost = |cost: &f64| *cost;
    let figure = Figure::within(
        "finding the customizations of a project with 200 files",
        "ms",
        median_of(&results, Subject::Discovery, cost),
        median_of(&results, Subject::Reading, cost),
        BOUND_MS,
        "nobody waits for it",
    )
    .note(format!(
        "rounds: found {}, read {}",
        spread(&values(&results, Subject::Discovery, cost)),
        spread(&values(&results, Subject::Reading, cost)),
    ));
    Ok(vec![figure, read_again(&project, &files)?])
}

/// How many files are read again when one of them changed.
fn read_again(project: &Path, files: &[PathBuf]) -> Result<Figure> {
    // A file that was written just now is read each time: its next change could not be told.
    std::thread::sleep(SETTLED);
    let uri = [format!("file://{}", project.display())];
    let cache = DiscoveryCache::default();
    let looked = |cache: &DiscoveryCache| {
        let before = cache.files_read();
        black_box(cache.look(&uri, &[]));
        (cache.files_read() - before) as f64
    };
    let first = looked(&cache);
    ensure!(first >= FILES as f64, "the first look reads all of them");
    let file = files.first().context("there are files")?;
    std::fs::write(file, "---\ndescription: Another\n---\nAnother.")?;
    let again = looked(&cache);
    let what = "files that are read again when one of 200 changed";
    let figure = Figure::within(what, "", again, first, 1.0, "1");
    Ok(figure.note(format!("the first look reads {first:.0}")))
}

fn measure(project: &Path, files: &[PathBuf], subject: Subject) -> Result<f64> {
    let start = now_ns();
    match subject {
        Subject::Discovery => {
            let uri = format!("file://{}", project.display());
            let user = UserDirectories::default();
            let found = discover(&[uri], &user, &[], &Confinement::none());
            let children = found.containers.iter().map(|it| it.children.len());
            ensure!(children.sum::<usize>() == FILES, "all of them are found");
            black_box(found);
        }
        Subject::Reading => {
            for file in files {
                black_box(std::fs::read_to_string(file)?);
            }
        }
    }
    Ok((now_ns() - start) as f64 / 1e6)
}

fn write_project(project: &Path) -> Result<Vec<PathBuf>> {
    let body = "Read before you write. ".repeat(40);
    let mut files = Vec::new();
    for number in 0..FILES {
        let path = match number % 4 {
            0 => format!(".agents/skills/skill-{number}/SKILL.md"),
            1 => format!(".claude/commands/command-{number}.md"),
            2 => format!(".claude/agents/agent-{number}.md"),
            _ => format!(".claude/rules/rule-{number}.md"),
        };
        let path = project.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(project))?;
        std::fs::write(&path, format!("---\ndescription: Number {number}\n---\n{body}"))?;
        files.push(path);
    }
    Ok(files)
}
