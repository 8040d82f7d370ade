//! Types for those who write the page: TypeScript of the states that a client holds, made from the published Rust types.
//!
//! Promises: everything that can be reached from the states of root, session and chat and from a session's summary, and nothing
//! else; a published type that this cannot express is an error that names it. `tidy` says when the file is not what this makes.
//! Must not know: what the page does with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use syn::{Attribute, Expr, Field, Fields, Item, ItemEnum, ItemImpl, ItemStruct, Type, Variant};

use crate::repository::Repository;

const FILE: &str = "crates/web/app/js/types.d.ts";
const ROOTS: &[&str] = &["RootState", "SessionState", "ChatState", "SessionSummary"];
const SOURCES: &[&str] = &["common.rs", "state.rs"];
const VERSION: &str = "1.0.0";
const HEAD: &str = "\
// What the host sends, as far as the page reads it. Made by `cargo run -p xtask -- gen`; not to be edited.
//
// A host of a later version sends kinds and values that are not in here: they come as they are, and are passed over.
";

/// Writes the types.
pub fn write_page_types(root: &Path) -> Result<()> {
    std::fs::write(root.join(FILE), make(root)?)
        .with_context(|| format!("{FILE} cannot be written"))
}

/// Whether the types are those of the published crate.
pub(crate) fn check_page_types(repository: &Repository) -> Result<Vec<String>> {
    let stored = repository.find_text(FILE).unwrap_or_default();
    Ok(if stored == make(repository.root())? {
        Vec::new()
    } else {
        vec![format!("{FILE}: run `cargo run -p xtask -- gen`")]
    })
}

fn make(root: &Path) -> Result<String> {
    let directory = find_published(root)?;
    let mut types = Published::default();
    for source in SOURCES {
        let text = std::fs::read_to_string(directory.join(source))
            .with_context(|| format!("the published types have no {source}"))?;
        types.read(syn::parse_file(&text)?);
    }
    types.write()
}

/// The sources of the published types, wherever cargo keeps them.
fn find_published(root: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root)
        .output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let found = packages
        .iter()
        .find(|package| package["name"] == "ahp-types" && package["version"] == VERSION);
    let manifest = found
        .and_then(|package| package["manifest_path"].as_str())
        .with_context(|| format!("ahp-types {VERSION} is not used here"))?;
    let directory = Path::new(manifest).parent().context("a manifest in a directory")?;
    Ok(directory.join("src"))
}

/// The published types by name.
#[derive(Default)]
struct Published {
    structs: BTreeMap<String, ItemStruct>,
    enums: BTreeMap<String, ItemEnum>,
    /// What the variants of an enum are on the wire, where its encoding is written by hand.
    names: BTreeMap<String, Vec<String>>,
}

impl Published {
    fn read(&mut self, file: syn::File) {
        for item in file.items {
            match item {
                Item::Struct(item) => {
                    self.structs.insert(item.ident.to_string(), item);
                }
                Item::Enum(item) => {
                    self.enums.insert(item.ident.to_string(), item);
                }
                Item::Impl(item) => {
                    if let Some((name, texts)) = encoded_names(&item) {
                        self.names.insert(name, texts);
                    }
                }
                _ => {} // neither a type nor how one is encoded
            }
        }
    }

    /// Everything that can be reached, by name.
    fn write(&self) -> Result<String> {
        let mut written = BTreeMap::new();
        let mut wanted: BTreeSet<String> = ROOTS.iter().map(ToString::to_string).collect();
        while let Some(name) = wanted.pop_first() {
            let mut found = Found::default();
            let text = match (self.structs.get(&name), self.enums.get(&name)) {
                (Some(item), _) => write_struct(item, &mut found),
                (None, Some(item)) => self.write_enum(item, &mut found),
                (None, None) => bail!("`{name}` is not among the published types"),
            };
            let text = text.with_context(|| format!("`{name}`"))?;
            written.insert(name, text);
            let new = found.0.into_iter().filter(|name| !written.contains_key(name));
            wanted.extend(new);
        }
        let mut text = HEAD.to_owned();
        for item in written.values() {
            text.push('\n');
            text.push_str(item);
        }
        Ok(text)
    }

