//! Programs that print or read as no program should: each has a bound, and the terminal works on.

use std::time::Duration;

use terminals::{CommandEnd, TerminalSize};

use super::{Seen, program, shell};

/// What is printed by default; `GREENROOM_FAULTS_FULL=1` asks for a gigabyte.
fn printed_bytes() -> usize {
    if std::env::var_os("GREENROOM_FAULTS_FULL").is_some() { 1 << 30 } else { 20 << 20 }
}

/// What a terminal may cost beyond what it cost before, with what the allocator keeps.
const GROWTH_MAX: usize = 48 << 20;

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = status.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}

/// Reads until a text is seen; how much the process grew at most meanwhile.
async fn growth_until(seen: &mut Seen, text: &str) -> usize {
    let before = resident_bytes();
    let mut largest = 0;
    while !seen.screen.contents().contains(text) {
        let told = seen.data_bytes;
        let is_over = |seen: &Seen| seen.screen.contents().contains(text);
        seen.until_within(super::DEADLINE * 20, text, |seen| {
            seen.data_bytes > told + (1 << 20) || is_over(seen)
        })
        .await;
        largest = largest.max(resident_bytes().saturating_sub(before));
    }
    largest
}

#[tokio::test]
async fn a_gigabyte_costs_little() {
    let home = tempfile::tempdir().unwrap();
    for line_end in ["", " | fold -w 100"] {
        let mut seen = Seen::start(shell("/bin/sh", home.path(), None)).await;
        seen.sees("ready> ").await;
        let began = std::time::Instant::now();
        let bytes = printed_bytes();
        let command = format!(
            "head -c {bytes} /dev/zero | tr '\\0' x{line_end}; echo; echo \"at the\" end\n"
        );
        seen.terminal.write(&command).unwrap();
        let grown = growth_until(&mut seen, "at the end").await;
        assert!(grown < GROWTH_MAX, "{grown}");
        let told = seen.data_bytes;
        let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
        assert!(told < (1 << 20) + 3_000_000 * seconds, "{told} in {seconds} s");
        seen.terminal.write("echo after\n").unwrap();
        seen.sees("after\nready>").await;
    }
}

#[tokio::test]
async fn strings_and_sequences_without_end_cost_little() {
    let home = tempfile::tempdir().unwrap();
    let bytes = printed_bytes();
    // OSC (also one of shell integration), DCS, APC, and a control sequence of nothing but parameters.
    for begin in ["]0;", "]633;x;C;", "P1;1;1q", "_G", "["] {
        let text = format!(
            "#!/bin/sh\nprintf '\\033{begin}'\nhead -c {bytes} /dev/zero | tr '\\0' 1\nprintf 'm\\033\\\\'\n\
             printf '\\r\\nat the end\\r\\n'\nexec sleep 1000\n"
        );
        let mut seen = Seen::start(program(home.path(), &text)).await;
        let grown = growth_until(&mut seen, "at the end").await;
        assert!(grown < GROWTH_MAX, "{begin}: {grown}");
        let shown = seen.screen.contents();
        let told = seen.data_bytes;
        assert!(told < 1 << 20, "{begin}: {told}");
        assert_eq!(shown.trim(), "at the end", "{begin}");
        seen.terminal.kill();
    }
}

#[tokio::test]
async fn of_a_thousand_sizes_the_last_one_counts() {
    let home = tempfile::tempdir().unwrap();
    let mut seen = Seen::start(shell("/bin/sh", home.path(), None)).await;
    seen.sees("ready> ").await;
    for number in 0..1_000 {
        let size = TerminalSize::clamped(20 + number % 300, 5 + number % 100);
        seen.terminal.resize(size);
        if number % 100 == 0 {
            seen.terminal.write("echo x\n").unwrap();
        }
    }
    let last = TerminalSize::clamped(77, 21);
    seen.terminal.resize(last);
    seen.screen.resize(last);
    // The size is changed before what is typed after it is read.
    seen.terminal.write("stty size\n").unwrap();
    seen.sees("21 77").await;
}

#[tokio::test]
async fn input_that_no_program_reads_is_bounded() {
    let home = tempfile::tempdir().unwrap();
    // Lines without an end would be dropped by the system: then nothing would wait.
    let text = "#!/bin/sh\nstty raw -echo\necho deaf\nexec sleep 1000\n";
    let mut seen = Seen::start(program(home.path(), text)).await;
    seen.sees("deaf").await;
    let typed = "x".repeat(64 * 1_024);
    let mut tick = tokio::time::interval(Duration::from_millis(5));
    let mut written = 0;
    // Each piece is left for the thread to take before the next one comes.
    while seen.terminal.write(&typed).is_ok() {
        written += typed.len();
        assert!(written <= 4 << 20, "{written} bytes wait");
        tick.tick().await;
    }
    // It can be ended all the same.
    seen.terminal.request_kill();
    assert_eq!(seen.ends().await, CommandEnd::Signalled(9));
}
