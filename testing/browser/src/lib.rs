//! The page in a real browser: a driver for Chromium over the DevTools protocol, and the real binary behind it.
//!
//! Promises: every test has a host, a data directory and a browser profile of its own, which are gone when it is; what the page
//! did wrong without anybody asking (a policy report, an error in the console, a request elsewhere) fails the test.
//! Must not know: what the page is for.

mod binary;
mod chromium;
mod devtools;
mod host;
mod observed;
mod page;
mod slow_line;

pub use chromium::Browser;
pub use host::Host;
pub use observed::Observed;
pub use page::{Network, Page, Screen, button, css, labelled};
pub use slow_line::SlowLine;
