//! Prints how long Markdown, code and diffs of 12 KB take. Run it with `--release`.

use std::hint::black_box;
use std::time::Instant;

use markup::diff::{self, CONTEXT};
use markup::highlight::{Language, highlight};
use markup::markdown;
use markup::stable::{find_stable, parse_open};

const SIZE: usize = 12 * 1024;
const PROSE: &str = include_str!("../../../ARCHITECTURE.md");
const CODE: &str = include_str!("../src/markdown/reader/mod.rs");

/// A text of exactly the size that is measured, or a little less where a character lies on the end.
fn take(text: &str) -> String {
    let mut long = text.repeat(SIZE / text.len() + 1);
    long.truncate(long.floor_char_boundary(SIZE));
    long
}

/// The median of many runs, in microseconds.
fn measure<T>(name: &str, mut work: impl FnMut() -> T) {
    let mut times: Vec<f64> = (0..101)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let first = times.first().copied().unwrap_or_default();
    println!("{name}: median {:.0} us, least {first:.0} us", times[50]);
}

fn main() {
    let prose = take(PROSE);
    let code = take(CODE);
    let changed = code.replace("inlines", "spans");
    let tail = &prose[..prose.floor_char_boundary(512)];
    let start = Instant::now();
    black_box(highlight("", Language::Rust, &mut || false).is_ok());
    println!("first use of a language: {} us", start.elapsed().as_micros());
    measure("12 KB of prose, tree", || markdown::parse(&prose));
    measure("12 KB of prose, where it is stable", || find_stable(&prose));
    measure("0.5 KB of open end", || parse_open(tail, &markdown::Definitions::default()));
    measure("12 KB of Rust, runs", || highlight(&code, Language::Rust, &mut || false));
    measure("12 KB of Rust, diff", || {
        diff::compare(code.as_bytes(), changed.as_bytes(), "a.rs", CONTEXT)
    });
}
