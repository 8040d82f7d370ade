//! The line under the input: which model, in which mode, where, how full its window is, what it cost, what runs, and what
//! waits elsewhere.
//!
//! Promises: a pure function of facts and width. Where there is little room, what matters least is shortened first, then left
//! out; what runs and what waits for the user goes last.
//! Must not know: terminals, clocks, files.

use std::time::Duration;

use super::line::{Line, Style, columns};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long a frame of the spinner is shown.
pub(crate) const FRAME: Duration = Duration::from_millis(125);
const SEPARATOR: &str = " · ";
/// A window that is fuller than this is pointed out.
const FULL_PERCENT: u64 = 80;

/// What the line is made of; what is absent is not shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct StatusFacts {
    /// How long the turn that runs has been running.
    pub(crate) running: Option<Duration>,
    /// Other sessions that wait for the user.
    pub(crate) waiting_elsewhere: usize,
    pub(crate) model: Option<ModelFact>,
    pub(crate) mode: Option<ModeFact>,
    pub(crate) directory: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) context_percent: Option<u64>,
    pub(crate) cost: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelFact {
    Used(String),
    /// The model, or the agent, is not there any more.
    Gone(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModeFact {
    pub(crate) title: String,
    /// It lets the agent do much without asking.
    pub(crate) gives_much: bool,
}

/// A piece of the line, in a long and a short form.
struct Segment {
    style: Style,
    long: String,
    short: String,
    /// What has a higher one is shortened and left out first.
    rank: u8,
}

pub(crate) fn line(facts: &StatusFacts, width: usize) -> Line {
    let mut segments = segments(facts);
    let mut shortened = vec![false; segments.len()];
    let mut order: Vec<usize> = (0..segments.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(segments[*index].rank));
    let text = |segment: &Segment, is_short: bool| {
        if is_short { segment.short.clone() } else { segment.long.clone() }
    };
    let total = |segments: &[Segment], shortened: &[bool]| {
        let shown: Vec<usize> = segments
            .iter()
            .zip(shortened)
            .map(|(segment, is_short)| columns(&text(segment, *is_short)))
            .filter(|columns| *columns > 0)
            .collect();
        shown.iter().sum::<usize>() + shown.len().saturating_sub(1) * columns(SEPARATOR)
    };
    for index in &order {
        if total(&segments, &shortened) <= width {
            break;
        }
        shortened[*index] = true;
    }
    for index in &order {
        if total(&segments, &shortened) <= width {
            break;
        }
        segments[*index].short = String::new();
    }
    let mut line = Line::default();
    for (segment, is_short) in segments.iter().zip(shortened) {
        let text = text(segment, is_short);
        if text.is_empty() {
            continue;
        }
        if line.width() > 0 {
            line = line.then(Style::Dim, SEPARATOR);
        }
        line = line.then(segment.style, text);
    }
    line.clip(width)
}

fn segments(facts: &StatusFacts) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut add = |rank: u8, style: Style, long: String, short: String| {
        segments.push(Segment { style, long, short, rank });
    };
    if let Some(running) = facts.running {
        let time = format_elapsed(running);
        let frame = running.as_millis() / FRAME.as_millis();
        let frame = FRAMES[usize::try_from(frame).unwrap_or(0) % FRAMES.len()];
        add(0, Style::Plain, format!("{frame} {time}"), format!("{frame} {time}"));
    }
    if facts.waiting_elsewhere > 0 {
        let (count, verb) = match facts.waiting_elsewhere {
            1 => ("1 session".to_owned(), "needs"),
            many => (format!("{many} sessions"), "need"),
        };
        let short = format!("{} {verb} you", facts.waiting_elsewhere);
        add(1, Style::Warn, format!("{count} {verb} you"), short);
    }
    match &facts.model {
        Some(ModelFact::Used(name)) => add(3, Style::Dim, name.clone(), shorten(name, 14)),
        Some(ModelFact::Gone(name)) => {
            let short = format!("{} gone: /model", shorten(name, 12));
            add(2, Style::Bad, format!("{name} is gone: /model"), short);
        }
        None => {}
    }
    if let Some(mode) = &facts.mode {
        let (rank, style) = if mode.gives_much { (2, Style::Warn) } else { (4, Style::Dim) };
        add(rank, style, mode.title.clone(), mode.title.clone());
    }
    if let Some(directory) = &facts.directory {
        add(6, Style::Dim, directory.clone(), last_name(directory));
    }
    if let Some(branch) = &facts.branch {
        add(7, Style::Dim, branch.clone(), shorten(branch, 14));
    }
    if let Some(percent) = facts.context_percent {
        let style = if percent >= FULL_PERCENT { Style::Warn } else { Style::Dim };
        add(5, style, format!("context {percent}%"), format!("{percent}%"));
    }
    if let Some(cost) = &facts.cost {
        add(8, Style::Dim, cost.clone(), cost.clone());
    }
    segments
}

/// A time as people read it, to the second.
fn format_elapsed(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h {minutes:02}m"),
    }
}

