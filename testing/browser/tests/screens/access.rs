//! Roles and names, the order of the focus, every control by keyboard, contrast in both themes (W-11).

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use browser::Screen;
use serde_json::Value;
use tokio::time::{Instant, interval};

use crate::looks::TOO_WIDE;
use crate::scene::{SCREENS, Scene};

#[tokio::test]
async fn roles_and_names_of_each_screen_are_those_that_are_kept() -> Result<()> {
    let Some(scene) = Scene::start(Screen::PHONE).await? else { return Ok(()) };
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens/trees");
    let is_kept_anew = std::env::var("GREENROOM_KEEP").as_deref() == Ok("trees");
    for name in SCREENS {
        scene.show(name).await?;
        let path = kept.join(format!("{name}.txt"));
        if is_kept_anew {
            let tree = without_chance(&scene.page.accessibility_tree().await?, &scene);
            std::fs::write(&path, &tree)?;
        }
        let expected = std::fs::read_to_string(&path)?;
        // What is told last, such as that an answer is complete, may still be on its way.
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut poll = interval(Duration::from_millis(200));
        let tree = loop {
            poll.tick().await;
            let tree = without_chance(&scene.page.accessibility_tree().await?, &scene);
            if tree == expected || Instant::now() > deadline {
                break tree;
            }
        };
        ensure!(tree == expected, "{name} is told as\n{tree}\nand was kept as\n{expected}");
    }
    scene.page.observed().check(&scene.host.origin, &[])
}

/// Ages, times of day and the name of the directory are other ones each time.
fn without_chance(tree: &str, scene: &Scene) -> String {
    let home = scene.host.home().file_name().unwrap_or_default();
    let tree = tree.replace(&*home.to_string_lossy(), "home");
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let told = |word: &str| match (word.strip_suffix('m'), word.split_once(':')) {
        (Some(minutes), _) if is_number(minutes) => "now".to_owned(),
        (_, Some((hour, minute))) if is_number(hour) && is_number(minute) => "TIME".to_owned(),
        _ => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(told).collect::<Vec<_>>().join(" ");
    let lines = tree.lines().map(|text| line(text) + "\n");
    let tree: String = lines.collect();
    tree.replace("TIME AM", "TIME").replace("TIME PM", "TIME")
}

/// Everything that can have the focus and was not reached by Tab, and what was reached out of order.
const REACH: &str = r#"
(() => {
  const top = document.querySelector('dialog:modal') ?? document.body;
  const all = [...top.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')].filter((it) =>
    it.checkVisibility({ visibilityProperty: true }) && !it.disabled && it.tabIndex >= 0 && !it.closest('[inert]') && !it.matches('.skip')
    && !(it.type === 'radio' && !it.checked && document.querySelector(`input[name="${it.name}"]:checked`))
    && !(it.type === 'radio' && !it.checked && document.querySelector(`input[name="${it.name}"]`) !== it));
  const name = (it) => it.outerHTML.slice(0, 160);
  const seen = window.reached;
  const missed = all.filter((it) => !seen.includes(it)).map(name);
  const unsorted = seen.filter((it, at) => at > 0 && seen[at - 1].compareDocumentPosition(it) & Node.DOCUMENT_POSITION_PRECEDING).map(name);
  return { count: all.length, missed, unsorted };
})()"#;

#[tokio::test]
async fn every_control_is_reached_by_keyboard_in_the_order_of_the_page() -> Result<()> {
    let Some(scene) = Scene::start(Screen::DESKTOP).await? else { return Ok(()) };
    let page = &scene.page;
    for name in
        ["sessions", "inbox", "approval", "questions", "changes", "prompt", "new", "settings"]
    {
        scene.show(name).await?;
        page.evaluate(
            "window.reached = []; document.addEventListener('focusin', (event) => { \
             if (!window.reached.includes(event.target)) window.reached.push(event.target); }); \
             document.querySelector('dialog:modal') ? document.querySelector('.sheet-title').focus() : document.activeElement.blur()",
        )
        .await?;
        let tabs = page.evaluate("document.querySelectorAll('a, button, input, select, textarea, summary, pre').length + 8").await?;
        for _ in 0..tabs.as_u64().unwrap_or(50) {
            page.key("Tab", 0).await?;
        }
        let reached = page.evaluate(REACH).await?;
        ensure!(reached["count"].as_u64() > Some(3), "{name}: {reached:#}");
        ensure!(reached["missed"] == Value::Array(Vec::new()), "{name}: {reached:#}");
        if !matches!(name, "approval" | "questions") {
            // A sheet begins at its title and comes round again.
            let backward = reached["unsorted"].as_array().map_or(0, Vec::len);
            ensure!(backward <= 1, "{name}: {reached:#}");
        }
    }
    page.observed().check(&scene.host.origin, &[])
}

/// Texts whose contrast with what is behind them is below 4.5, or 3 if they are large.
const CONTRAST: &str = r#"
(() => {
  const parse = (text) => { const found = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0]; return [...found.slice(0, 3), found[3] ?? 1]; };
  const over = (front, back) => front.slice(0, 3).map((value, at) => value * front[3] + back[at] * (1 - front[3])).concat(1);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    const layers = [];
    for (let it = element; it; it = it.parentElement) layers.push(parse(getComputedStyle(it).backgroundColor));
    return layers.reduceRight((back, layer) => over(layer, back), parse(getComputedStyle(document.body).backgroundColor));
  };
  const top = document.querySelector('dialog:modal') ?? document.body;
  const walker = document.createTreeWalker(top, NodeFilter.SHOW_TEXT);
  const wrong = [];
  let count = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || element.closest('.spoken, .skip, :disabled, template')) continue;
    const style = getComputedStyle(element);
    const back = behind(element);
    const front = over(parse(style.color), back);
    const [high, low] = [light(front), light(back)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    count += 1;
    if (ratio < (isLarge ? 3 : 4.5)) wrong.push(`${ratio.toFixed(2)} ${style.color} on ${back.map(Math.round)}: ${node.data.trim().slice(0, 40)} in ${element.className}`);
  }
  return { count, wrong };
})()"#;