    fn write_enum(&self, item: &ItemEnum, found: &mut Found) -> Result<String> {
        let name = &item.ident;
        if let Some(names) = self.names.get(&name.to_string()) {
            let names = names.iter().map(|name| format!("'{name}'"));
            return Ok(format!(
                "export type {name} = {} | (string & {{}});\n",
                names.collect::<Vec<_>>().join(" | ")
            ));
        }
        let tag = serde_text(&item.attrs, "tag")?;
        let mut members = Vec::new();
        for variant in &item.variants {
            if variant.ident != "Unknown" {
                members.push(write_variant(variant, tag.as_deref(), found)?);
            }
        }
        ensure!(!members.is_empty(), "an enum without variants");
        Ok(format!("export type {name} =\n  | {};\n", members.join("\n  | ")))
    }
}

/// The names of types that another mentions.
#[derive(Default)]
struct Found(BTreeSet<String>);

fn write_variant(variant: &Variant, tag: Option<&str>, found: &mut Found) -> Result<String> {
    let renamed = serde_text(&variant.attrs, "rename")?;
    let tagged = match (tag, &renamed) {
        (Some(tag), Some(name)) => Some(format!("{tag}: '{name}'")),
        (Some(_), None) => bail!("the variant `{}` has no name on the wire", variant.ident),
        (None, _) => None,
    };
    let tag_alone = |tagged: String| format!("{{ {tagged} }}");
    Ok(match &variant.fields {
        Fields::Unit => match (tagged, renamed) {
            (Some(tagged), _) => tag_alone(tagged),
            (None, Some(name)) => format!("'{name}'"),
            (None, None) => bail!("the variant `{}` has no name on the wire", variant.ident),
        },
        Fields::Unnamed(fields) => {
            let field = fields.unnamed.first().context("a variant that holds nothing")?;
            let inner = write_type(&field.ty, found)?;
            match tagged {
                Some(tagged) => format!("({} & {inner})", tag_alone(tagged)),
                None => inner,
            }
        }
        Fields::Named(fields) => {
            let mut parts: Vec<String> = tagged.into_iter().collect();
            for field in &fields.named {
                parts.push(write_field(field, false, found)?);
            }
            format!("{{ {} }}", parts.join("; "))
        }
    })
}

fn write_struct(item: &ItemStruct, found: &mut Found) -> Result<String> {
    let name = &item.ident;
    let mut text = String::new();
    match &item.fields {
        Fields::Named(fields) => {
            let is_camel = serde_text(&item.attrs, "rename_all")?.as_deref() == Some("camelCase");
            writeln!(text, "export interface {name} {{")?;
            for field in &fields.named {
                writeln!(text, "  {};", write_field(field, is_camel, found)?)?;
            }
            text.push_str("}\n");
        }
        Fields::Unnamed(fields) => {
            let field = fields.unnamed.first().context("a struct that holds nothing")?;
            writeln!(text, "export type {name} = {};", write_type(&field.ty, found)?)?;
        }
        Fields::Unit => bail!("a struct without fields"),
    }
    Ok(text)
}

fn write_field(field: &Field, is_camel: bool, found: &mut Found) -> Result<String> {
    let ident = field.ident.as_ref().context("a field without a name")?.to_string();
    let plain = ident.trim_start_matches("r#");
    let name = match serde_text(&field.attrs, "rename")? {
        Some(renamed) => renamed,
        None if is_camel => camel(plain),
        None => plain.to_owned(),
    };
    let (inner, mark) = match argument_of(&field.ty, "Option") {
        Some(inner) => (inner, "?"),
        None => (&field.ty, ""),
    };
    let name = if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        name
    } else {
        format!("'{name}'")
    };
    Ok(format!("{name}{mark}: {}", write_type(inner, found)?))
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| {
        let (head, rest) = word.split_at(word.len().min(1));
        text + &head.to_uppercase() + rest
    })
}