/// An amount of money: cents where they say something, more digits where they do not.
pub(crate) fn format_cost(amount: f64, currency: &str, is_partial: bool) -> String {
    let digits = match amount {
        small if small < 0.1 => 3,
        _ => 2,
    };
    let sign = match currency {
        "USD" => "$".to_owned(),
        other => format!("{other} "),
    };
    let more = if is_partial { "+" } else { "" };
    format!("{sign}{amount:.digits$}{more}")
}

fn shorten(text: &str, columns_max: usize) -> String {
    Line::new(Style::Plain, text).clip(columns_max).text()
}

/// The last directory of a path.
fn last_name(path: &str) -> String {
    let name = path.trim_end_matches('/').rsplit('/').next();
    name.filter(|name| !name.is_empty()).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> StatusFacts {
        StatusFacts {
            running: Some(Duration::from_millis(65_250)),
            waiting_elsewhere: 2,
            model: Some(ModelFact::Used("Qwen 3 Coder 30B A3B".to_owned())),
            mode: Some(ModeFact { title: "Accept edits".to_owned(), gives_much: false }),
            directory: Some("~/projects/greenroom".to_owned()),
            branch: Some("feature/a-long-branch-name".to_owned()),
            context_percent: Some(34),
            cost: Some(format_cost(0.416, "USD", false)),
        }
    }

    #[test]
    fn what_matters_least_goes_first() {
        let at = |width| line(&facts(), width).text();
        assert_eq!(
            at(159),
            "⠹ 1m 05s · 2 sessions need you · Qwen 3 Coder 30B A3B · Accept edits · ~/projects/greenroom · \
             feature/a-long-branch-name · context 34% · $0.42"
        );
        assert_eq!(
            at(79),
            "⠹ 1m 05s · 2 need you · Qwen 3 Coder … · Accept edits · greenroom · 34%"
        );
        assert_eq!(at(39), "⠹ 1m 05s · 2 need you · Qwen 3 Coder …");
        assert_eq!(at(20), "⠹ 1m 05s");
        for width in 1..170 {
            assert!(line(&facts(), width).width() <= width, "{width}");
        }
    }

    #[test]
    fn what_is_wrong_or_dangerous_stays_longer() {
        let mut facts = facts();
        facts.running = None;
        facts.waiting_elsewhere = 1;
        facts.model = Some(ModelFact::Gone("qwen3:8b".to_owned()));
        facts.mode = Some(ModeFact { title: "Full access".to_owned(), gives_much: true });
        assert_eq!(line(&facts, 52).text(), "1 needs you · qwen3:8b gone: /model · Full access");
        assert_eq!(line(&StatusFacts::default(), 40).text(), "");
    }

    #[test]
    fn times_and_costs_are_short() {
        let elapsed = |seconds| format_elapsed(Duration::from_secs(seconds));
        assert_eq!(elapsed(0), "0s");
        assert_eq!(elapsed(3_599), "59m 59s");
        assert_eq!(elapsed(3_661), "1h 01m");
        assert_eq!(format_cost(0.0042, "USD", true), "$0.004+");
        assert_eq!(format_cost(12.0, "EUR", false), "EUR 12.00");
    }
}