#[tokio::test]
async fn texts_can_be_read_in_both_themes() -> Result<()> {
    let Some(scene) = Scene::start(Screen::DESKTOP).await? else { return Ok(()) };
    for theme in ["light", "dark"] {
        scene.set_theme(theme).await?;
        for name in SCREENS {
            scene.show(name).await?;
            let found = scene.page.evaluate(CONTRAST).await?;
            ensure!(found["count"].as_u64() > Some(5), "{theme} {name}: {found:#}");
            ensure!(found["wrong"] == Value::Array(Vec::new()), "{theme} {name}: {found:#}");
        }
    }
    Ok(())
}

/// Controls that a finger would miss: smaller than 44 pixels either way, with the label that stands for them. Links in a text and the
/// numbers of a diff's lines are as high as their line; what the numbers do, the menu of the file does too.
const SMALL: &str = r#"
(() => {
  const top = document.querySelector('dialog:modal') ?? document.body;
  const small = [];
  let count = 0;
  for (const control of top.querySelectorAll('a, button, input, select, textarea, summary, [role=option]')) {
    if (!control.checkVisibility({ visibilityProperty: true }) || control.closest('.spoken, .skip, p, .md, .diff')) continue;
    const boxes = [control, ...(control.labels ?? [])].map((it) => it.getBoundingClientRect());
    if (boxes[0].width === 0) continue;
    count += 1;
    if (!boxes.some((it) => it.width >= 43.5 && it.height >= 43.5)) small.push(`${Math.round(boxes[0].width)} x ${Math.round(boxes[0].height)}: ${control.outerHTML.slice(0, 100)}`);
  }
  return { count, small };
})()"#;

#[tokio::test]
async fn a_finger_hits_every_control() -> Result<()> {
    let Some(scene) = Scene::start(Screen::PHONE).await? else { return Ok(()) };
    for name in SCREENS {
        scene.show(name).await?;
        let found = scene.page.evaluate(SMALL).await?;
        ensure!(found["count"].as_u64() > Some(2), "{name}: {found:#}");
        ensure!(found["small"] == Value::Array(Vec::new()), "{name}: {found:#}");
    }
    Ok(())
}

#[tokio::test]
async fn a_page_at_twice_its_size_fits() -> Result<()> {
    for screen in [Screen::PHONE, Screen::DESKTOP] {
        let Some(scene) = Scene::start(screen).await? else { return Ok(()) };
        for name in SCREENS {
            scene.show(name).await?;
            scene.page.evaluate("document.documentElement.style.fontSize = '200%'").await?;
            let wide = scene.page.evaluate(TOO_WIDE).await?;
            ensure!(
                wide.as_array().is_some_and(Vec::is_empty),
                "{name} at {}: {wide:#}",
                screen.width
            );
        }
    }
    Ok(())
}
