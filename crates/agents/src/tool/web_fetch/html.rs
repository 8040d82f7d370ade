//! A web page as Markdown: its text, headings, links, lists, code and tables; nothing of how it looks or acts.
//!
//! Promises: one pass over the text without a tree, so that no nesting, however deep, takes more than a bounded amount of
//! memory or time; what comes out is bounded; what is not well-formed is read as what it seems to be.
//! Must not know: where the page came from.

use reqwest::Url;

use super::entities::decode;
use super::tag::{attribute, end_of_tag, find_tag, name_of};

/// What of a page is not its text.
const SKIPPED: [&str; 11] = [
    "script", "style", "noscript", "template", "svg", "head", "iframe", "object", "canvas",
    "select", "nav",
];

/// Lists inside of lists are indented as far as this.
const INDENT_MAX: usize = 8;

/// Lists inside of lists that are told apart.
const LISTS_MAX: usize = 64;

/// Links that are longer are told without where they lead.
const TARGET_BYTES_MAX: usize = 2 * 1_024;

/// What comes out of a page.
const MARKDOWN_BYTES_MAX: usize = 8 << 20;

/// A page as Markdown. Links are relative to `base`.
pub(super) fn to_markdown(html: &str, base: &Url) -> String {
    let mut page = MarkdownPage::new(base);
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        page.text(&rest[..at]);
        rest = page.markup(&rest[at..]);
        if page.out.len() > MARKDOWN_BYTES_MAX {
            rest = "";
        }
    }
    page.text(rest);
    page.finish()
}

/// The title of a page.
pub(super) fn title(html: &str) -> Option<String> {
    let start = find_tag(html, "<title")?;
    let rest = &html[start..];
    let rest = &rest[rest.find('>')? + 1..];
    let end = find_tag(rest, "</title").unwrap_or(rest.len());
    let text = decode(&rest[..end]);
    let text: Vec<&str> = text.split_whitespace().collect();
    Some(text.join(" ")).filter(|title| !title.is_empty())
}

struct MarkdownPage<'a> {
    base: &'a Url,
    out: String,
    /// The element whose content is skipped.
    skipped: Option<&'static str>,
    /// Inside `pre`, where every space counts.
    is_preformatted: bool,
    /// Inside `code` that stands in a line.
    is_code: bool,
    /// The lists that are open: the number of the next entry, if they are numbered.
    lists: Vec<Option<u64>>,
    /// The link that is open: where its text begins, and where it leads.
    link: Option<(usize, String)>,
    /// Cells of the row so far, if one is open.
    cells: usize,
    has_header: bool,
}

impl<'a> MarkdownPage<'a> {
    fn new(base: &'a Url) -> Self {
        Self {
            base,
            out: String::new(),
            skipped: None,
            is_preformatted: false,
            is_code: false,
            lists: Vec::new(),
            link: None,
            cells: 0,
            has_header: false,
        }
    }

    fn text(&mut self, text: &str) {
        if self.skipped.is_some() || text.is_empty() {
            return; // not a part of what the page says
        }
        let text = decode(text);
        if self.is_preformatted {
            self.out.push_str(&text);
            return;
        }
        let begins_with_space = text.starts_with(|c: char| c.is_ascii_whitespace());
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        if begins_with_space || words.is_empty() {
            self.space();
        }
        self.out.push_str(&words.join(" "));
        if !words.is_empty() && text.ends_with(|c: char| c.is_ascii_whitespace()) {
            self.space();
        }
    }

    fn space(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
    }

