//! What was measured, beside its floor and what it must reach.

use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    pub what: String,
    pub unit: &'static str,
    pub figure: f64,
    pub floor: f64,
    pub ratio: f64,
    pub must: String,
    /// `None`: told for information, nothing is demanded.
    pub ok: Option<bool>,
    pub notes: Vec<String>,
}

impl Figure {
    fn new(what: &str, unit: &'static str, figure: f64, floor: f64) -> Self {
        Self {
            what: what.to_owned(),
            unit,
            figure,
            floor,
            ratio: figure / floor,
            must: String::new(),
            ok: None,
            notes: Vec::new(),
        }
    }

    /// For information: nothing is demanded.
    pub fn told(what: &str, unit: &'static str, figure: f64, floor: f64) -> Self {
        Self::new(what, unit, figure, floor)
    }

    /// At most `factor` times the floor.
    pub fn at_most(what: &str, unit: &'static str, figure: f64, floor: f64, factor: f64) -> Self {
        let new = Self::new(what, unit, figure, floor);
        Self {
            must: format!("<= {factor} x"),
            ok: Some(new.ratio <= factor),
            ..new
        }
    }

    pub fn at_least(what: &str, unit: &'static str, figure: f64, floor: f64, factor: f64) -> Self {
        let new = Self::new(what, unit, figure, floor);
        Self {
            must: format!(">= {factor} x"),
            ok: Some(new.ratio >= factor),
            ..new
        }
    }

    /// At most `bound`, which `words` explain.
    pub fn within(
        what: &str,
        unit: &'static str,
        figure: f64,
        floor: f64,
        bound: f64,
        words: &str,
    ) -> Self {
        let new = Self::new(what, unit, figure, floor);
        let must = format!("<= {} ({words})", quantity(bound, unit));
        Self {
            must,
            ok: Some(figure <= bound),
            ..new
        }
    }

    pub fn note(mut self, note: impl Into<String>) -> Self {
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

/// The table as text, columns aligned; notes stand below their line.
pub fn text(figures: &[Figure]) -> String {
    let head = ["what", "figure", "floor", "ratio", "must", "ok?"].map(str::to_owned);
    let cells = figures.iter().map(|figure| {
        let ok = match figure.ok {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        let ratio = if figure.ratio.is_finite() {
            format!("{:.2}", figure.ratio)
        } else {
            String::new()
        };
        [
            figure.what.clone(),
            quantity(figure.figure, figure.unit),
            quantity(figure.floor, figure.unit),
            ratio,
            figure.must.clone(),
            ok.to_owned(),
        ]
    });
    let rows: Vec<[String; 6]> = [head].into_iter().chain(cells).collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..6).map(width).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let line: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(line.join(" | ").trim_end());
        text.push('\n');
        if number == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            text.push_str(&rule.join("-|-"));
            text.push('\n');
        } else {
            for note in &figures[number - 1].notes {
                text.push_str(&format!("    {note}\n"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_judged_by_the_ratio_or_by_the_value() {
        assert_eq!(Figure::at_most("a", "us", 3.0, 2.0, 1.5).ok, Some(true));
        assert_eq!(Figure::at_most("a", "us", 3.1, 2.0, 1.5).ok, Some(false));
        assert_eq!(Figure::at_least("a", "/s", 5.0, 10.0, 0.6).ok, Some(false));
        assert_eq!(
            Figure::within("a", "ms", 5.0, 1.0, 6.0, "1 x plus 5").ok,
            Some(true)
        );
        assert_eq!(
            Figure::within("a", "ms", f64::NAN, 1.0, 6.0, "").ok,
            Some(false)
        );
    }
}
