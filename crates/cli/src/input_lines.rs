//! Lines on standard input, and which question each of them may answer: for `send` and for a chat by lines.
//!
//! Promises: a line answers no question but the one that stood there whole when it was typed. On a terminal what was typed before
//! is dropped; a program that writes into a pipe has no such moment, so there it is the question that stood when the line was
//! taken. Nothing is read before the first line is wanted.
//! Must not know: what is asked, how it is shown.

use std::collections::VecDeque;
use std::io::{self, BufRead, IsTerminal};
use std::time::Instant;

use anyhow::Context;
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;

/// Lines that wait to be taken; whoever types more waits.
const LINES_MAX: usize = 16;
/// The longest line; a host takes no longer message by default.
const LINE_BYTES_MAX: u64 = 1 << 20;

type TimedLine = (Instant, io::Result<String>);

/// Standard input, line by line.
#[derive(Debug)]
pub(crate) struct InputLines {
    source: LineSource,
    reader: Option<mpsc::Receiver<TimedLine>>,
    /// Lines that were read to see whether there are any.
    read_ahead: VecDeque<TimedLine>,
    asking: QuestionState,
}

/// Where lines come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineSource {
    /// A person types them.
    Terminal,
    /// A program or a file gives them.
    Pipe,
}

/// Whether something is asked. Every change has a number of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct QuestionState {
    number: u64,
    is_asked: bool,
    /// When it began: when a question stood there whole, or was gone. None from the beginning.
    since: Option<Instant>,
}

/// A line, with what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputLine {
    pub(crate) text: String,
    /// What was asked when it was taken, and whether it was typed since then.
    taken_during: QuestionState,
    is_early: bool,
}

/// What a line is for, now that it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineUse {
    /// The question that stands there, or a message where none does.
    Current,
    /// It was there before the question that stands there.
    BeforeQuestion,
    /// It was for a question that is gone.
    QuestionGone,
}

impl InputLines {
    pub(crate) fn standard() -> Self {
        Self::new(if io::stdin().is_terminal() { LineSource::Terminal } else { LineSource::Pipe })
    }

    fn new(source: LineSource) -> Self {
        Self { source, reader: None, read_ahead: VecDeque::new(), asking: QuestionState::default() }
    }

    pub(crate) fn source(&self) -> LineSource {
        self.source
    }

    /// Whether there is a line at all; it is not taken.
    pub(crate) async fn has_any(&mut self) -> bool {
        if self.read_ahead.is_empty() {
            let line = self.receive().await;
            self.read_ahead.extend(line);
        }
        !self.read_ahead.is_empty()
    }

    /// The next line; none at the end of the input. May be dropped and called again: nothing is lost.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<InputLine>> {
        let line = match self.read_ahead.pop_front() {
            Some(line) => Some(line),
            None => self.receive().await,
        };
        let Some((typed_at, text)) = line else { return Ok(None) };
        Ok(Some(InputLine {
            text: text.context("standard input cannot be read")?,
            taken_during: self.asking,
            // A program's lines lie there before anything is asked.
            is_early: self.source == LineSource::Terminal
                && self.asking.since.is_some_and(|since| typed_at <= since),
        }))
    }

    async fn receive(&mut self) -> Option<TimedLine> {
        self.reader.get_or_insert_with(read_lines).recv().await
    }

    /// A question is about to be shown: what was typed already was not typed as an answer to it.
    pub(crate) fn begin_question(&mut self) -> anyhow::Result<()> {
        self.drop_typed()?;
        self.change(true);
        Ok(())
    }

    /// The question stands there whole: what comes from now on may answer it.
    pub(crate) fn question_shown(&mut self) {
        self.asking.since = Some(Instant::now());
    }

    /// The question is gone: what was typed for it is no message either.
    pub(crate) fn end_question(&mut self) -> anyhow::Result<()> {
        self.drop_typed()?;
        self.change(false);
        Ok(())
    }

    /// Drops what was typed and is no line yet; lines that were read are told apart by their moment.
    fn drop_typed(&self) -> anyhow::Result<()> {
        if self.source == LineSource::Terminal {
            tcflush(io::stdin(), QueueSelector::IFlush)
                .context("what was typed before cannot be dropped")?;
        }
        Ok(())
    }

    fn change(&mut self, is_asked: bool) {
        self.asking =
            QuestionState { number: self.asking.number + 1, is_asked, since: Some(Instant::now()) };
    }

    /// What a line is for now: since it was taken another question may have come.
    pub(crate) fn use_of(&self, line: &InputLine) -> LineUse {
        let is_same = line.taken_during.number == self.asking.number;
        // What came before a question began or ended was for what stood there before it.
        let was_asked =
            if line.is_early { !line.taken_during.is_asked } else { line.taken_during.is_asked };
        match (is_same && !line.is_early, was_asked, self.asking.is_asked) {
            (true, _, _) | (false, false, false) => LineUse::Current,
            (false, false, true) => LineUse::BeforeQuestion,
            (false, true, _) => LineUse::QuestionGone,
        }
    }
}

