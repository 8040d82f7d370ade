//! Makes the table of the page's files: addresses with one digest over all of them, brotli and gzip, the modules to load first.
//!
//! `/app/` in `index.html`, `sw.js` and the manifest becomes `/app/<digest>/`. Before its scripts come links that load those modules and
//! what they import, directly or not, first what the first one needs; those behind `import()` are not among them. What is sent has no comments
//! and no needless space (`strip.rs`). `/* files */` in `sw.js` becomes the addresses of what a first visit loads, as strings with
//! commas between them; everything else is in `rest.json`, texts by their names, which together pack better than one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use brotli::enc::backward_references::{BrotliEncoderMode, BrotliEncoderParams};
use sha2::{Digest, Sha256};

mod strip;

/// The scripts of `index.html`, in the order in which they are needed.
const FIRST_MODULES: [&str; 2] = ["js/entry.js", "js/main.js"];
/// Files of these names are served at the root, without the digest.
const AT_ROOT: &[&str] = &["index.html", "sw.js", "manifest.webmanifest"];
/// The files that no first visit loads, in one.
const REST: &str = "rest.json";
const ROOT_DIRECTORY: &str = "icons/";
/// For those who work on the page, not for browsers.
const LEFT_OUT: &[&str] = &[".d.ts", ".md", "jsconfig.json", "tsconfig.json"];

type BuildResult<T> = Result<T, Box<dyn Error>>;

struct AppFile {
    /// Relative to `app`, with `/`.
    name: String,
    bytes: Vec<u8>,
}

fn main() -> BuildResult<()> {
    println!("cargo::rerun-if-changed=app");
    println!("cargo::rerun-if-changed=build");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut files = Vec::new();
    collect(Path::new("app"), "", &mut files)?;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let preloads = first_wave(&files)?;
    for file in &mut files {
        strip_file(file)?;
    }
    let digest = digest_of_all(&files);
    for file in &mut files {
        fill_in(file, &digest, &preloads)?;
    }
    let is_first = first_visit(&files, &preloads)?;
    files.push(pack_rest(&files, &is_first)?);
    list_for_service_worker(&mut files, &digest, &is_first)?;
    fs::write(out.join("files.rs"), write_table(&files, &digest, &out)?)?;
    Ok(())
}

fn collect(directory: &Path, prefix: &str, files: &mut Vec<AppFile>) -> BuildResult<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let own_name = entry.file_name();
        let own_name = own_name.to_str().ok_or("a file name is not UTF-8")?;
        let name = format!("{prefix}{own_name}");
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else if !own_name.starts_with('.') && !LEFT_OUT.iter().any(|end| name.ends_with(end)) {
            let bytes = fs::read(entry.path())?;
            files.push(AppFile { name, bytes });
        }
    }
    Ok(())
}

/// The service worker is stripped when its list is filled in: the place of the list is a comment.
fn strip_file(file: &mut AppFile) -> BuildResult<()> {
    let strip = match file.name.rsplit_once('.') {
        Some((_, "js")) if file.name != "sw.js" => strip::strip_script,
        Some((_, "css")) => strip::strip_style,
        _ => return Ok(()), // pictures, and what is small
    };
    file.bytes = strip(std::str::from_utf8(&file.bytes)?).into_bytes();
    Ok(())
}

fn digest_of_all(files: &[AppFile]) -> String {
    let mut hash = Sha256::new();
    for file in files {
        for part in [file.name.as_bytes(), &file.bytes] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
    }
    short_hex(&hash.finalize())
}

/// 64 bits tell versions of a page apart; nothing here is secret.
fn short_hex(digest: &[u8]) -> String {
    digest.iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a string cannot fail
        text
    })
}

/// The first modules and what they import, directly or not, in the order of the imports.
fn first_wave(files: &[AppFile]) -> BuildResult<Vec<String>> {
    let mut wave = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<String> = FIRST_MODULES.iter().rev().map(|&name| name.to_owned()).collect();
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let file = files
            .iter()
            .find(|file| file.name == name)
            .ok_or_else(|| format!("a module imports app/{name}, which is not there"))?;
        let text = std::str::from_utf8(&file.bytes)?;
        let imports = imports_of(text);
        wave.push(name.clone());
        let mut resolved =
            imports.iter().map(|import| resolve(&name, import)).collect::<BuildResult<Vec<_>>>()?;
        resolved.reverse();
        open.extend(resolved);
    }
    Ok(wave)
}

/// What stands behind `import ".."` and `from ".."` of static imports and exports. They begin at the beginning of a line.
fn imports_of(text: &str) -> Vec<String> {
    let mut imports = Vec::new();
    let mut in_statement = false;
    for line in text.lines() {
        let begins =
            ["import ", "import{", "import\"", "import'", "export {", "export *", "export{"]
                .iter()
                .any(|word| line.starts_with(word));
        in_statement |= begins;
        if !in_statement {
            continue;
        }
        let target = line
            .split_once(" from ")
            .map(|(_, rest)| rest)
            .or_else(|| line.strip_prefix("import ").filter(|rest| rest.starts_with(['"', '\''])));
        if let Some(target) = target.map(str::trim)
            && let Some(quote) = target.chars().next().filter(|first| matches!(first, '"' | '\''))
            && let Some(path) = target.split(quote).nth(1)
        {
            imports.push(path.to_owned());
            in_statement = false;
        } else if line.contains(';') {
            in_statement = false;
        }
    }
    imports
}

