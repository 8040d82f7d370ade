//! What is sent of a script compiles to the same code as what is in the repository, for every script of the page.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on ends")]

use std::path::{Path, PathBuf};

use rquickjs::loader::{FileResolver, ScriptLoader};
use rquickjs::{CatchResultExt, Context, Module, Runtime, WriteOptions};

#[path = "../build/strip.rs"]
mod strip;

use strip::{strip_script, strip_style};

/// The code of a module, without where it stands in its source.
fn compile(name: &str, source: &str) -> Vec<u8> {
    let runtime = Runtime::new().expect("a runtime");
    let resolver = FileResolver::default().with_path("./");
    runtime.set_loader(resolver, ScriptLoader::default());
    let context = Context::full(&runtime).expect("a context");
    context.with(|ctx| {
        let options =
            WriteOptions { strip_source: true, strip_debug: true, ..WriteOptions::default() };
        let written =
            Module::declare(ctx.clone(), name, source).and_then(|module| module.write(options));
        match written.catch(&ctx) {
            Ok(code) => code,
            Err(error) => panic!("{name}: {error}"),
        }
    })
}

fn scripts(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            scripts(&path, found);
        } else if path.extension().is_some_and(|end| end == "js") {
            found.push(path);
        }
    }
}

#[test]
fn every_script_compiles_to_the_same_code() {
    let mut found = Vec::new();
    scripts(Path::new("app"), &mut found);
    assert!(found.len() > 50, "{found:?}");
    for path in found {
        let name = path.to_str().expect("UTF-8");
        let source = std::fs::read_to_string(&path).expect("a script");
        let stripped = strip_script(&source);
        assert_eq!(compile(name, &source), compile(name, &stripped), "{name}");
        assert!(!stripped.contains("/**") && !stripped.contains("\n "), "{name}");
        // `sw.js` is filled in first.
        if let Some(below) = name.strip_prefix("app/js/") {
            let served = web::find(&format!("/app/{}/js/{below}", web::DIGEST));
            let served = served.expect("every script is served").choose("");
            assert_eq!(served.bytes, stripped.as_bytes(), "{name}");
        }
    }
}

#[test]
fn what_is_not_code_stays_as_it_is() {
    for (source, stripped) in [
        ("const a = 1; // one\n\n/* two\n */ const b = a;\n", "const a=1;const b=a;\n"),
        (
            "const a = '// no', b = \"/* no */ \\\" // no\";",
            "const a='// no',b=\"/* no */ \\\" // no\";\n",
        ),
        (
            "const a = `x  ${ b ? `  ${ { c: 1 }.c } // no` : '' }  // no`;",
            "const a=`x  ${b?`  ${{c:1}.c} // no`:''}  // no`;\n",
        ),
        ("const a = `\\`  $  {` + `\\${ b }`;", "const a=`\\`  $  {`+`\\${ b }`;\n"),
        ("const a = /[/*] \\/ '/.test(b) / 2 / c;", "const a=/[/*] \\/ '/.test(b)/2/c;\n"),
        ("return  / a /.test(b)", "return/ a /.test(b)\n"),
        ("a = b\n(c)\n[d]\n", "a=b\n(c)\n[d]\n"),
        ("a + +b - -c; a++ + b; 1 .x; a / / b/g", "a+ +b- -c;a++ +b;1 .x;a/ / b/g\n"),
        ("if (a) {\n  b()\n}\nelse c()\n", "if(a){b()}\nelse c()\n"),
        ("f(a, [b, ','], {\n  c,\n  d: [\n    1,\n  ],\n});", "f(a,[b,','],{c,d:[1]});\n"),
        (
            "class A { #b = 1; static #c() { return #b in this; } }",
            "class A{#b=1;static #c(){return #b in this}}\n",
        ),
    ] {
        assert_eq!(strip_script(source), stripped);
    }
    for (source, stripped) in [
        (
            "/* why */\n.a > .b, .c :hover {\n  margin: 0 auto;\n  content: \"; }  /* x */\";\n}\n",
            ".a>.b,.c :hover{margin:0 auto;content:\"; }  /* x */\"}",
        ),
        (
            "@media (min-width: 3px) and (hover: none) { .a { width: calc(1px + 2px); } }",
            "@media (min-width:3px) and (hover:none){.a{width:calc(1px + 2px)}}",
        ),
    ] {
        assert_eq!(strip_style(source), stripped);
    }
}
