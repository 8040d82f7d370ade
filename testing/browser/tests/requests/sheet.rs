//! The inbox and the sheet that requests are answered in, as tests handle them.

use anyhow::Result;
use browser::{Page, css};
use serde_json::json;

use crate::signed_in::go;

/// Waits until so many requests are in the inbox, which is opened.
pub(crate) async fn open_inbox(page: &Page, count: usize) -> Result<()> {
    go(page, "#/inbox").await?;
    page.wait_for(&format!("document.querySelectorAll('.request-link').length === {count}")).await
}

/// The button of the open sheet with this text, once it acts.
pub(crate) fn in_sheet(text: &str) -> String {
    format!(
        "[...document.querySelectorAll('.sheet[open] .sheet-foot[data-armed=yes] button')].find(it => !it.disabled && \
         (it.textContent.trim() === {0} || it.getAttribute('aria-label') === {0}))",
        json!(text)
    )
}

/// Waits for the sheet of a request.
pub(crate) async fn wait_for_sheet(page: &Page, title: &str) -> Result<()> {
    page.wait_for(&format!(
        "document.querySelector('.sheet[open] .sheet-title')?.textContent === {}",
        json!(title)
    ))
    .await
}

/// The first element of the open sheet that a selector finds.
pub(crate) fn sheet_part(selector: &str) -> String {
    css(&format!(".sheet[open] {selector}"))
}
