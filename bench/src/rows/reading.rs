//! CPU of `greenroom chat` for each frame it draws, at the end of an answer of 20,000 lines against its beginning: what is drawn must
//! cost what the screen holds, not what was said before.
//!
//! The real program in a real pseudo-terminal of 80 by 24. Its frames are counted by the sequence that begins each. The answer comes at
//! 1,000 lines a second, once as one block of code, once as paragraphs.

use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::{Result, bail};

use super::median_of;
use crate::harness::{Harness, HostSetup};
use crate::measure::Cpu;
use crate::pty::PtyProcess;
use crate::table::Figure;

pub(crate) const SCRIPT: &str = r#"{"scenes": [
  {"when": "^code$", "steps": [{"stream": {"chunks": 20000, "size": 60, "every_ms": 1, "first": "```rust\n", "end": "\n"}}]},
  {"when": "^prose$", "steps": [{"stream": {"chunks": 20000, "size": 60, "every_ms": 1, "end": "\n\n"}}]}
]}"#;

/// Lines at the beginning and at the end of which the frames are measured; those around them are for warming up.
const BEGINNING: RangeInclusive<u64> = 200..=1_200;
const END: RangeInclusive<u64> = 18_800..=19_800;

/// Begins each drawing.
const FRAME: &[u8] = b"\x1b[?2026h";
/// Longer than nothing is printed while an answer comes in.
const SILENCE_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Text {
    Code,
    Prose,
}

/// Microseconds of CPU for each frame.
struct FrameCosts {
    beginning: f64,
    end: f64,
}

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let results = harness.shuffled(&[Text::Code, Text::Prose], measure)?;
    let figure = |what: &str, text: Text| {
        let end = median_of(&results, text, |costs| costs.end);
        let beginning = median_of(&results, text, |costs| costs.beginning);
        Figure::at_most(what, "us", end, beginning, 1.25)
    };
    Ok(vec![
        figure(
            "CPU per frame, lines 18,800 to 19,800 of code, against lines 200 to 1,200",
            Text::Code,
        ),
        figure("the same, of paragraphs", Text::Prose),
    ])
}

fn measure(harness: &mut Harness, text: Text) -> Result<FrameCosts> {
    let data = harness.directory()?;
    let setup = HostSetup { script: "reading.json", ..HostSetup::SHIPPED };
    let server = harness.host(&data, setup)?;
    let url = format!("ws://{}/", server.address);
    let mut chat = Chat::start(harness, &url)?;
    chat.wait_for(&["›"])?;
    let message = match text {
        Text::Code => "code\r",
        Text::Prose => "prose\r",
    };
    chat.program.press(message)?;
    Ok(FrameCosts { beginning: chat.measure(BEGINNING)?, end: chat.measure(END)? })
}

/// The program in its terminal, and how often it has drawn.
struct Chat {
    program: PtyProcess,
    /// The end of what was printed.
    tail: Vec<u8>,
    frames: u64,
}

impl Chat {
    fn start(harness: &Harness, url: &str) -> Result<Self> {
        let arguments = ["chat", "--host", url];
        let program = PtyProcess::start(harness.greenroom(), &arguments, harness.scratch())?;
        Ok(Self { program, tail: Vec::new(), frames: 0 })
    }

    /// Reads until a line of the answer was printed, whatever the colour of its number.
    fn wait_for_line(&mut self, number: u64) -> Result<()> {
        self.wait_for(&[&format!("{number} abcdef"), &format!("{number}\x1b[0m abcdef")])
    }

    /// Reads until one of these was printed.
    fn wait_for(&mut self, texts: &[&str]) -> Result<()> {
        let is_there = |tail: &[u8]| texts.iter().any(|text| contains(tail, text.as_bytes()));
        while !is_there(&self.tail) {
            let Some(bytes) = self.program.read(SILENCE_MAX) else {
                bail!("the chat did not print any of {texts:?}");
            };
            // What was split between two reads is found with the end of the first.
            let kept = self.tail.len().saturating_sub(4_096);
            self.tail.drain(..kept);
            let before = count(&self.tail, FRAME);
            self.tail.extend(bytes);
            self.frames += count(&self.tail, FRAME) - before;
        }
        Ok(())
    }

    /// CPU for each frame between two lines.
    fn measure(&mut self, lines: RangeInclusive<u64>) -> Result<f64> {
        self.wait_for_line(*lines.start())?;
        let (cpu, frames) = (Cpu::of(self.program.pid())?, self.frames);
        self.wait_for_line(*lines.end())?;
        let used = Cpu::of(self.program.pid())?.since(cpu).total_ns as f64 / 1_000.0;
        let drawn = self.frames - frames;
        if drawn == 0 {
            bail!("nothing was drawn between lines {} and {}", lines.start(), lines.end());
        }
        Ok(used / drawn as f64)
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn count(bytes: &[u8], part: &[u8]) -> u64 {
    let found = bytes.windows(part.len()).filter(|window| *window == part);
    u64::try_from(found.count()).unwrap_or(0)
}
