//! Dependencies by path: `use crate::..` and `crate::..` in the code, followed through imports to the file that defines.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::Result;

use crate::repository::pattern;
use crate::source::{Source, closing_brace};

/// Imports are followed at most this often: one that leads back to itself ends there.
const HOPS_MAX: usize = 8;

type Segments = Vec<String>;

/// A file as a module: what it is called, what it defines and what it imports.
struct Module {
    file: String,
    defined: BTreeSet<String>,
    /// By name; `*` imports are under `*`.
    imports: Vec<(String, Segments)>,
}

/// Who names whom, and how: `(from, to, reason)`.
pub(super) fn dependencies(sources: &[Source], dir: &str) -> Result<Vec<(String, String, String)>> {
    let mut modules = BTreeMap::new();
    let mut mentions = Vec::new();
    for source in sources {
        let path = module_path(&source.name, dir);
        let (module, named) = read_module(source)?;
        mentions.push((path.clone(), source.name.clone(), named));
        modules.insert(path, module);
    }
    let mut found = Vec::new();
    for (path, file, named) in &mentions {
        for segments in named {
            if let Some(to) = resolve(&modules, path, segments, HOPS_MAX) {
                found.push((file.clone(), to, format!("`{}`", segments.join("::"))));
            }
        }
    }
    Ok(found)
}

/// `bodies/early.rs` is `bodies::early`, `bodies/mod.rs` is `bodies`, `lib.rs` is the root.
fn module_path(name: &str, dir: &str) -> Segments {
    let name = name.strip_prefix(dir).unwrap_or(name);
    let name = name.strip_suffix(".rs").unwrap_or(name);
    let mut segments: Segments = name.split('/').map(str::to_owned).collect();
    if segments.last().is_some_and(|last| last == "mod" || last == "lib") {
        segments.pop();
    }
    segments
}

fn read_module(source: &Source) -> Result<(Module, Vec<Segments>)> {
    let import = pattern(r"(pub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);")?;
    let inline = pattern(r"\b(?:crate|self|super)(?:\s*::\s*\w+)+")?;
    let definition = pattern(r"\b(?:struct|enum|union|trait|type|const|static|fn)\s+(\w+)")?;
    let inner = inner_modules(&source.code)?;
    let passes_on = source.name.ends_with("mod.rs") || source.name.ends_with("lib.rs");
    let mut module = Module {
        file: source.name.clone(),
        defined: definition.captures_iter(&source.code).map(|found| found[1].to_owned()).collect(),
        imports: Vec::new(),
    };
    let mut named = Vec::new();
    for found in import.captures_iter(&source.code) {
        let mut leaves = Vec::new();
        flatten(&found[2], &Vec::new(), &mut leaves);
        // What a parent passes on does not make the parent depend on it.
        let is_passed_on = passes_on && found.get(1).is_some();
        let depth = depth_at(&inner, found.get(0).map_or(0, |whole| whole.start()));
        for (name, segments) in leaves {
            let Some(segments) = from_the_file(segments, depth) else { continue };
            if !is_passed_on {
                named.push(segments.clone());
            }
            module.imports.push((name, segments));
        }
    }
    let imports: Vec<_> = import.find_iter(&source.code).map(|found| found.range()).collect();
    for found in inline.find_iter(&source.code) {
        if imports.iter().any(|range| range.contains(&found.start())) {
            continue;
        }
        let depth = depth_at(&inner, found.start());
        named.extend(from_the_file(split_path(found.as_str()), depth));
    }
    Ok((module, named))
}

/// Where modules inside of the file begin and end.
fn inner_modules(code: &str) -> Result<Vec<Range<usize>>> {
    let start = pattern(r"\bmod\s+\w+\s*\{")?;
    Ok(start
        .find_iter(code)
        .map(|found| found.start()..closing_brace(code, found.end() - 1))
        .collect())
}

fn depth_at(inner: &[Range<usize>], offset: usize) -> usize {
    inner.iter().filter(|range| range.contains(&offset)).count()
}

