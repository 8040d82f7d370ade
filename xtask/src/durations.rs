//! The record of a test run: the slowest tests, and those that passed only when tried again.
//!
//! `cargo nextest` writes the record; see `.config/nextest.toml`.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::repository::pattern;

const RECORD: &str = "target/nextest/ci/durations.xml";
const SLOWEST: usize = 20;
/// More tests than this do not fail by chance, on a machine that did too much at one moment.
const FLAKY_MAX: usize = 6;

/// Prints the slowest tests of the last run in `.ci/run`, and whether few enough had to be tried again.
pub fn report_durations(root: &Path) -> Result<bool> {
    let record = std::fs::read_to_string(root.join(RECORD)).with_context(|| {
        format!("{RECORD} cannot be read: run `cargo nextest run --profile ci`")
    })?;
    let mut tests = read_record(&record)?;
    ensure!(!tests.is_empty(), "{RECORD} names no test");
    let total: f64 = tests.iter().map(|test| test.seconds).sum();
    println!("{} tests, {total:.0} s together; the slowest:", tests.len());
    tests.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    for test in tests.iter().take(SLOWEST) {
        println!("{:7.1} s  {}", test.seconds, test.name);
    }
    let flaky: Vec<_> = tests.iter().filter(|test| test.is_flaky).collect();
    for test in &flaky {
        println!("FAILED ONCE, and passed when tried again (find out why): {}", test.name);
    }
    Ok(flaky.len() <= FLAKY_MAX)
}

#[derive(Debug, PartialEq)]
struct RecordedTest {
    name: String,
    seconds: f64,
    is_flaky: bool,
}

/// Reads the test cases of a JUnit report.
fn read_record(record: &str) -> Result<Vec<RecordedTest>> {
    let case = pattern(r#"<testcase name="([^"]*)" classname="([^"]*)"[^>]* time="([0-9.]+)""#)?;
    let mut tests = Vec::new();
    for piece in record.split("</testcase>") {
        // A test without output closes itself: several may stand in one piece, and only the last has content.
        let cases: Vec<_> = case.captures_iter(piece).collect();
        let last = cases.len().saturating_sub(1);
        for (index, found) in cases.iter().enumerate() {
            let seconds: f64 = found[3].parse()?;
            let is_flaky = index == last && piece.contains("<flakyFailure");
            tests.push(RecordedTest {
                name: format!("{} {}", &found[2], &found[1]),
                seconds,
                is_flaky,
            });
        }
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_read_with_their_time_and_their_second_try() {
        let record = r#"<testsuite name="wire">
            <testcase name="a" classname="wire" timestamp="x" time="0.010"/>
            <testcase name="b" classname="wire::codec" timestamp="x" time="2.5">
                <flakyFailure type="test failure"><system-out>x</system-out></flakyFailure>
            </testcase>
            <testcase name="c" classname="wire" timestamp="x" time="1.000"></testcase>"#;
        let test = |name: &str, seconds, is_flaky| RecordedTest {
            name: name.to_owned(),
            seconds,
            is_flaky,
        };
        assert_eq!(
            read_record(record).unwrap(),
            [
                test("wire a", 0.01, false),
                test("wire::codec b", 2.5, true),
                test("wire c", 1.0, false)
            ]
        );
    }
}
