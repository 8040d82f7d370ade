//! What the tests noted, as a table in Markdown.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::catalogue::RealPackage;

/// A row for each; one that noted nothing did not get that far.
pub(super) fn make_table(results: &Path, packages: &[RealPackage]) -> Result<String> {
    // No file: nothing got as far as to note something.
    let text = std::fs::read_to_string(results).unwrap_or_default();
    let rows: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    Ok(format_table(&rows.context("the results are no JSON")?, packages))
}

fn format_table(rows: &[Value], packages: &[RealPackage]) -> String {
    let worked = |row: &Value, column: usize| -> Vec<String> {
        let cells = row["worked"].as_array().into_iter().flatten();
        let cell = |cell: &Value| cell[column].as_str().unwrap_or_default().to_owned();
        cells.map(cell).collect()
    };
    let row_of = |package: &RealPackage| rows.iter().find(|row| row["name"] == package.name);
    let heads = packages.iter().find_map(row_of).map(|row| worked(row, 0)).unwrap_or_default();
    let kind = packages.first().map_or("", |package| package.kind.word());
    let mut table = format_row(kind, "package", &heads);
    let lines = vec!["---".to_owned(); heads.len()];
    table.push_str(&format_row("---", "---", &lines));
    for package in packages {
        let cells = match row_of(package) {
            Some(row) => worked(row, 1),
            None => vec!["failed".to_owned(); heads.len()],
        };
        let named = format!("`{}` {}", package.package, package.version);
        table.push_str(&format_row(package.name, &named, &cells));
    }
    table
}

fn format_row(first: &str, second: &str, cells: &[String]) -> String {
    let mut row = format!("| {first} | {second} |");
    for cell in cells {
        row.push_str(&format!(" {cell} |"));
    }
    row.push('\n');
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interop::catalogue::PACKAGES;
    use serde_json::json;

    #[test]
    fn an_agent_that_noted_nothing_failed() {
        let rows =
            [json!({"name": "claude", "worked": [["text", "yes"], ["denial", "cancelled"]]})];
        let table = format_table(&rows, &PACKAGES[1..3]);
        assert_eq!(
            table,
            "| agent | package | text | denial |\n| --- | --- | --- | --- |\n\
             | claude | `@agentclientprotocol/claude-agent-acp` 0.99.1 | yes | cancelled |\n\
             | gemini | `@google/gemini-cli` 0.61.0 | failed | failed |\n"
        );
    }
}
