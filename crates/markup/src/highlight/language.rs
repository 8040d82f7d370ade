//! The languages that have colours, their names, and their grammars.
//!
//! Promises: a grammar and its query are made once, by whoever needs them first. Must not know: what is coloured.
//!
//! YAML is not among them: its scanner writes beyond its buffer when a text is nested some hundred levels deep.

use std::sync::OnceLock;

use tree_sitter::Query;

use super::CodeClass;

/// A language with a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Bash,
    C,
    Css,
    Go,
    Html,
    JavaScript,
    Json,
    Python,
    Rust,
    Toml,
    Tsx,
    TypeScript,
}

/// Each language with its name first, then what people write behind a fence and what files end in.
const NAMES: &[(Language, &[&str])] = &[
    (Language::Bash, &["bash", "sh", "shell", "zsh", "shellscript", "ksh"]),
    (Language::C, &["c", "h"]),
    (Language::Css, &["css"]),
    (Language::Go, &["go", "golang"]),
    (Language::Html, &["html", "htm", "xhtml"]),
    (Language::JavaScript, &["javascript", "js", "jsx", "mjs", "cjs", "node"]),
    (Language::Json, &["json", "jsonc", "json5", "jsonl", "ndjson"]),
    (Language::Python, &["python", "py", "python3", "pyi", "py3"]),
    (Language::Rust, &["rust", "rs"]),
    (Language::Toml, &["toml"]),
    (Language::Tsx, &["tsx"]),
    (Language::TypeScript, &["typescript", "ts", "mts", "cts"]),
];

/// Files that are known by their whole name.
const FILES: &[(&str, Language)] = &[
    ("Cargo.lock", Language::Toml),
    ("Pipfile", Language::Toml),
    ("poetry.lock", Language::Toml),
    (".bashrc", Language::Bash),
    (".bash_profile", Language::Bash),
    (".profile", Language::Bash),
    (".zshrc", Language::Bash),
];

/// What queries call things, and the class of each; `function.method` is a `function`. Those without a class are here so that
/// they end the class around them, such as a name inside of a string.
const CAPTURES: &[(&str, Option<CodeClass>)] = &[
    ("attribute", Some(CodeClass::Attribute)),
    ("boolean", Some(CodeClass::Constant)),
    ("charset", Some(CodeClass::Keyword)),
    ("comment", Some(CodeClass::Comment)),
    ("constant", Some(CodeClass::Constant)),
    ("constructor", Some(CodeClass::Type)),
    ("delimiter", None),
    ("embedded", None),
    ("escape", Some(CodeClass::Constant)),
    ("function", Some(CodeClass::Function)),
    ("import", Some(CodeClass::Keyword)),
    ("keyframes", Some(CodeClass::Keyword)),
    ("keyword", Some(CodeClass::Keyword)),
    ("label", Some(CodeClass::Constant)),
    ("media", Some(CodeClass::Keyword)),
    ("module", Some(CodeClass::Type)),
    ("namespace", Some(CodeClass::Type)),
    ("number", Some(CodeClass::Number)),
    ("operator", None),
    ("property", Some(CodeClass::Property)),
    ("punctuation", None),
    ("string", Some(CodeClass::String)),
    ("supports", Some(CodeClass::Keyword)),
    ("tag", Some(CodeClass::Tag)),
    ("type", Some(CodeClass::Type)),
    ("variable", None),
    ("variable.builtin", Some(CodeClass::Constant)),
];

/// Patterns behind those of a grammar; the last one that matches counts. The shipped ones of Go and JSON are in the other order,
/// those of TOML colour whole lines, those of Rust have no numbers, and those of HTML leave scripts and styles to others.
const GO_MORE: &str = "
(call_expression function: (identifier) @function)
(call_expression function: (selector_expression field: (field_identifier) @function))
(function_declaration name: (identifier) @function)
(method_declaration name: (field_identifier) @function)
";
const JSON_MORE: &str = "(pair key: (string) @property)";
const TOML_MORE: &str = "
(pair) @variable
(pair [(bare_key) (quoted_key)] @property)
(pair (dotted_key [(bare_key) (quoted_key)] @property))
";
const RUST_MORE: &str = "[(integer_literal) (float_literal)] @number";
const HTML_MORE: &str = "
(script_element (raw_text) @inner.javascript)
(style_element (raw_text) @inner.css)
";

/// What a captured piece of code means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Has a class, or has none where something around it has one.
    Class(Option<CodeClass>),
    /// Is code of another language.
    Inner(Language),
    /// Is a means of the query's own.
    Nothing,
}

/// A grammar, its query, and what each capture of the query means.
pub(super) struct Grammar {
    pub(super) language: tree_sitter::Language,
    pub(super) query: Query,
    meanings: Vec<Meaning>,
}

impl Grammar {
    pub(super) fn meaning(&self, capture: u32) -> Meaning {
        let index = usize::try_from(capture).ok();
        let meaning = index.and_then(|index| self.meanings.get(index));
        meaning.copied().unwrap_or(Meaning::Nothing)
    }
}