    /// Takes what begins with `<`; what is left.
    fn markup<'t>(&mut self, rest: &'t str) -> &'t str {
        if let Some(skipped) = self.skipped {
            let end = format!("</{skipped}");
            let Some(at) = find_tag(rest, &end) else {
                return ""; // the rest of the page is not its text
            };
            self.skipped = None;
            let after = &rest[at..];
            return after.find('>').map_or("", |at| &after[at + 1..]);
        }
        if let Some(comment) = rest.strip_prefix("<!--") {
            return comment.find("-->").map_or("", |at| &comment[at + 3..]);
        }
        let is_tag = rest[1..]
            .starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
        if !is_tag {
            self.text("<");
            return &rest[1..];
        }
        let Some(end) = end_of_tag(rest) else {
            return ""; // a tag that is cut off
        };
        let (tag, after) = (&rest[1..end], &rest[end + 1..]);
        match tag.strip_prefix('/') {
            Some(name) => self.close(&name_of(name)),
            None => self.open(&name_of(tag), tag),
        }
        after
    }

    fn open(&mut self, name: &str, tag: &str) {
        if let Some(skipped) = SKIPPED.iter().find(|skipped| **skipped == name) {
            if !tag.ends_with('/') {
                self.skipped = Some(skipped);
            }
            return;
        }
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.paragraph();
                let level = name[1..].parse().unwrap_or(1);
                self.out.push_str(&"#".repeat(level));
                self.out.push(' ');
            }
            "br" if self.is_preformatted => self.out.push('\n'),
            "br" => self.line(),
            "hr" => {
                self.paragraph();
                self.out.push_str("---");
                self.paragraph();
            }
            "ul" => self.open_list(None),
            "ol" => self.open_list(Some(1)),
            "li" => self.open_entry(),
            "pre" => {
                self.paragraph();
                self.out.push_str("```\n");
                self.is_preformatted = true;
            }
            "code" | "kbd" | "samp" if !self.is_preformatted && !self.is_code => {
                self.out.push('`');
                self.is_code = true;
            }
            "strong" | "b" if !self.is_preformatted && !self.is_code => self.out.push_str("**"),
            "blockquote" => {
                self.paragraph();
                self.out.push_str("> ");
            }
            "a" => self.open_link(tag),
            "img" => self.image(tag),
            "tr" => {
                self.line();
                self.cells = 0;
                self.has_header = false;
            }
            "td" | "th" => {
                self.out.push_str(if self.cells == 0 { "| " } else { " | " });
                self.cells += 1;
                self.has_header |= name == "th";
            }
            _ if is_block(name) => self.paragraph(),
            _ => {} // it says nothing that a reader of text would miss
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "blockquote" => self.paragraph(),
            "ul" | "ol" => {
                self.lists.pop();
                if self.lists.is_empty() { self.paragraph() } else { self.line() }
            }
            "pre" if self.is_preformatted => {
                self.is_preformatted = false;
                if !self.out.ends_with('\n') {
                    self.out.push('\n');
                }
                self.out.push_str("```");
                self.paragraph();
            }
            "code" | "kbd" | "samp" if self.is_code => {
                self.out.push('`');
                self.is_code = false;
            }
            "strong" | "b" if !self.is_preformatted && !self.is_code => self.out.push_str("**"),
            "a" => self.close_link(),
            "tr" if self.cells > 0 => {
                self.out.push_str(" |");
                self.line();
                if self.has_header {
                    self.out.push_str(&"|---".repeat(self.cells));
                    self.out.push('|');
                    self.line();
                }
                self.cells = 0;
            }
            _ if is_block(name) => self.paragraph(),
            _ => {} // what was not opened is not closed
        }
    }

    fn open_link(&mut self, tag: &str) {
        // There is no link inside of a link.
        self.close_link();
        let target =
            attribute(tag, "href").and_then(|href| self.base.join(&href).ok()).filter(|url| {
                let is_known = matches!(url.scheme(), "http" | "https" | "mailto");
                is_known && !self.is_preformatted && url.as_str().len() <= TARGET_BYTES_MAX
            });
        if let Some(target) = target {
            self.out.push('[');
            self.link = Some((self.out.len(), target.into()));
        }
    }

    fn close_link(&mut self) {
        let Some((start, target)) = self.link.take() else {
            return; // no link, or none that leads anywhere
        };
        let is_empty = self.out.get(start..).is_none_or(|text| text.trim().is_empty());
        if is_empty {
            self.out.truncate(start.saturating_sub(1));
            return;
        }
        while self.out.ends_with([' ', '\n']) {
            self.out.pop();
        }
        self.out.push_str(&format!("]({target})"));
    }

    fn image(&mut self, tag: &str) {
        let alt = attribute(tag, "alt").unwrap_or_default();
        let words: Vec<&str> = alt.split_whitespace().collect();
        if !words.is_empty() {
            self.out.push_str(&format!("[image: {}]", words.join(" ")));
        }
    }

    fn open_list(&mut self, first: Option<u64>) {
        if self.lists.is_empty() {
            self.paragraph()
        } else {
            self.line()
        }
        if self.lists.len() < LISTS_MAX {
            self.lists.push(first);
        }
    }

    fn open_entry(&mut self) {
        self.line();
        let depth = self.lists.len().saturating_sub(1).min(INDENT_MAX);
        self.out.push_str(&"  ".repeat(depth));
        match self.lists.last_mut() {
            Some(Some(number)) => {
                self.out.push_str(&format!("{number}. "));
                *number += 1;
            }
            Some(None) | None => self.out.push_str("- "),
        }
    }

    /// Ends the line, if one has begun.
    fn line(&mut self) {
        if self.is_preformatted {
            return;
        }
        while self.out.ends_with(' ') {
            self.out.pop();
        }
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    /// Ends the paragraph, if one has begun. What stands right behind the mark of an entry or a cell is none.
    fn paragraph(&mut self) {
        if self.is_preformatted || self.cells > 0 || self.ends_in_mark() {
            return;
        }
        self.line();
        if self.lists.is_empty() && !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    fn ends_in_mark(&self) -> bool {
        let mark = self.out.rsplit('\n').next().unwrap_or("").trim_start();
        let digits = mark.trim_start_matches(|c: char| c.is_ascii_digit());
        matches!(mark, "- " | "> ") || (digits.len() < mark.len() && digits == ". ")
    }

    fn finish(mut self) -> String {
        if self.is_preformatted {
            self.close("pre");
        }
        self.close_link();
        self.out.trim().to_owned()
    }
}

/// Elements that stand on lines of their own.
fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "div"
            | "section"
            | "article"
            | "main"
            | "header"
            | "footer"
            | "aside"
            | "table"
            | "form"
            | "fieldset"
            | "figure"
            | "figcaption"
            | "details"
            | "summary"
            | "dl"
            | "dt"
            | "dd"
            | "address"
            | "body"
            | "title"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(html: &str, expected: Expect) {
        let base = Url::parse("https://example.org/docs/page").unwrap();
        let text = to_markdown(html, &base);
        let lines = text.lines().map(|line| format!("|{line}\n"));
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn a_page_is_its_text() {
        let page = r#"<!DOCTYPE html><HTML><head><title>T</title><style>p{}</style></head><body>
            <nav><a href="/">Home</a></nav>
            <h1>The  <em>Title</em></h1><p>One &amp; two,
            <b>three</b>. See <a class="x" href="../api?a=1&amp;b=2">the <i>API</i></a> and <a href="javascript:x()">no</a>.</p>
            <script>if (a < b) { document.write("<p>no</p>") }</script>
            <ul><li>first<li><p>second</p><ol><li>deep</li><li>er</li></ol></li></ul>
            <pre><code class="rust">fn main() {
    x &lt; y;
}</code></pre>
            <p>Use <code>a</code>.<br>Next<!-- <p>no --> line. 1 < 2</p><img alt="A cat" src=x><a href="/e"></a>
            <table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td><p>2</p></td></tr></table>
            <blockquote><p>said</p></blockquote>"#;
        check(
            page,
            expect![[r#"
                |# The Title
                |
                |One & two, **three**. See [the API](https://example.org/api?a=1&b=2) and no.
                |
                |- first
                |- second
                |  1. deep
                |  2. er
                |
                |```
                |fn main() {
                |    x < y;
                |}
                |```
                |
                |Use `a`.
                |Next line. 1 < 2
                |
                |[image: A cat]
                |
                || a | b |
                ||---|---|
                || 1 | 2 |
                |
                |> said
            "#]],
        );
        assert_eq!(title(page).as_deref(), Some("T"));
        assert_eq!(title("<p>no</p>"), None);
    }

    #[test]
    fn what_is_broken_or_deep_is_read_all_the_same() {
        check(
            "a <b",
            expect![[r#"
            |a
        "#]],
        );
        check(
            "<p>a<p>b</div></ul></a>&#x41;&#65;&nope;&#0;&",
            expect![[r#"
            |a
            |
            |b
            |
            |AA&nope;�&
        "#]],
        );
        check(
            "x<script>never closed",
            expect![[r#"
            |x
        "#]],
        );
        check(
            "<a title='a > b' href='/c'>d</a> \u{e4}",
            expect![[r#"
            |[d](https://example.org/c) ä
        "#]],
        );
        for deep in ["<div>", "<ul><li>", "<a href=/x>", "<b>", "<table><tr><td>"] {
            let base = Url::parse("https://example.org/").unwrap();
            let text = to_markdown(&deep.repeat(50_000), &base);
            assert!(text.len() < 4_000_000, "{deep}: {}", text.len());
        }
    }
}
