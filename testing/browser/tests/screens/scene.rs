//! A host with something on every screen, and the ways to them.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use browser::{Browser, Host, Page, Screen};
use serde_json::json;

use crate::looks::set_theme;
use crate::signed_in::{go, sign_in, start_session_in};

/// What the agent does here, so that there is something on every screen.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/screens/script.json");
const MESSAGES: [&str; 4] = [
    "How does a replica catch up?",
    "Make the login test pass",
    "Plan the next release",
    "Write the docs",
];

/// The screens, by name.
pub(crate) const SCREENS: [&str; 10] = [
    "sessions",
    "inbox",
    "approval",
    "questions",
    "session",
    "working",
    "changes",
    "prompt",
    "new",
    "settings",
];

/// What differs from the last commit, among the changes that can be chosen.
const UNCOMMITTED: &str = "[...document.querySelector('select[aria-label=\"Which changes\"]')?.options ?? []] \
    .find(it => it.textContent === 'Uncommitted changes')";

/// The code of the answer has its colours, which the host is asked for after the text stands there.
const IS_COLOURED: &str = "[...(CSS.highlights.get('code-function') ?? [])] \
    .some(it => document.querySelector('#main pre')?.contains(it.startContainer))";

/// A repository with a page of documentation that was changed since.
fn make_repository(directory: &Path) -> Result<()> {
    let page = directory.join("web.md");
    std::fs::create_dir(directory)?;
    std::fs::write(
        &page,
        "# The page\n\nThe host serves a page.\n\n## Opening it\n\nRun `greenroom open`.\n",
    )?;
    for arguments in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &[
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@example.com",
            "commit",
            "--quiet",
            "-m",
            "first",
        ],
    ] {
        let output = Command::new("git").current_dir(directory).args(arguments).output()?;
        ensure!(output.status.success(), "git {arguments:?}: {output:?}");
    }
    Ok(std::fs::write(
        page,
        "# The page\n\nThe host serves a page: your sessions on a phone, a tablet or another computer.\n\n## Opening it\n\n\
         - on this machine: `greenroom open`\n- on a phone: `greenroom pair`\n",
    )?)
}

/// A browser, a host and a page on it.
pub(crate) struct Scene {
    /// Ended with the scene.
    _browser: Browser,
    pub(crate) host: Host,
    pub(crate) page: Page,
}

impl Scene {
    /// With an approval, questions, work and an answer.
    pub(crate) async fn start(screen: Screen) -> Result<Option<Self>> {
        let Some(browser) = Browser::start().await? else { return Ok(None) };
        let host = Host::start(&["--script", SCRIPT])?;
        let folder = host.home().join("myapp");
        std::fs::create_dir(&folder)?;
        let page = browser.page(screen).await?;
        sign_in(&page, &host).await?;
        let handbook = host.home().join("handbook");
        make_repository(&handbook)?;
        for message in MESSAGES {
            let is_docs = message.ends_with("docs");
            let folder = if is_docs { &handbook } else { &folder };
            start_session_in(&page, Some(folder), message).await?;
        }
        page.wait_for("document.title.startsWith('(2) ')").await?;
        let scene = Self { _browser: browser, host, page };
        // Its answer may have come when the page was elsewhere already; whoever opens it has read it.
        go(&scene.page, "#/").await?;
        scene.open_session("How a replica catches up", "").await?;
        scene.page.wait_for_text("nothing counts twice").await?;
        let is_over = "!document.querySelector('.composer .stop')?.checkVisibility()";
        scene.page.wait_for(is_over).await?;
        go(&scene.page, "#/").await?;
        scene.page.wait_for_text("Editing docs/web.md").await?;
        scene.page.wait_for("!document.body.innerText.includes('not read')").await?;
        Ok(Some(scene))
    }

    pub(crate) async fn set_theme(&self, theme: &str) -> Result<()> {
        set_theme(&self.page, theme).await
    }

    /// Opens a screen and waits until it is complete.
    pub(crate) async fn show(&self, name: &str) -> Result<()> {
        let page = &self.page;
        go(page, "#/").await?;
        page.wait_for("!document.querySelector('.sheet[open]')").await?;
        let (hash, shown) = match name {
            "inbox" => ("#/inbox", "document.querySelectorAll('.request-link').length === 2"),
            "new" => ("#/new", "document.querySelector('#main .schema-form .setting')"),
            "settings" => (
                "#/settings",
                "document.querySelector('#main .device, #main .problem:not([hidden])') \
                || document.querySelector('#main')?.innerText.includes('own token')",
            ),
            "approval" => return self.open_request("Edit src/auth.rs", ".sheet .diff").await,
            "questions" => return self.open_request("Before we begin", ".sheet .question").await,
            "changes" => {
                self.open_session("Write the docs", "/changes").await?;
                page.wait_for(UNCOMMITTED).await?;
                page.evaluate(&format!(
                    "(() => {{ const it = {UNCOMMITTED}; it.parentElement.value = it.value; \
                     it.parentElement.dispatchEvent(new Event('change')); }})()"
                ))
                .await?;
                return page.wait_for("document.querySelector('.changes-list .diff')").await;
            }
            "prompt" => {
                self.open_session("Write the docs", "/prompt").await?;
                return page.wait_for_text("No model calls are stored").await;
            }
            "session" => {
                self.open_session("How a replica catches up", "").await?;
                page.wait_for_text("nothing counts twice").await?;
                page.wait_for("document.querySelector('#main ol')").await?;
                return page.wait_for(IS_COLOURED).await;
            }
            "working" => return self.write_to_working().await,
            _ => ("#/", "document.querySelectorAll('.session-link').length === 4"),
        };
        go(page, hash).await?;
        page.wait_for(shown).await
    }

    /// A chat whose agent works, with a message that can be queued or steer.
    async fn write_to_working(&self) -> Result<()> {
        let page = &self.page;
        self.open_session("Write the docs", "").await?;
        page.wait_for("document.querySelector('.composer .stop')?.checkVisibility()").await?;
        page.evaluate(
            "(() => { const field = document.querySelector('.composer-text'); field.value = 'then the README'; \
             field.dispatchEvent(new Event('input', {bubbles: true})); })()",
        )
        .await?;
        page.wait_for("document.querySelector('.composer .steer').checkVisibility()").await
    }

    /// Goes to a session of the list, or to a screen of it.
    async fn open_session(&self, title: &str, screen: &str) -> Result<()> {
        let page = &self.page;
        let link = format!(
            "[...document.querySelectorAll('.session-link')].find(it => it.textContent.includes({}))",
            json!(title)
        );
        page.wait_for(&link).await?;
        let hash = page.evaluate(&format!("{link}.getAttribute('href')")).await?;
        let hash = hash.as_str().unwrap_or_default();
        go(page, &format!("{hash}{screen}")).await
    }

    async fn open_request(&self, title: &str, part: &str) -> Result<()> {
        let page = &self.page;
        go(page, "#/inbox").await?;
        let link = format!(
            "[...document.querySelectorAll('.request-link')].find(it => it.textContent.includes({}))",
            json!(title)
        );
        page.wait_for(&link).await?;
        page.evaluate(&format!("{link}.click()")).await?;
        page.wait_for(&format!("document.querySelector({})", json!(part))).await?;
        page.wait_for("document.querySelector('.sheet-foot[data-armed=yes]')").await
    }
}
