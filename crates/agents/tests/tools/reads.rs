//! `read` and `view_image`: pictures, notebooks and files that are neither.

use base64::Engine as _;
use expect_test::expect;
use serde_json::{Value, json};
#[cfg(debug_assertions)]
use wire::content::HashCount;

use crate::{Session, contents, error};

/// The beginning of a picture of so many pixels: enough to be recognised.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend([8, 6, 0, 0, 0]);
    bytes
}

#[tokio::test]
async fn a_picture_is_shown_as_a_picture() {
    let session = Session::new();
    session.put("p.txt", png(640, 480));
    for tool in ["read", "view_image"] {
        let outcome = session.run(tool, json!({"path": "p.txt"})).await.unwrap();
        assert_eq!(outcome.text, "[p.txt is a PNG image of 640 x 480 pixels, 29 bytes]");
        assert_eq!(contents(&outcome.bodies), [png(640, 480)]);
        let block = &outcome.content[0];
        assert_eq!(block["type"], "resource");
        assert_eq!(block["contentType"], "image/png");
        let uri = block["uri"].as_str().unwrap();
        let digest = wire::Digest::from_uri(uri).unwrap();
        assert_eq!(digest, outcome.bodies[0].digest());
    }
}

#[cfg(debug_assertions)] // others do not count
#[tokio::test]
async fn a_picture_is_hashed_once_while_it_is_read() {
    let session = Session::new();
    // Of sizes that no other test has, since hashes are counted on all threads: one that is read whole to see what it is, and one of which the beginning is.
    for (width, bytes) in [(642, 0), (641, 200_000)] {
        let mut picture = png(width, 480);
        picture.resize(picture.len() + bytes, 7);
        session.put("p.png", &picture);
        let count = HashCount::watch(&picture);
        let input = json!({"path": "p.png"});
        let outcome = session.run("read", input).await.unwrap();
        assert_eq!(contents(&outcome.bodies), [picture]);
        assert_eq!(count.get(), 1, "{bytes}");
    }
}

#[tokio::test]
async fn what_is_too_large_to_be_shown_is_said() {
    let session = Session::new();
    session.put("wide.png", png(30_000, 30_000));
    let mut large = png(9, 9);
    large.resize(9 << 20, 0);
    session.put("large.png", large);
    session.put("text", "one\n");
    for (path, expected) in [
        (
            "wide.png",
            "wide.png is a PNG image of 30000 x 30000 pixels, 29 bytes; images of more than 40,000,000 pixels",
        ),
        (
            "large.png",
            "large.png is a PNG image of 9 x 9 pixels, 9,437,184 bytes; images over 8 MiB cannot be shown",
        ),
        ("text", "text is not an image"),
    ] {
        let why = error(session.run("view_image", json!({"path": path})).await);
        assert!(why.contains(expected), "{why}");
    }
    let outcome = session.run("read", json!({"path": "large.png"})).await.unwrap();
    assert!(outcome.text.contains("over 8 MiB"), "{}", outcome.text);
    assert!(outcome.content.is_empty() && outcome.bodies.is_empty());
    session.put("a.pdf", "%PDF-1.7\n");
    let outcome = session.run("read", json!({"path": "a.pdf"})).await.unwrap();
    assert_eq!(outcome.text, "[a.pdf is a PDF document of 9 bytes]");
    assert_eq!(outcome.content[0]["contentType"], "application/pdf");
    session.put("a.wav", "RIFF0000WAVEfmt ");
    let text = session.text_of("read", json!({"path": "a.wav"})).await;
    assert_eq!(text, "[a.wav is a WAV sound of 16 bytes; its content cannot be shown]");
}

