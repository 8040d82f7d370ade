//! A tab of Chromium at a server's address, as rows use one: the page in it, or a few lines that stand for the least a page could do.
//!
//! Promises: nothing listens to what the page does while it is measured; the browser ends with the tab.
//! Must not know: what is measured.

use std::time::Duration;

use anyhow::{Context, Result};
use browser::{Browser, Page, Screen, SlowLine};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::process::Server;

pub(crate) struct Tab {
    runtime: Runtime,
    page: Page,
    _browser: Browser,
    line: Option<SlowLine>,
    origin: String,
}

impl Tab {
    /// At a text of this origin that has no script, with the device signed in.
    pub(crate) fn open(server: &Server) -> Result<Self> {
        Self::open_at(&server.address, None)
    }

    /// The same over a line that has a round trip and so many bits a second. The next page has to connect.
    pub(crate) fn open_over(server: &Server, round_trip: Duration, bits: u32) -> Result<Self> {
        Self::open_at(&server.address, Some((round_trip, bits)))
    }

    fn open_at(address: &str, slowed: Option<(Duration, u32)>) -> Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let mut origin = format!("http://{address}");
        let line = match slowed {
            None => None,
            Some((round_trip, bits)) => {
                let line = runtime.block_on(SlowLine::to(&origin, round_trip, bits))?;
                origin = format!("http://{}", line.address);
                Some(line)
            }
        };
        let (browser, page) = runtime.block_on(async {
            let browser = Browser::start().await?.context("there is no Chromium on the path")?;
            let page = browser.page(Screen::PHONE).await?;
            page.go_to(&format!("{origin}/sw.js")).await?;
            // The host of a measurement asks for no token, but the page wants to have one.
            page.evaluate("localStorage.setItem('greenroom.token', 'measured')").await?;
            anyhow::Ok((browser, page))
        })?;
        let tab = Self { runtime, page, _browser: browser, line, origin };
        tab.end_connections();
        // What it hears of the network is told by the thread that is measured.
        tab.command("Network.disable", json!({}))?;
        Ok(tab)
    }

    /// What is loaded next has to connect first, if it comes over a slow line.
    pub(crate) fn end_connections(&self) {
        if let Some(line) = &self.line {
            line.end_connections();
        }
    }

    pub(crate) fn go_to(&self, path: &str) -> Result<()> {
        let address = format!("{}{path}", self.origin);
        self.runtime.block_on(self.page.go_to(&address))
    }

    pub(crate) fn evaluate(&self, expression: &str) -> Result<Value> {
        self.runtime.block_on(self.page.evaluate(expression))
    }

    pub(crate) fn number(&self, expression: &str) -> Result<f64> {
        let value = self.evaluate(expression)?;
        value.as_f64().with_context(|| format!("{expression} is {value}"))
    }

    pub(crate) fn wait_for(&self, expression: &str) -> Result<()> {
        self.runtime.block_on(self.page.wait_for(expression))
    }

    pub(crate) fn command(&self, method: &str, params: Value) -> Result<Value> {
        self.runtime.block_on(self.page.command(method, params))
    }

    /// Runs before every document that is loaded from now on.
    pub(crate) fn prepare_documents(&self, script: &str) -> Result<()> {
        let source = json!({"source": script});
        self.command("Page.addScriptToEvaluateOnNewDocument", source).map(drop)
    }

    /// Milliseconds that the main thread has worked since it began.
    pub(crate) fn main_thread_ms(&self) -> Result<f64> {
        let metrics = self.command("Performance.getMetrics", json!({}))?;
        let mut metrics = metrics["metrics"].as_array().context("metrics")?.iter();
        let worked = metrics.find(|metric| metric["name"] == "TaskDuration");
        let seconds = worked.and_then(|metric| metric["value"].as_f64());
        Ok(seconds.context("the browser does not say how long it worked")? * 1_000.0)
    }
}
