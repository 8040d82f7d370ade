//! All figures of one run, and the file they are written to so that a later run can be printed beside them.

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::table::Figure;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Fewer and shorter rounds than a run that may be quoted.
    pub quick: bool,
    pub figures: Vec<Figure>,
    pub failed: Vec<FailedRow>,
}

/// A row that could not be measured.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FailedRow {
    pub row: String,
    pub error: String,
}

impl Report {
    pub(crate) fn new(quick: bool) -> Self {
        Self { quick, figures: Vec::new(), failed: Vec::new() }
    }

    /// Every row could be measured, and no figure misses its bound.
    pub(crate) fn has_passed(&self) -> bool {
        self.failed.is_empty() && self.figures.iter().all(|figure| figure.ok != Some(false))
    }
}

pub(crate) fn write(path: &Path, report: &Report) -> Result<()> {
    let text = serde_json::to_string_pretty(report)?;
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

pub(crate) fn read(path: &Path) -> Result<Report> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} holds no figures", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_without_a_floor_is_read_back() {
        let mut report = Report::new(true);
        report.figures.push(Figure::reported("a", "us", 1.0, f64::NAN));
        let text = serde_json::to_string(&report).unwrap();
        let read: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(read.figures[0].figure, 1.0);
        assert!(read.figures[0].floor.is_nan() && read.figures[0].ratio.is_nan());
    }
}