fn write_type(ty: &Type, found: &mut Found) -> Result<String> {
    for name in ["Option", "Box"] {
        if let Some(inner) = argument_of(ty, name) {
            return write_type(inner, found);
        }
    }
    if let Some(inner) = argument_of(ty, "Vec") {
        let inner = write_type(inner, found)?;
        return Ok(if inner.contains(' ') { format!("({inner})[]") } else { format!("{inner}[]") });
    }
    let name = last_name(ty)?;
    Ok(match name.as_str() {
        "String" | "Uri" => "string".to_owned(),
        "bool" => "boolean".to_owned(),
        "i32" | "i64" | "u32" | "u64" | "f64" => "number".to_owned(),
        "Value" | "AnyValue" => "any".to_owned(),
        "JsonObject" => "Record<string, any>".to_owned(),
        "HashMap" | "BTreeMap" | "Map" => {
            format!("Record<string, {}>", write_type(last_argument(ty)?, found)?)
        }
        _ => {
            found.0.insert(name.clone());
            name
        }
    })
}

fn last_segment(ty: &Type) -> Option<&syn::PathSegment> {
    match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None, // no field of the published types has another
    }
}

fn last_name(ty: &Type) -> Result<String> {
    let segment = last_segment(ty).context("a type that is not a name")?;
    Ok(segment.ident.to_string())
}

fn last_argument(ty: &Type) -> Result<&Type> {
    let arguments = last_segment(ty).map(|segment| &segment.arguments);
    let Some(syn::PathArguments::AngleBracketed(arguments)) = arguments else {
        bail!("a map without types");
    };
    match arguments.args.last() {
        Some(syn::GenericArgument::Type(ty)) => Ok(ty),
        _ => bail!("a map without types"),
    }
}

fn argument_of<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let is_it = last_segment(ty).is_some_and(|segment| segment.ident == name);
    is_it.then(|| last_argument(ty).ok()).flatten()
}

/// A setting of `#[serde(..)]` that is a text.
fn serde_text(attributes: &[Attribute], key: &str) -> Result<Option<String>> {
    let mut text = None;
    for attribute in attributes.iter().filter(|one| one.path().is_ident("serde")) {
        attribute.parse_nested_meta(|meta| {
            if let Ok(value) = meta.value() {
                let value: syn::LitStr = value.parse()?;
                if meta.path.is_ident(key) {
                    text = Some(value.value());
                }
            }
            Ok(())
        })?;
    }
    Ok(text)
}

/// What a hand-written `Serialize` writes for each variant: the texts in the arms of its match.
fn encoded_names(item: &ItemImpl) -> Option<(String, Vec<String>)> {
    let (_, path, _) = item.trait_.as_ref()?;
    if path.segments.last()?.ident != "Serialize" {
        return None;
    }
    let name = last_name(&item.self_ty).ok()?;
    let syn::ImplItem::Fn(function) = item.items.first()? else { return None };
    let Some(syn::Stmt::Expr(Expr::Match(matched), _)) = function.block.stmts.last() else {
        return None;
    };
    let texts = matched.arms.iter().filter_map(|arm| literal_in(&arm.body));
    Some((name, texts.collect()))
}

fn literal_in(body: &Expr) -> Option<String> {
    match body {
        Expr::MethodCall(call) => match call.args.first()? {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
            _ => None, // a value of a later version, as it came
        },
        Expr::Block(block) => match block.block.stmts.last()? {
            syn::Stmt::Expr(inner, _) => literal_in(inner),
            _ => None, // nothing is written
        },
        _ => None, // nothing is written
    }
}