/// A path in a module inside of the file, as the file would write it; nothing if it stays within the file.
fn from_the_file(mut segments: Segments, depth: usize) -> Option<Segments> {
    let is_relative = segments.first().is_none_or(|first| first != "crate");
    if depth == 0 || !is_relative {
        return Some(segments);
    }
    let ups = segments.iter().take_while(|segment| *segment == "super").count();
    (ups > depth).then(|| segments.split_off(depth))
}

fn split_path(path: &str) -> Segments {
    path.split("::").map(|segment| segment.trim().to_owned()).collect()
}

/// The leaves of a `use` tree: the name each brings and its whole path.
fn flatten(tree: &str, before: &Segments, leaves: &mut Vec<(String, Segments)>) {
    let tree = tree.trim();
    if tree.is_empty() {
        return;
    }
    if let Some(open) = tree.find('{') {
        let mut prefix = before.clone();
        let head = tree[..open].trim().trim_end_matches("::");
        if !head.is_empty() {
            prefix.extend(split_path(head));
        }
        let inside = tree[open + 1..].trim_end().trim_end_matches('}');
        for branch in split_branches(inside) {
            flatten(branch, &prefix, leaves);
        }
        return;
    }
    let (path, alias) = match tree.split_once(" as ") {
        Some((path, alias)) => (path, Some(alias.trim().to_owned())),
        None => (tree, None),
    };
    let mut segments = before.clone();
    segments.extend(split_path(path));
    if segments.last().is_some_and(|last| last == "self") && segments.len() > 1 {
        segments.pop();
    }
    let name = alias.or_else(|| segments.last().cloned()).unwrap_or_default();
    leaves.push((name, segments));
}

/// Splits at commas that are not inside of braces.
fn split_branches(inside: &str) -> Vec<&str> {
    let mut depth = 0usize;
    let mut start = 0;
    let mut branches = Vec::new();
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                branches.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    branches.push(&inside[start..]);
    branches
}

/// The file that defines what a path means in a module, if it is one of ours.
fn resolve(
    modules: &BTreeMap<Segments, Module>,
    here: &Segments,
    path: &Segments,
    hops: usize,
) -> Option<String> {
    let absolute = absolute(modules, here, path)?;
    let length =
        (0..=absolute.len()).rev().find(|length| modules.contains_key(&absolute[..*length]))?;
    let (at, rest) = absolute.split_at(length);
    let module = modules.get(at)?;
    let Some(name) = rest.first().filter(|name| *name != "*") else {
        return Some(module.file.clone());
    };
    if hops == 0 || module.defined.contains(name) {
        return Some(module.file.clone());
    }
    let at = at.to_vec();
    let exact = module.imports.iter().find(|(imported, _)| imported == name);
    if let Some((_, to)) = exact {
        return resolve(modules, &at, to, hops - 1);
    }
    for (_, to) in module.imports.iter().filter(|(imported, _)| imported == "*") {
        let mut inner = to.clone();
        inner.pop();
        inner.push(name.clone());
        if let Some(file) = resolve(modules, &at, &inner, hops - 1)
            && modules.values().any(|module| module.file == file && module.defined.contains(name))
        {
            return Some(file);
        }
    }
    Some(module.file.clone())
}

/// The path from the root of the crate; nothing if it leads to another crate.
fn absolute(
    modules: &BTreeMap<Segments, Module>,
    here: &Segments,
    path: &Segments,
) -> Option<Segments> {
    let mut at = here.clone();
    let mut rest = path.as_slice();
    match rest.first()?.as_str() {
        "crate" => {
            at.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|segment| segment == "super") {
                at.pop();
                rest = &rest[1..];
            }
        }
        child => {
            at.push(child.to_owned());
            if !modules.contains_key(&at) {
                return None;
            }
            rest = &rest[1..];
        }
    }
    at.extend(rest.iter().cloned());
    Some(at)
}
