//! Dependencies by call: a method or function that only one file defines is called in another.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::repository::pattern;
use crate::source::Source;

/// Methods of the standard library and of libraries that the kernel uses: a call says nothing about who defines it.
const COMMON: &[&str] = &[
    "all",
    "and_then",
    "any",
    "append",
    "as_bytes",
    "as_deref",
    "as_mut",
    "as_object",
    "as_ref",
    "as_slice",
    "as_str",
    "as_u64",
    "bytes",
    "capacity",
    "chain",
    "chars",
    "checked_add",
    "checked_sub",
    "clear",
    "clone",
    "cloned",
    "cmp",
    "collect",
    "concat",
    "contains",
    "contains_key",
    "copied",
    "count",
    "default",
    "drain",
    "ends_with",
    "entry",
    "enumerate",
    "eq",
    "expect",
    "extend",
    "filter",
    "filter_map",
    "find",
    "find_map",
    "first",
    "flat_map",
    "flatten",
    "fmt",
    "fold",
    "for_each",
    "from",
    "get",
    "get_mut",
    "get_or_insert_with",
    "hash",
    "insert",
    "into",
    "into_iter",
    "into_keys",
    "into_values",
    "is_empty",
    "is_err",
    "is_none",
    "is_none_or",
    "is_ok",
    "is_some",
    "is_some_and",
    "iter",
    "iter_mut",
    "join",
    "keys",
    "last",
    "len",
    "lines",
    "map",
    "map_err",
    "map_or",
    "map_or_else",
    "max",
    "min",
    "new",
    "next",
    "not",
    "ok",
    "ok_or",
    "ok_or_else",
    "or",
    "or_default",
    "or_else",
    "or_insert",
    "or_insert_with",
    "parse",
    "peek",
    "pointer",
    "pop",
    "pop_back",
    "pop_first",
    "pop_front",
    "position",
    "push",
    "push_back",
    "push_front",
    "push_str",
    "range",
    "read",
    "remove",
    "repeat",
    "replace",
    "reserve",
    "resize",
    "retain",
    "rev",
    "saturating_sub",
    "set",
    "skip",
    "sort",
    "sort_by",
    "sort_by_key",
    "split",
    "split_at",
    "split_off",
    "split_once",
    "starts_with",
    "step",
    "strip_prefix",
    "sum",
    "swap",
    "take",
    "then",
    "then_some",
    "to_owned",
    "to_string",
    "to_vec",
    "trim",
    "truncate",
    "try_from",
    "try_into",
    "unwrap_or",
    "unwrap_or_default",
    "unwrap_or_else",
    "values",
    "values_mut",
    "with_capacity",
    "write",
    "zip",
];

struct Definition {
    file: String,
    is_public: bool,
    takes_self: bool,
}

/// Who calls what only another file defines: `(from, to, reason)`.
pub(super) fn dependencies(
    sources: &[Source],
    below: &[Source],
) -> Result<Vec<(String, String, String)>> {
    let mut foreign: BTreeSet<String> = COMMON.iter().map(|name| (*name).to_owned()).collect();
    for source in below {
        foreign.extend(definitions(source)?.into_iter().map(|(name, _)| name));
    }
    let mut defined: BTreeMap<String, Vec<Definition>> = BTreeMap::new();
    for source in sources {
        for (name, definition) in definitions(source)? {
            defined.entry(name).or_default().push(definition);
        }
    }
    let call = pattern(r"(\.\s*|::\s*|\bfn\s+)?\b([a-z_]\w*)\s*(?:::\s*<[^()]*>)?\(")?;
    let attribute = pattern(r"#!?\[[^\]]*\]")?;
    let glob = pattern(r"\buse\s+(?:crate|super|self)\b[^;]*\*[^;]*;")?;
    let mut found = Vec::new();
    for source in sources {
        let code = attribute.replace_all(&source.code, "");
        // A function that is called by its bare name was imported by name, which is a dependency by path, or by `*`.
        let imports_all = glob.is_match(&code);
        for called in call.captures_iter(&code) {
            let name = &called[2];
            let Some(definition) = only_definition(&defined, name) else { continue };
            let how = called.get(1).map_or("", |before| before.as_str().trim());
            let fits = match how {
                "." => definition.takes_self,
                "::" => true,
                "" => !definition.takes_self && imports_all,
                _ => false,
            };
            if fits && !foreign.contains(name) {
                found.push((
                    source.name.clone(),
                    definition.file.clone(),
                    format!("`{how}{name}()`"),
                ));
            }
        }
    }
    Ok(found)
}

fn only_definition<'a>(
    defined: &'a BTreeMap<String, Vec<Definition>>,
    name: &str,
) -> Option<&'a Definition> {
    let definitions = defined.get(name)?;
    let first = definitions.first()?;
    let is_one_file = definitions.iter().all(|other| other.file == first.file);
    (is_one_file && definitions.iter().any(|other| other.is_public)).then_some(first)
}

fn definitions(source: &Source) -> Result<Vec<(String, Definition)>> {
    let function = pattern(r"(pub(?:\([^)]*\))?\s+)?(?:(?:const|async|unsafe)\s+)*\bfn\s+(\w+)")?;
    let receiver = pattern(r"^\(\s*(?:&\s*(?:'\w+\s+)?)?(?:mut\s+)?self\b")?;
    Ok(function
        .captures_iter(&source.code)
        .map(|found| {
            let after = found.get(0).map_or(0, |whole| whole.end());
            let parameters = &source.code[skip_generics(&source.code, after)..];
            let definition = Definition {
                file: source.name.clone(),
                is_public: found.get(1).is_some(),
                takes_self: receiver.is_match(parameters),
            };
            (found[2].to_owned(), definition)
        })
        .collect())
}

/// The offset of the parenthesis after a function's name and generic parameters.
fn skip_generics(code: &str, start: usize) -> usize {
    let bytes = code.as_bytes();
    let mut depth = 0usize;
    for at in start..bytes.len() {
        match bytes[at] {
            b'<' => depth += 1,
            b'>' if bytes[at - 1] != b'-' => depth = depth.saturating_sub(1),
            b'(' if depth == 0 => return at,
            _ => {}
        }
    }
    code.len()
}
