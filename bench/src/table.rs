//! What was measured, beside its floor and its bound, and how that is printed.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub what: String,
    pub unit: String,
    #[serde(deserialize_with = "number_or_null")]
    pub figure: f64,
    #[serde(deserialize_with = "number_or_null")]
    pub floor: f64,
    #[serde(deserialize_with = "number_or_null")]
    pub ratio: f64,
    pub bound: String,
    /// `None`: reported for information, it has no bound.
    pub ok: Option<bool>,
    pub notes: Vec<String>,
}

impl Figure {
    fn new(what: &str, unit: &str, figure: f64, floor: f64) -> Self {
        Self {
            what: what.to_owned(),
            unit: unit.to_owned(),
            figure,
            floor,
            ratio: figure / floor,
            bound: String::new(),
            ok: None,
            notes: Vec::new(),
        }
    }

    /// For information: it has no bound.
    pub(crate) fn reported(what: &str, unit: &str, figure: f64, floor: f64) -> Self {
        Self::new(what, unit, figure, floor)
    }

    /// At most `factor` times the floor.
    pub(crate) fn at_most(what: &str, unit: &str, figure: f64, floor: f64, factor: f64) -> Self {
        let new = Self::new(what, unit, figure, floor);
        Self { bound: format!("<= {factor} x"), ok: Some(new.ratio <= factor), ..new }
    }

    pub(crate) fn at_least(what: &str, unit: &str, figure: f64, floor: f64, factor: f64) -> Self {
        let new = Self::new(what, unit, figure, floor);
        Self { bound: format!(">= {factor} x"), ok: Some(new.ratio >= factor), ..new }
    }

    /// At most `bound`, which `words` explain.
    pub(crate) fn within(
        what: &str,
        unit: &str,
        figure: f64,
        floor: f64,
        bound: f64,
        words: &str,
    ) -> Self {
        let new = Self::new(what, unit, figure, floor);
        Self {
            bound: format!("<= {} ({words})", quantity(bound, unit)),
            ok: Some(figure <= bound),
            ..new
        }
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

fn quantity(value: f64, unit: &str) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        medium if medium >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}

/// One line of a Markdown table.
fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn head(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    line(&names) + &format!("|{}\n", "---|".repeat(names.len()))
}

fn ratio(ratio: f64) -> String {
    if ratio.is_finite() { format!("{ratio:.2}") } else { String::new() }
}

fn verdict(ok: Option<bool>) -> String {
    let text = match ok {
        Some(true) => "yes",
        Some(false) => "**NO**",
        None => "",
    };
    text.to_owned()
}

/// A Markdown table, and below it the notes of its figures.
pub(crate) fn markdown(figures: &[Figure]) -> String {
    let mut text = head(&["what", "figure", "floor", "ratio", "bound", "ok"]);
    for figure in figures {
        text.push_str(&line(&[
            figure.what.clone(),
            quantity(figure.figure, &figure.unit),
            quantity(figure.floor, &figure.unit),
            ratio(figure.ratio),
            figure.bound.clone(),
            verdict(figure.ok),
        ]));
    }
    text.push('\n');
    for figure in figures {
        for note in &figure.notes {
            text.push_str(&format!("- {}: {note}\n", figure.what));
        }
    }
    text
}

/// A Markdown table of two runs. The last ratio is that of the ratios: what changed beyond what the machine did.
pub(crate) fn beside(before: &[Figure], after: &[Figure]) -> String {
    let mut text = head(&[
        "what",
        "before",
        "floor",
        "ratio",
        "after",
        "floor",
        "ratio",
        "after / before",
        "bound",
        "ok",
    ]);
    for figure in after {
        let earlier = before.iter().find(|earlier| earlier.what == figure.what);
        let of = |value: fn(&Figure) -> f64| earlier.map_or(f64::NAN, value);
        text.push_str(&line(&[
            figure.what.clone(),
            quantity(of(|earlier| earlier.figure), &figure.unit),
            quantity(of(|earlier| earlier.floor), &figure.unit),
            ratio(of(|earlier| earlier.ratio)),
            quantity(figure.figure, &figure.unit),
            quantity(figure.floor, &figure.unit),
            ratio(figure.ratio),
            ratio(figure.ratio / of(|earlier| earlier.ratio)),
            figure.bound.clone(),
            verdict(figure.ok),
        ]));
    }
    let gone = |figure: &&Figure| !after.iter().any(|later| later.what == figure.what);
    for figure in before.iter().filter(gone) {
        text.push_str(&format!("\n- only before: {}", figure.what));
    }
    text
}

/// JSON has no word for what is not a number: it is written as `null`.
fn number_or_null<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_judged_by_the_ratio_or_by_the_value() {
        assert_eq!(Figure::at_most("a", "us", 3.0, 2.0, 1.5).ok, Some(true));
        assert_eq!(Figure::at_most("a", "us", 3.1, 2.0, 1.5).ok, Some(false));
        assert_eq!(Figure::at_least("a", "/s", 5.0, 10.0, 0.6).ok, Some(false));
        assert_eq!(Figure::within("a", "ms", 5.0, 1.0, 6.0, "1 x plus 5").ok, Some(true));
        assert_eq!(Figure::within("a", "ms", f64::NAN, 1.0, 6.0, "").ok, Some(false));
    }

    #[test]
    fn two_runs_are_compared_by_their_ratios() {
        let before = [Figure::reported("a", "us", 3.0, 1.0)];
        let after =
            [Figure::at_most("a", "us", 4.0, 2.0, 2.0), Figure::reported("b", "us", 1.0, 1.0)];
        let text = beside(&before, &after);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[2],
            "| a | 3.00 us | 1.00 us | 3.00 | 4.00 us | 2.00 us | 2.00 | 0.67 | <= 2 x | yes |"
        );
        assert!(lines[3].starts_with("| b | - | - |  | 1.00 us"));
    }
}
