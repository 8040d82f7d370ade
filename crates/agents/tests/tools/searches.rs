//! `read`, `list`, `glob` and `grep` on real directories.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::{Session, error};

async fn check(session: &Session, tool: &str, input: Value, expected: Expect) {
    expected.assert_eq(&session.text_of(tool, input).await);
}

fn project() -> Session {
    Session::with(&[
        (".gitignore", "*.log\n/target/\n!keep.log\n"),
        (".git/info/exclude", "private\n"),
        (".git/config", "word\n"),
        (".github/ci.yml", "word\n"),
        ("a.log", "word\n"),
        ("keep.log", "word\n"),
        ("private", "word\n"),
        ("src/.ignore", "gen/\n"),
        ("src/gen/x.rs", "word\n"),
        ("src/lib.rs", "// one\nfn word() {}\n// two\n// three\nWord\n"),
        ("src/target/deep.rs", "word\n"),
        ("target/x.rs", "word\n"),
        ("target/deeper/y.rs", "word\n"),
        ("README.md", "a word\n"),
    ])
}

#[tokio::test]
async fn a_directory_is_listed_without_ignored_files() {
    let session = project();
    check(
        &session,
        "list",
        json!({}),
        expect![[r#"
        .github/
        .gitignore
        README.md
        keep.log
        src/"#]],
    )
    .await;
    check(
        &session,
        "list",
        json!({"depth": 3}),
        expect![[r#"
        .github/
        .github/ci.yml
        .gitignore
        README.md
        keep.log
        src/
        src/.ignore
        src/lib.rs
        src/target/
        src/target/deep.rs"#]],
    )
    .await;
    check(
        &session,
        "list",
        json!({"path": "src", "include_ignored": true}),
        expect![[r#"
        .ignore
        gen/
        lib.rs
        target/"#]],
    )
    .await;
    // What is named is meant, ignored or not.
    check(
        &session,
        "list",
        json!({"path": "target", "depth": 2}),
        expect![[r#"
        deeper/
        deeper/y.rs
        x.rs"#]],
    )
    .await;
    let outcome = session.run("list", json!({"path": "src"})).await.unwrap();
    assert_eq!(outcome.summary, "Listed 3 entries of src");
}

#[tokio::test]
async fn a_long_list_loses_its_deepest_entries() {
    let session = Session::new();
    for number in 0..600 {
        session.put(&format!("a/deep/{number}"), "");
        session.put(&format!("b{number}"), "");
    }
    let listed = session.text_of("list", json!({"depth": 9})).await;
    assert_eq!(listed.lines().count(), 1_001);
    assert!(listed.contains("b599"));
    assert!(listed.ends_with("[there is more; list a directory further down, or with less depth]"));
    std::fs::create_dir(session.path("empty")).unwrap();
    check(&session, "list", json!({"path": "empty"}), expect!["[nothing in empty]"]).await;
    let why = error(session.run("list", json!({"path": "b1"})).await);
    assert_eq!(why, "a part of b1 is a file, not a directory");
    let why = error(session.run("list", json!({"path": "nowhere"})).await);
    assert_eq!(why, "there is no nowhere; `list` shows what is there");
}

#[tokio::test]
async fn matches_are_found_where_they_should_be() {
    let session = project();
    check(
        &session,
        "grep",
        json!({"pattern": "w[o]rd"}),
        expect![[r#"
        .github/ci.yml
        1:word

        README.md
        1:a word

        keep.log
        1:word

        src/lib.rs
        2:fn word() {}

        src/target/deep.rs
        1:word
    "#]],
    )
    .await;
    let in_source = json!({"pattern": "word", "globs": ["*.rs", "!**/deep.rs"], "ignore_case": true, "context": 1});
    check(
        &session,
        "grep",
        in_source,
        expect![[r#"
        src/lib.rs
        1-// one
        2:fn word() {}
        3-// two
        4-// three
        5:Word
    "#]],
    )
    .await;
    check(
        &session,
        "grep",
        json!({"pattern": "fn word() {", "literal": true, "globs": "src/*"}),
        expect![[r#"
        src/lib.rs
        2:fn word() {}
    "#]],
    )
    .await;
    check(
        &session,
        "grep",
        json!({"pattern": "^word$", "path": "target", "files_only": true}),
        expect![[r#"
        target/deeper/y.rs
        target/x.rs
    "#]],
    )
    .await;
    check(
        &session,
        "grep",
        json!({"pattern": "word", "path": "a.log"}),
        expect![[r#"
        a.log
        1:word
    "#]],
    )
    .await;
    check(
        &session,
        "grep",
        json!({"pattern": "word", "include_ignored": true, "files_only": true, "path": "src"}),
        expect![[r#"
            src/gen/x.rs
            src/lib.rs
            src/target/deep.rs
        "#]],
    )
    .await;
    check(
        &session,
        "grep",
        json!({"pattern": "nothing"}),
        expect![[r#"
        [no match]
    "#]],
    )
    .await;
    let outcome = session.run("grep", json!({"pattern": "word", "path": "src"})).await.unwrap();
    assert_eq!(outcome.summary, "Found 2 lines in 2 files for word");
}

#[tokio::test]
async fn matches_are_bounded_and_binaries_are_skipped() {
    let session = Session::new();
    session.put("binary", b"match\n\0match\n");
    session.put("lines", "match\n".repeat(500));
    let output = session.text_of("grep", json!({"pattern": "match"})).await;
    assert!(output.starts_with("lines\n1:match\n"));
    assert_eq!(output.matches(":match").count(), 200);
    assert!(output.ends_with("narrow the search by pattern, path or globs]\n"));

    session.put("lines", format!("match{}\n", "é".repeat(5_000)).repeat(150));
    let output = session.text_of("grep", json!({"pattern": "match"})).await;
    assert!(output.len() < 48 * 1_024, "{}", output.len());
    assert!(output.contains('…'));
}

#[tokio::test]
async fn a_read_past_the_end_is_an_error() {
    let session = Session::with(&[("a", "one\ntwo\n")]);
    let why = error(session.run("read", json!({"path": "a", "offset": 9})).await);
    assert_eq!(why, "a has only 2 lines");
    let why = error(session.run("read", json!({"path": "."})).await);
    assert_eq!(why, ". is a directory; `list` shows what is in it");
    let outcome = session.run("read", json!({"path": "a", "offset": 2, "limit": 5})).await.unwrap();
    assert_eq!(outcome.summary, "Read 1 line of a");
    let plan = session.plan("read", json!({"path": "./a", "offset": 2, "limit": 5})).await.unwrap();
    assert_eq!(plan.summary, "Read a, lines 2 to 6");
}

#[tokio::test]
async fn files_are_found_by_name_the_newest_first() {
    let session = project();
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for (age, path) in ["src/target/deep.rs", "src/lib.rs"].into_iter().enumerate() {
        let file = std::fs::File::open(session.path(path)).unwrap();
        file.set_modified(old + std::time::Duration::from_secs(age as u64)).unwrap();
    }
    let rust = json!({"pattern": "*.rs"});
    check(
        &session,
        "glob",
        rust,
        expect![[r#"
        src/lib.rs
        src/target/deep.rs
    "#]],
    )
    .await;
    for (input, expected) in [
        (json!({"pattern": "src/*.rs"}), "src/lib.rs\n"),
        (json!({"pattern": "*.rs", "path": "src/target"}), "src/target/deep.rs\n"),
        (json!({"pattern": "**/*.{yml,md}"}), ""),
        (json!({"pattern": "*.py"}), "[no file matches]\n"),
        (json!({"pattern": "private"}), "[no file matches]\n"),
        (json!({"pattern": "private", "include_ignored": true}), "private\n"),
        // Git's own directory is left out in any case.
        (json!({"pattern": "config", "include_ignored": true}), "[no file matches]\n"),
    ] {
        let text = session.text_of("glob", input.clone()).await;
        match expected {
            "" => {
                assert!(text.contains(".github/ci.yml\n") && text.contains("README.md\n"), "{text}")
            }
            expected => assert_eq!(text, expected, "{input}"),
        }
    }
    let why = session.text_of("glob", json!({"pattern": "*", "path": "../x"})).await;
    assert!(why.contains("outside the working directory"), "{why}");
    std::os::unix::fs::symlink("/etc", session.path("link")).unwrap();
    let text = session.text_of("glob", json!({"pattern": "hostname"})).await;
    assert_eq!(text, "[no file matches]\n");
}

#[tokio::test]
async fn many_files_are_counted_and_the_rest_is_said() {
    let session = Session::new();
    for number in 0..600 {
        session.put(&format!("d/{number}.txt"), "");
    }
    let outcome = session.run("glob", json!({"pattern": "*.txt"})).await.unwrap();
    assert_eq!(outcome.text.lines().count(), 501);
    assert!(outcome.text.ends_with("[100 more match; narrow the pattern]\n"));
    assert_eq!(outcome.summary, "Found 600 files for *.txt");
}

#[tokio::test]
async fn a_search_shows_lines_files_or_counts() {
    let session = Session::with(&[("a", "word\nword\n"), ("b.rs", "word\n"), ("c", "none\n")]);
    for (input, expected) in [
        (json!({"pattern": "word", "output": "counts"}), "a: 2\nb.rs: 1\n"),
        (json!({"pattern": "word", "output_mode": "files_with_matches"}), "a\nb.rs\n"),
        (json!({"pattern": "word", "files_only": true}), "a\nb.rs\n"),
        (json!({"pattern": "word", "glob": "*.rs", "output_mode": "content"}), "b.rs\n1:word\n"),
        (
            json!({"pattern": "word", "output": "all"}),
            "the input does not fit: `output` must be one of \"lines\", \"files\", \"counts\". For example: {\"pattern\": \
             \"fn main\", \"path\": \"src\", \"globs\": [\"*.rs\"], \"context\": 2}",
        ),
    ] {
        assert_eq!(session.text_of("grep", input.clone()).await, expected, "{input}");
    }
    let counts = json!({"pattern": "word", "output": "counts"});
    let outcome = session.run("grep", counts).await.unwrap();
    assert_eq!(outcome.summary, "Found 3 lines in 2 files for word");
}
