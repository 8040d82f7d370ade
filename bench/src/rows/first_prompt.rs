//! From the start of `greenroom` in a terminal, with a host that runs already, to the prompt; beside the same program when it
//! only says its version. The host is as shipped: it has a token and proves itself, and its journal is on disk.

use anyhow::Result;

use super::{median_of, values};
use crate::harness::{Harness, HostSetup};
use crate::measure::{median, spread};
use crate::pty::PtyProcess;
use crate::table::Figure;

/// What people wait at most before they notice it.
const BOUND_MS: f64 = 50.0;
const PROMPT: &str = "›";
const CTRL_D: &str = "\x04";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Prompt,
    Version,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let starts = if harness.quick { 5 } else { 15 };
    let data = harness.directory()?;
    let host = harness.host(&data, HostSetup { has_token: true, ..HostSetup::SHIPPED })?;
    let data = data.display().to_string();
    let results = harness.shuffled(&[Subject::Prompt, Subject::Version], |harness, subject| {
        let mut times = Vec::new();
        for _ in 0..starts {
            let (arguments, text, keys): (&[&str], _, _) = match subject {
                Subject::Prompt => (&["--data", &data], PROMPT, CTRL_D),
                Subject::Version => (&["--version"], "greenroom", ""),
            };
            let mut program = PtyProcess::start(harness.greenroom(), arguments, harness.scratch())?;
            times.push(program.wrote_after_ns(text)? as f64 / 1e6);
            program.leave(keys)?;
        }
        Ok(median(&times))
    })?;
    host.stop()?;
    let time = |ms: &f64| *ms;
    let prompt = median_of(&results, Subject::Prompt, time);
    let version = median_of(&results, Subject::Version, time);
    let what = "`greenroom` to its prompt, with a host that runs, against `--version`";
    Ok(vec![Figure::within(what, "ms", prompt, version, BOUND_MS, "50 ms").note(format!(
        "rounds: prompt {}, version {}",
        spread(&values(&results, Subject::Prompt, time)),
        spread(&values(&results, Subject::Version, time)),
    ))])
}