fn find_meaning(capture: &str) -> Meaning {
    if let Some(language) = capture.strip_prefix("inner.").and_then(Language::find) {
        return Meaning::Inner(language);
    }
    let mut name = capture;
    loop {
        if let Some((_, class)) = CAPTURES.iter().find(|(known, _)| *known == name) {
            return Meaning::Class(*class);
        }
        match name.rsplit_once('.') {
            Some((shorter, _)) => name = shorter,
            None => return Meaning::Nothing,
        }
    }
}

impl Language {
    /// A language by its name, a common other one, or the extension of its files; in any case.
    pub fn find(name: &str) -> Option<Self> {
        let name = name.trim().trim_start_matches('.');
        let names = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let found = NAMES.iter().find(|(_, known)| names(known));
        found.map(|(language, _)| *language)
    }

    /// A language by the name of a file.
    pub fn of_path(path: &str) -> Option<Self> {
        let file = path.rsplit(['/', '\\']).next()?;
        if let Some((_, language)) = FILES.iter().find(|(name, _)| *name == file) {
            return Some(*language);
        }
        let (stem, extension) = file.rsplit_once('.')?;
        // `.json` alone is a hidden file without an extension.
        Self::find(extension).filter(|_| !stem.is_empty())
    }

    pub fn name(self) -> &'static str {
        let entry = NAMES.iter().find(|(language, _)| *language == self);
        entry.and_then(|(_, names)| names.first()).copied().unwrap_or("")
    }

    /// The grammar, made at first use.
    pub(super) fn load(self) -> Result<&'static Grammar, &'static str> {
        static GRAMMARS: [OnceLock<Result<Grammar, String>>; 12] = [const { OnceLock::new() }; 12];
        let cell = GRAMMARS.get(self as usize).ok_or("it is not in the table of grammars")?;
        cell.get_or_init(|| self.make()).as_ref().map_err(String::as_str)
    }

    fn make(self) -> Result<Grammar, String> {
        let typescript = || {
            let inherited = tree_sitter_javascript::HIGHLIGHT_QUERY;
            format!("{inherited}\n{}", tree_sitter_typescript::HIGHLIGHTS_QUERY)
        };
        let with_jsx =
            |query: &str| format!("{query}\n{}", tree_sitter_javascript::JSX_HIGHLIGHT_QUERY);
        let (grammar, query) = match self {
            Self::Bash => {
                (tree_sitter_bash::LANGUAGE, tree_sitter_bash::HIGHLIGHT_QUERY.to_owned())
            }
            Self::C => (tree_sitter_c::LANGUAGE, tree_sitter_c::HIGHLIGHT_QUERY.to_owned()),
            Self::Css => (tree_sitter_css::LANGUAGE, tree_sitter_css::HIGHLIGHTS_QUERY.to_owned()),
            Self::Go => (
                tree_sitter_go::LANGUAGE,
                format!("{}\n{GO_MORE}", tree_sitter_go::HIGHLIGHTS_QUERY),
            ),
            Self::Html => (
                tree_sitter_html::LANGUAGE,
                format!("{}\n{HTML_MORE}", tree_sitter_html::HIGHLIGHTS_QUERY),
            ),
            Self::JavaScript => (
                tree_sitter_javascript::LANGUAGE,
                with_jsx(tree_sitter_javascript::HIGHLIGHT_QUERY),
            ),
            Self::Json => (
                tree_sitter_json::LANGUAGE,
                format!("{}\n{JSON_MORE}", tree_sitter_json::HIGHLIGHTS_QUERY),
            ),
            Self::Python => {
                (tree_sitter_python::LANGUAGE, tree_sitter_python::HIGHLIGHTS_QUERY.to_owned())
            }
            Self::Rust => (
                tree_sitter_rust::LANGUAGE,
                format!("{}\n{RUST_MORE}", tree_sitter_rust::HIGHLIGHTS_QUERY),
            ),
            Self::Toml => (
                tree_sitter_toml_ng::LANGUAGE,
                format!("{}\n{TOML_MORE}", tree_sitter_toml_ng::HIGHLIGHTS_QUERY),
            ),
            Self::Tsx => (tree_sitter_typescript::LANGUAGE_TSX, with_jsx(&typescript())),
            Self::TypeScript => (tree_sitter_typescript::LANGUAGE_TYPESCRIPT, typescript()),
        };
        let language = tree_sitter::Language::from(grammar);
        let query = Query::new(&language, &query).map_err(|error| error.to_string())?;
        let meanings = query.capture_names().iter();
        Ok(Grammar { meanings: meanings.map(|name| find_meaning(name)).collect(), language, query })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_a_grammar_that_loads() {
        for (language, names) in NAMES {
            assert!(language.load().is_ok(), "{language:?}: {:?}", language.load().err());
            for name in *names {
                assert_eq!(Language::find(name), Some(*language));
            }
        }
        let last = NAMES.iter().map(|(language, _)| *language as usize).max();
        assert_eq!(last, Some(NAMES.len() - 1), "each has its cell");
    }

    #[test]
    fn every_capture_of_every_query_means_something() {
        for (language, _) in NAMES {
            let grammar = language.load().unwrap();
            for (name, meaning) in grammar.query.capture_names().iter().zip(&grammar.meanings) {
                let is_own = name.starts_with('_') || *name == "none";
                assert_eq!(*meaning == Meaning::Nothing, is_own, "{language:?}: {name}");
            }
        }
    }
}
