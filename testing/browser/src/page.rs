//! One tab: go somewhere, look, click, type, touch, and be told what it did.
//!
//! Promises: input goes through the browser as a person's would, to what is really on top at that place; waits end.
//! Must not know: what the page is for.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::{Instant, interval};

use crate::devtools::DevTools;
use crate::observed::{Observed, POLICY_REPORT};

/// Machines that run tests may be very busy; only what fails takes so long.
const WAIT_MAX: Duration = Duration::from_secs(90);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What the page is shown on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    pub width: u32,
    pub height: u32,
    pub is_phone: bool,
}

impl Screen {
    pub const PHONE: Self = Self { width: 390, height: 844, is_phone: true };
    pub const TABLET: Self = Self { width: 768, height: 1_024, is_phone: true };
    pub const DESKTOP: Self = Self { width: 1_440, height: 900, is_phone: false };
}

/// How good the network is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Good,
    Offline,
    /// So many milliseconds to the host and back.
    Slow(u32),
}

/// The element that a CSS selector finds first.
pub fn css(selector: &str) -> String {
    format!("document.querySelector({})", json!(selector))
}

/// The button or link, visible, with this text.
pub fn button(text: &str) -> String {
    format!(
        "[...document.querySelectorAll('button, a, summary, [role=button]')].find(it => it.checkVisibility() && \
         (it.textContent.trim() === {0} || it.getAttribute('aria-label') === {0}))",
        json!(text)
    )
}

/// The field with this label.
pub fn labelled(text: &str) -> String {
    format!(
        "([...document.querySelectorAll('label')].find(it => it.textContent.trim().startsWith({0}))?.control \
         ?? document.querySelector('[aria-label=' + JSON.stringify({0}) + ']'))",
        json!(text)
    )
}

/// A tab.
pub struct Page {
    devtools: DevTools,
    session: String,
    screen: Screen,
    observed: Arc<Mutex<Observed>>,
    /// What is given for every request that is held back.
    instead: Arc<Mutex<String>>,
}