fn resolve(module: &str, import: &str) -> BuildResult<String> {
    if !import.starts_with("./") && !import.starts_with("../") {
        return Err(format!(
            "app/{module} imports \"{import}\": modules import each other by relative paths"
        )
        .into());
    }
    let mut parts: Vec<&str> = module.split('/').collect();
    parts.pop();
    for part in import.split('/') {
        match part {
            "." => {}
            ".." if parts.pop().is_none() => {
                return Err(format!("app/{module} imports \"{import}\", outside of app").into());
            }
            ".." => {}
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

fn fill_in(file: &mut AppFile, digest: &str, preloads: &[String]) -> BuildResult<()> {
    if !AT_ROOT.contains(&file.name.as_str()) {
        return Ok(());
    }
    let mut text = std::str::from_utf8(&file.bytes)?.to_owned();
    if file.name == "index.html" {
        let links = preloads.iter().fold(String::new(), |mut links, name| {
            let _ = writeln!(links, "  <link rel=\"modulepreload\" href=\"/app/{name}\">");
            links
        });
        let scripts = text.find("  <script").ok_or("app/index.html has no script")?;
        text.insert_str(scripts, &links);
    }
    file.bytes = text.replace("/app/", &format!("/app/{digest}/")).into_bytes();
    Ok(())
}

/// What `index.html` names: the modules and the styles of the first screen.
fn first_visit(files: &[AppFile], preloads: &[String]) -> BuildResult<BTreeSet<String>> {
    let page = files.iter().find(|file| file.name == "index.html");
    let text = std::str::from_utf8(&page.ok_or("app/index.html is not there")?.bytes)?;
    let styles = files
        .iter()
        .map(|file| &file.name)
        .filter(|name| name.ends_with(".css") && text.contains(&format!("/{name}\"")));
    Ok(styles.chain(preloads).cloned().collect())
}

fn pack_rest(files: &[AppFile], is_first: &BTreeSet<String>) -> BuildResult<AppFile> {
    let rest =
        files.iter().filter(|file| !is_at_root(&file.name) && !is_first.contains(&file.name));
    let mut texts = BTreeMap::new();
    for file in rest {
        let text = std::str::from_utf8(&file.bytes)?;
        texts.insert(&file.name, text);
    }
    Ok(AppFile { name: REST.to_owned(), bytes: serde_json::to_vec(&texts)? })
}

fn list_for_service_worker(
    files: &mut [AppFile],
    digest: &str,
    is_first: &BTreeSet<String>,
) -> BuildResult<()> {
    let list: Vec<String> =
        is_first.iter().map(|name| format!("\"/app/{digest}/{name}\"")).collect();
    if let Some(worker) = files.iter_mut().find(|file| file.name == "sw.js") {
        let text = std::str::from_utf8(&worker.bytes)?;
        let filled = text.replace("/* files */", &list.join(", "));
        worker.bytes = strip::strip_script(&filled).into_bytes();
    }
    Ok(())
}

fn is_at_root(name: &str) -> bool {
    AT_ROOT.contains(&name) || name.starts_with(ROOT_DIRECTORY)
}

fn content_type(name: &str) -> BuildResult<&'static str> {
    let end = name.rsplit_once('.').map(|(_, end)| end);
    Ok(match end {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        _ => {
            return Err(format!(
                "app/{name}: no content type is known for this name; see build.rs"
            )
            .into());
        }
    })
}

fn write_table(files: &[AppFile], digest: &str, out: &Path) -> BuildResult<String> {
    let mut entries = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let path = match file.name.as_str() {
            "index.html" => "/".to_owned(),
            name if is_at_root(name) => format!("/{name}"),
            name => format!("/app/{digest}/{name}"),
        };
        let is_immutable = !is_at_root(&file.name);
        let content_type = content_type(&file.name)?;
        let plain = include(out, number, "plain", &file.bytes)?;
        let is_compressed = matches!(content_type, "image/png" | "font/woff2");
        let (brotli, gzip) = if is_compressed {
            ("None".to_owned(), "None".to_owned())
        } else {
            let brotli = include(out, number, "br", &compress_brotli(&file.bytes)?)?;
            let gzip = include(out, number, "gz", &compress_gzip(&file.bytes)?)?;
            (format!("Some({brotli})"), format!("Some({gzip})"))
        };
        let etag = short_hex(&Sha256::digest(&file.bytes));
        let entry = format!(
            "PageFile {{ path: {path:?}, content_type: {content_type:?}, is_immutable: {is_immutable}, \
             tag: {etag:?}, plain: {plain}, brotli: {brotli}, gzip: {gzip} }},\n"
        );
        entries.push((path, entry));
    }
    entries.sort();
    let entries: String = entries.into_iter().map(|(_, entry)| entry).collect();
    Ok(format!(
        "/// Names this version of the page: it changes with any of its files.\npub const DIGEST: &str = {digest:?};\n\
         static FILES: &[PageFile] = &[\n{entries}];\n"
    ))
}

/// Writes the bytes and returns the expression that includes them.
fn include(out: &Path, number: usize, kind: &str, bytes: &[u8]) -> BuildResult<String> {
    let path = out.join(format!("{number}.{kind}"));
    fs::write(&path, bytes)?;
    Ok(format!("include_bytes!({path:?})"))
}

/// Whole, and as text: what is packed piece by piece, or as anything, is larger.
fn compress_brotli(bytes: &[u8]) -> BuildResult<Vec<u8>> {
    let params = BrotliEncoderParams {
        quality: 11,
        lgwin: 22,
        mode: BrotliEncoderMode::BROTLI_MODE_TEXT,
        size_hint: bytes.len(),
        ..BrotliEncoderParams::default()
    };
    let mut packed = Vec::new();
    brotli::BrotliCompress(&mut &bytes[..], &mut packed, &params)?;
    Ok(packed)
}

fn compress_gzip(bytes: &[u8]) -> BuildResult<Vec<u8>> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    writer.write_all(bytes)?;
    Ok(writer.finish()?)
}
