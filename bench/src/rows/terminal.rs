//! A live stream's p99 while a terminal prints at full speed.
//!
//! The stream is that of `latency`: stamped drafts, 200 a second, 100 watchers. The printer writes lines to a pseudo-terminal as fast as
//! they are taken. The host shows it to one more client, which reads everything; beside the bare server the same printer writes
//! to a pseudo-terminal whose output is read and discarded.

use anyhow::Result;
use serde_json::json;

use super::latency::{EVERY, Percentiles, time_drafts};
use super::{median_of, values};
use crate::driver::{Driver, Subject, WATCHERS, WatcherOptions, Watchers};
use crate::harness::Harness;
use crate::measure::spread;
use crate::protocol;
use crate::pty::DiscardedPrinter;
use crate::socket::Socket;
use crate::table::Figure;

const TERMINAL: &str = "ahp-terminal:/printer";

/// Prints without end.
const PRINTER: &str = "exec yes 'a line as programs print them, of a usual length'";

pub(super) fn run(harness: &mut Harness) -> Result<Vec<Figure>> {
    let results = harness.shuffled(&[Subject::HOST, Subject::Bare], measure)?;
    let of = |subject, value: fn(&Percentiles) -> f64| median_of(&results, subject, value);
    let p99 = |timed: &Percentiles| timed.p99;
    let figure = Figure::at_most(
        "p99 while a terminal prints at full speed",
        "us",
        of(Subject::HOST, p99),
        of(Subject::Bare, p99),
        1.5,
    );
    Ok(vec![
        figure
            .note(format!(
                "p50: host {:.0} us, bare {:.0} us",
                of(Subject::HOST, |timed| timed.p50),
                of(Subject::Bare, |timed| timed.p50),
            ))
            .note(format!(
                "rounds: host {}, bare {}",
                spread(&values(&results, Subject::HOST, p99)),
                spread(&values(&results, Subject::Bare, p99)),
            )),
    ])
}

fn measure(harness: &mut Harness, subject: Subject) -> Result<Percentiles> {
    let mut driver = Driver::on(subject.start(harness)?)?;
    let mut watchers = Watchers::join(harness, &driver, &WatcherOptions::stamped(WATCHERS))?;
    let count = u32::try_from(harness.seconds(4.0).as_millis() / EVERY.as_millis())?;
    match subject {
        Subject::Host(_) => {
            let reader = ShownPrinter::start(&driver.server.address)?;
            let percentiles = time_drafts(&mut driver, &mut watchers, count)?;
            reader.end();
            Ok(percentiles)
        }
        Subject::Bare => {
            let printer = DiscardedPrinter::start(PRINTER)?;
            let percentiles = time_drafts(&mut driver, &mut watchers, count)?;
            drop(printer);
            Ok(percentiles)
        }
    }
}

/// A printer in a terminal of the host, and a client that reads it. It ends with the host.
struct ShownPrinter(std::thread::JoinHandle<()>);

impl ShownPrinter {
    fn start(address: &str) -> Result<Self> {
        let mut socket = Socket::join(address, "looker")?;
        let claim = json!({"kind": "client", "clientId": "looker"});
        let params = json!({"channel": TERMINAL, "claim": claim, "cols": 80, "rows": 24});
        socket.request(5, "createTerminal", &params)?;
        socket.request(6, "subscribe", &json!({"channel": TERMINAL}))?;
        let typed = json!({"type": "terminal/input", "data": format!("{PRINTER}\r")});
        socket.send(&protocol::dispatch(TERMINAL, 1, &typed))?;
        let reader = std::thread::spawn(move || {
            // Until the host is gone.
            while socket.messages().is_ok() {}
        });
        Ok(Self(reader))
    }

    /// The host is stopped after this, which ends the thread.
    fn end(self) {
        drop(self.0);
    }
}