/// Reads on a thread of its own: a line has the moment at which it was typed, not that at which it was wanted.
fn read_lines() -> mpsc::Receiver<TimedLine> {
    let (sender, receiver) = mpsc::channel(LINES_MAX);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Some(line) = read_line(&mut input) {
            let is_over = line.is_err();
            if sender.blocking_send((Instant::now(), line)).is_err() || is_over {
                break; // nobody wants more, or there is no more to be had
            }
        }
    });
    receiver
}

/// The next line without its end; none at the end of the input.
fn read_line(input: &mut impl BufRead) -> Option<io::Result<String>> {
    let mut line = Vec::new();
    let mut bounded = io::Read::take(&mut *input, LINE_BYTES_MAX + 1);
    match bounded.read_until(b'\n', &mut line) {
        Ok(0) => return None,
        Ok(_) => {}
        Err(error) => return Some(Err(error)),
    }
    if line.pop_if(|last| *last == b'\n').is_some() {
        line.pop_if(|last| *last == b'\r');
    }
    if line.len() as u64 > LINE_BYTES_MAX {
        return Some(Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "a line is longer than {} MiB: put it in a file and name that in the message",
                LINE_BYTES_MAX >> 20
            ),
        )));
    }
    let wrong = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    Some(String::from_utf8(line).map_err(wrong))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_has_a_bound() {
        let most = usize::try_from(LINE_BYTES_MAX).unwrap();
        let mut input = Vec::from("one\r\n\nt\rwo\n");
        input.extend(vec![b'x'; most]);
        input.extend(b"\nlast");
        let mut input = input.as_slice();
        let mut next = || read_line(&mut input).map(|line| line.unwrap());
        for expected in ["one", "", "t\rwo"] {
            assert_eq!(next().as_deref(), Some(expected));
        }
        assert_eq!(next().map(|line| line.len()), Some(most));
        assert_eq!((next().as_deref(), next()), (Some("last"), None));
        // It ends though the input does not.
        let endless = read_line(&mut io::BufReader::new(io::repeat(b'x')));
        let error = endless.unwrap().unwrap_err().to_string();
        assert!(error.starts_with("a line is longer than 1 MiB"), "{error}");
        let wrong = read_line(&mut &b"\xff\n"[..]).unwrap().unwrap_err();
        assert_eq!(wrong.kind(), io::ErrorKind::InvalidData);
    }

    /// Lines that are there at these moments.
    fn lines(source: LineSource, typed: &[(&str, Instant)]) -> InputLines {
        let mut lines = InputLines::new(source);
        let typed = typed.iter();
        lines.read_ahead = typed.map(|(text, at)| (*at, Ok((*text).to_owned()))).collect();
        lines
    }

    fn change(lines: &mut InputLines, is_asked: bool, at: Instant) {
        lines.change(is_asked);
        lines.asking.since = Some(at);
    }

    async fn next(lines: &mut InputLines) -> (InputLine, LineUse) {
        let line = lines.next().await.unwrap().unwrap();
        let used = lines.use_of(&line);
        (line, used)
    }

    #[tokio::test]
    async fn what_was_typed_before_a_question_stood_there_is_no_answer() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let typed = [("1", at(0)), ("2", at(10)), ("3", at(11))];
        let mut terminal = lines(LineSource::Terminal, &typed);
        change(&mut terminal, true, at(10));
        assert_eq!(next(&mut terminal).await.1, LineUse::BeforeQuestion);
        assert_eq!(next(&mut terminal).await.1, LineUse::BeforeQuestion);
        let (line, used) = next(&mut terminal).await;
        assert_eq!((line.text.as_str(), used), ("3", LineUse::Current));
        // A script's lines lie there before anything is asked.
        let mut pipe = lines(LineSource::Pipe, &typed);
        change(&mut pipe, true, at(10));
        assert_eq!(next(&mut pipe).await.1, LineUse::Current);
    }

    #[tokio::test]
    async fn a_line_for_one_question_does_not_answer_the_next() {
        let begin = Instant::now();
        for source in [LineSource::Terminal, LineSource::Pipe] {
            let later = begin + Duration::from_millis(1);
            let mut lines = lines(source, &[("1", later), ("hello", later), ("1", later)]);
            change(&mut lines, true, begin);
            let (line, _) = next(&mut lines).await;
            change(&mut lines, true, begin);
            assert_eq!(lines.use_of(&line), LineUse::QuestionGone);
            change(&mut lines, false, begin);
            assert_eq!(lines.use_of(&line), LineUse::QuestionGone, "nor is it a message");
            let (message, used) = next(&mut lines).await;
            assert_eq!(used, LineUse::Current);
            change(&mut lines, true, begin);
            assert_eq!(lines.use_of(&message), LineUse::BeforeQuestion);
            assert_eq!(next(&mut lines).await.1, LineUse::Current);
        }
    }

    #[tokio::test]
    async fn an_answer_that_came_too_late_is_no_message() {
        let begin = Instant::now();
        let later = begin + Duration::from_millis(1);
        let mut lines = lines(LineSource::Terminal, &[("1", begin), ("hello", later)]);
        change(&mut lines, true, begin);
        change(&mut lines, false, begin);
        assert_eq!(next(&mut lines).await.1, LineUse::QuestionGone);
        assert_eq!(next(&mut lines).await.1, LineUse::Current);
    }
}