impl Page {
    pub(crate) async fn prepare(
        devtools: DevTools,
        session: String,
        screen: Screen,
    ) -> Result<Self> {
        let observed: Arc<Mutex<Observed>> = Arc::default();
        let seen = Arc::clone(&observed);
        let instead: Arc<Mutex<String>> = Arc::default();
        let given = Arc::clone(&instead);
        let (answering, answered) = (devtools.clone(), session.clone());
        devtools.on_events(
            &session,
            Box::new(move |method, params| {
                if method == "Fetch.requestPaused" {
                    let body = given.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    answer_request(&answering, &answered, &params["requestId"], &body);
                }
                seen.lock().unwrap_or_else(PoisonError::into_inner).note(method, params);
            }),
        );
        let page = Self { devtools, session, screen, observed, instead };
        for domain in ["Page", "Runtime", "Log", "Network", "DOM", "Performance", "Accessibility"] {
            page.command(&format!("{domain}.enable"), json!({})).await?;
        }
        let report = format!(
            "addEventListener('securitypolicyviolation', it => console.error('{POLICY_REPORT}' + it.violatedDirective + ' ' + \
             it.blockedURI + ' ' + it.sourceFile + ':' + it.lineNumber))"
        );
        page.command("Page.addScriptToEvaluateOnNewDocument", json!({"source": report})).await?;
        let Screen { width, height, is_phone } = screen;
        let metrics =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone});
        page.command("Emulation.setDeviceMetricsOverride", metrics).await?;
        let touch = json!({"enabled": is_phone, "maxTouchPoints": 5});
        page.command("Emulation.setTouchEmulationEnabled", touch).await?;
        Ok(page)
    }

    /// A command of the DevTools protocol, for what has no method here.
    pub async fn command(&self, method: &str, params: Value) -> Result<Value> {
        self.devtools.command(Some(&self.session), method, params).await
    }

    /// From now on a request of the page for this address gets this text instead of what the host has.
    pub async fn answer_instead(&self, url: &str, text: &str) -> Result<()> {
        text.clone_into(&mut self.instead.lock().unwrap_or_else(PoisonError::into_inner));
        let pattern = json!({"patterns": [{"urlPattern": url, "requestStage": "Request"}]});
        self.command("Fetch.enable", pattern).await.map(drop)
    }

    /// The host answers for itself again.
    pub async fn stop_answering(&self) -> Result<()> {
        self.command("Fetch.disable", json!({})).await.map(drop)
    }

    /// What was seen of the page until now.
    pub fn observed(&self) -> Observed {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub async fn go_to(&self, url: &str) -> Result<()> {
        let went = self.command("Page.navigate", json!({"url": url})).await?;
        match went["errorText"].as_str() {
            Some(error) => bail!("{url}: {error}"),
            None => self.wait_for("document.readyState === 'complete'").await,
        }
    }

    pub async fn reload(&self) -> Result<()> {
        self.evaluate("window.isOfBefore = true").await?;
        self.command("Page.reload", json!({})).await?;
        self.wait_for("!window.isOfBefore && document.readyState === 'complete'").await
    }

    /// The value of an expression, or of the promise that it is.
    pub async fn evaluate(&self, expression: &str) -> Result<Value> {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true});
        let mut answer = self.command("Runtime.evaluate", params).await?;
        match answer.get("exceptionDetails") {
            Some(thrown) => bail!("{expression}: {}", thrown["exception"]["description"]),
            None => Ok(answer["result"]["value"].take()),
        }
    }

    /// Waits until an expression, or the promise that it is, is true.
    pub async fn wait_for(&self, expression: &str) -> Result<()> {
        let deadline = Instant::now() + WAIT_MAX;
        let mut poll = interval(POLL_INTERVAL);
        loop {
            poll.tick().await;
            // While a page is being loaded there may be nobody to ask.
            let value = self.evaluate(&format!("(async () => !!(await ({expression})))()")).await;
            if matches!(value, Ok(Value::Bool(true))) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let shown = self.text().await.unwrap_or_default();
                bail!(
                    "waited in vain for {expression} ({value:?}); the page shows:\n{shown}\n{:#?}",
                    self.observed().errors
                );
            }
        }
    }

    /// Waits until a text is shown.
    pub async fn wait_for_text(&self, text: &str) -> Result<()> {
        self.wait_for(&format!("document.body?.innerText.includes({})", json!(text))).await
    }

    /// The text that is shown.
    pub async fn text(&self) -> Result<String> {
        let text = self.evaluate("document.body?.innerText ?? ''").await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// The middle of an element, once it is there and nothing lies over it.
    async fn place(&self, element: &str) -> Result<(f64, f64)> {
        self.wait_for(element).await?;
        let script = format!(
            "(() => {{ const it = {element}; it.scrollIntoView({{block: 'nearest', inline: 'nearest', behavior: 'instant'}}); \
             const box = it.getBoundingClientRect(); const x = box.x + box.width / 2, y = box.y + box.height / 2; \
             const top = document.elementFromPoint(x, y); \
             return {{x, y, isOnTop: it === top || it.contains(top) || !!top?.closest('label')?.contains(it), top: top?.outerHTML?.slice(0, 200)}}; }})()"
        );
        let deadline = Instant::now() + WAIT_MAX;
        let mut poll = interval(POLL_INTERVAL);
        let mut last = None;
        loop {
            poll.tick().await;
            let found = self.evaluate(&script).await?;
            let place = (found["x"].as_f64().context("x")?, found["y"].as_f64().context("y")?);
            // A sheet that slides in is hit where it comes to rest.
            if found["isOnTop"] == true && last == Some(place) {
                return Ok(place);
            }
            ensure!(Instant::now() < deadline, "{element} lies under {}", found["top"]);
            last = Some(place);
        }
    }

    /// Presses an element: with a finger on a phone, else with the mouse.
    pub async fn press(&self, element: &str) -> Result<()> {
        let (x, y) = self.place(element).await?;
        if self.screen.is_phone {
            let touch = json!({"type": "touchStart", "touchPoints": [{"x": x, "y": y}]});
            self.command("Input.dispatchTouchEvent", touch).await?;
            let end = json!({"type": "touchEnd", "touchPoints": []});
            self.command("Input.dispatchTouchEvent", end).await?;
            return Ok(());
        }
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let buttons = u8::from(kind == "mousePressed");
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1});
            self.command("Input.dispatchMouseEvent", event).await?;
        }
        Ok(())
    }

    /// Types into an element.
    pub async fn type_into(&self, element: &str, text: &str) -> Result<()> {
        self.press(element).await?;
        self.wait_for(&format!("document.activeElement === ({element})")).await?;
        self.command("Input.insertText", json!({"text": text})).await.map(drop)
    }

    /// Presses a key, such as `Enter`, `Escape` or `a`. `modifiers`: 1 Alt, 2 Ctrl, 4 Meta, 8 Shift.
    pub async fn key(&self, key: &str, modifiers: u8) -> Result<()> {
        let (code, number, text) = match key {
            "Enter" => ("Enter".to_owned(), 13, Some("\r")),
            "Escape" => ("Escape".to_owned(), 27, None),
            "Tab" => ("Tab".to_owned(), 9, None),
            "ArrowDown" => ("ArrowDown".to_owned(), 40, None),
            "ArrowUp" => ("ArrowUp".to_owned(), 38, None),
            letter => {
                let number = letter.bytes().next().map_or(0, |byte| byte.to_ascii_uppercase());
                (format!("Key{}", letter.to_uppercase()), u32::from(number), Some(letter))
            }
        };
        let text = text.filter(|_| modifiers & 7 == 0);
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers});
            if let (Some(text), "keyDown") = (text, kind) {
                event["text"] = json!(text);
            }
            self.command("Input.dispatchKeyEvent", event).await?;
        }
        Ok(())
    }

    /// Role and name of everything that assistive technology is told of, one a line.
    pub async fn accessibility_tree(&self) -> Result<String> {
        let tree = self.command("Accessibility.getFullAXTree", json!({})).await?;
        let nodes = tree["nodes"].as_array().context("nodes")?;
        let told = nodes.iter().filter(|node| node["ignored"] != true);
        let lines = told.filter_map(|node| {
            let role = node["role"]["value"].as_str()?;
            let name = node["name"]["value"].as_str().unwrap_or_default();
            (!matches!(role, "StaticText" | "InlineTextBox" | "generic" | "none"))
                .then(|| format!("{role} {name:?}\n"))
        });
        Ok(lines.collect())
    }

    /// Writes a picture of the page as a PNG file.
    pub async fn screenshot(&self, path: &Path) -> Result<()> {
        let picture = self.command("Page.captureScreenshot", json!({"format": "png"})).await?;
        let bytes = STANDARD.decode(picture["data"].as_str().context("a picture")?)?;
        Ok(std::fs::write(path, bytes)?)
    }

    pub async fn set_network(&self, network: Network) -> Result<()> {
        let (offline, latency) = match network {
            Network::Good => (false, 0),
            Network::Offline => (true, 0),
            Network::Slow(latency) => (false, latency),
        };
        let conditions = json!({"offline": offline, "latency": latency, "downloadThroughput": -1, "uploadThroughput": -1});
        // What scripts are told of the network is a switch of its own.
        self.command("Network.overrideNetworkState", conditions.clone()).await?;
        self.command("Network.emulateNetworkConditions", conditions).await.map(drop)
    }

    /// Bytes of the heap in use, and nodes of the document, after a collection.
    pub async fn memory(&self) -> Result<(u64, u64)> {
        self.command("HeapProfiler.collectGarbage", json!({})).await?;
        let metrics = self.command("Performance.getMetrics", json!({})).await?;
        let metrics = metrics["metrics"].as_array().context("metrics")?;
        let value = |name: &str| {
            let metric = metrics.iter().find(|metric| metric["name"] == name);
            metric
                .and_then(|metric| metric["value"].as_f64())
                .map(|value| value as u64)
                .context("a metric")
        };
        Ok((value("JSHeapUsedSize")?, value("Nodes")?))
    }
}

fn answer_request(devtools: &DevTools, session: &str, id: &Value, body: &str) {
    let (devtools, session) = (devtools.clone(), session.to_owned());
    let headers = json!([{"name": "Content-Type", "value": "text/html; charset=utf-8"}]);
    let params = json!({"requestId": id, "responseCode": 200, "responseHeaders": headers, "body": STANDARD.encode(body)});
    tokio::spawn(async move {
        let answer = devtools.command(Some(&session), "Fetch.fulfillRequest", params);
        if let Err(error) = answer.await {
            eprintln!("a request was not answered: {error}"); // the page may have gone on
        }
    });
}