fn notebook() -> Value {
    json!({"nbformat": 4, "cells": [
        {"cell_type": "markdown", "source": ["# Title\n", "words"]},
        {"cell_type": "code", "source": "print(1)\nplot()", "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["\u{1b}[31m1\u{1b}[0m\n"]},
            {"output_type": "display_data", "data": {"text/plain": "<Figure>", "image/png": "iVBORw0KGgo=\n"}},
        ]},
        {"cell_type": "code", "source": "1/0", "outputs": [
            {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "division by zero",
             "traceback": ["\u{1b}[1mline 1\u{1b}[0m"]},
        ]},
        {"cell_type": "code", "source": "table", "outputs": [
            {"output_type": "execute_result", "data": {"text/html": "<table>", "text/plain": ["a b\n", "1 2"]}},
            {"output_type": "execute_result", "data": {"application/json": {}}},
        ]},
    ]})
}

#[tokio::test]
async fn a_notebook_is_read_as_cells_with_outputs() {
    let session = Session::new();
    session.put("n.ipynb", notebook().to_string());
    let outcome = session.run("read", json!({"path": "n.ipynb"})).await.unwrap();
    expect![[r##"
        [cell 1, markdown]
        # Title
        words
        [cell 2, code]
        print(1)
        plot()
        [output of cell 2]
        1
        [picture, image/png, attached]
        [cell 3, code]
        1/0
        [output of cell 3]
        ZeroDivisionError: division by zero
        line 1
        [cell 4, code]
        table
        [output of cell 4]
        a b
        1 2
        [output as application/json]
        [this is how the notebook reads; to change it, `edit` the JSON of the file, which `grep` shows]
    "##]]
    .assert_eq(&outcome.text);
    assert_eq!(outcome.summary, "Read 4 cells of n.ipynb");
    assert_eq!(outcome.content[0]["contentType"], "image/png");
    assert_eq!(contents(&outcome.bodies), [b"\x89PNG\r\n\x1a\n"]);

    let part = json!({"path": "n.ipynb", "offset": 3, "limit": 1});
    let text = session.text_of("read", part).await;
    assert!(text.starts_with("[cell 3, code]\n1/0\n"), "{text}");
    assert!(text.contains("[more cells follow, 4 in all; go on with offset 4]\n"));
    let beyond = json!({"path": "n.ipynb", "offset": 9});
    let why = session.text_of("read", beyond).await;
    assert_eq!(why, "n.ipynb has only 4 cells");
    // What the session has seen it may replace.
    let write = json!({"path": "n.ipynb", "content": "{}"});
    assert!(session.run("write", write).await.unwrap().success);
}

#[tokio::test]
async fn a_notebook_is_bounded_and_what_is_none_is_text() {
    let session = Session::new();
    let cell = json!({"cell_type": "code", "source": "x".repeat(20_000), "outputs": [
        {"output_type": "stream", "text": "y".repeat(100_000)},
    ]});
    let cells = json!({"cells": vec![cell; 9]});
    session.put("large.ipynb", cells.to_string());
    let text = session.text_of("read", json!({"path": "large.ipynb"})).await;
    assert!(text.len() < 49 * 1_024, "{}", text.len());
    assert!(text.contains("[95,904 more bytes]"));
    assert!(text.contains("go on with offset 3]"), "{text}");
    session.put("none.ipynb", "one\n");
    let text = session.text_of("read", json!({"path": "none.ipynb"})).await;
    assert_eq!(text, "     1\tone\n");
}

#[tokio::test]
async fn a_picture_in_a_notebook_is_checked_as_a_picture() {
    let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let display = |mime: &str, bytes: &[u8]| json!({"output_type": "display_data", "data": {"text/plain": "<Figure>", mime: encode(bytes)}});
    let outputs = [
        display("image/png", b"%PDF-1.7\n"),
        display("image/an-invention\nof its own", &png(65_536, 65_536)),
    ];
    let session = Session::new();
    let cells = json!({"cells": [{"cell_type": "code", "source": "plot()", "outputs": outputs}]});
    session.put("n.ipynb", cells.to_string());
    let outcome = session.run("read", json!({"path": "n.ipynb"})).await.unwrap();
    assert!(outcome.content.is_empty(), "{:?}", outcome.content);
    let text = outcome.text;
    assert!(
        text.contains("<Figure>\n[picture, image/png, not shown: images of more than"),
        "{text}"
    );
}
