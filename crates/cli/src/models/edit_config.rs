//! Changes the models in the text of a configuration file.
//!
//! Promises: everything else stays as it is, byte for byte: comments, order, line ends. What cannot be understood is not
//! changed.
//! Must not know: files.

use anyhow::{Context, bail};
use host::Model;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};

const MODELS: &str = "models";
const DEFAULT: &str = "default_model";

/// The text with a model more, behind the others.
pub(super) fn add(text: &str, model: &Model) -> anyhow::Result<String> {
    edit(text, |document| {
        let fields = fields_of(model);
        match document.get_mut(MODELS) {
            None => add_first(document, table_of(fields)),
            Some(Item::ArrayOfTables(tables)) => {
                let mut table = table_of(fields);
                table.decor_mut().set_prefix("\n");
                tables.push(table);
            }
            Some(Item::Value(Value::Array(array))) => add_inline(array, inline_of(fields)),
            Some(_) => bail!("`models` is not a list"),
        }
        Ok(())
    })
}

/// The text without a model.
pub(super) fn remove(text: &str, id: &str) -> anyhow::Result<String> {
    let missing = || format!("there is no model `{id}`");
    edit(text, |document| {
        let left = match document.get_mut(MODELS) {
            Some(Item::ArrayOfTables(tables)) => {
                let index = tables
                    .iter()
                    .position(|table| is(table.get("id"), id))
                    .with_context(missing)?;
                let removed = tables.get(index).cloned();
                tables.remove(index);
                let left = tables.len();
                if let Some(removed) = removed {
                    keep_comments(document, &removed);
                }
                left
            }
            Some(Item::Value(Value::Array(array))) => {
                let is_named = |value: &Value| {
                    let table = value.as_inline_table();
                    table.and_then(|table| table.get("id")?.as_str()) == Some(id)
                };
                let index = array.iter().position(is_named).with_context(missing)?;
                array.remove(index);
                array.len()
            }
            Some(_) | None => bail!(missing()),
        };
        if left == 0 {
            document.remove(MODELS);
        }
        Ok(())
    })
}

/// The text with another default model, or with none named.
pub(super) fn set_default(text: &str, id: Option<&str>) -> anyhow::Result<String> {
    let Some(id) = id else {
        return edit(text, |document| {
            document.remove(DEFAULT);
            Ok(())
        });
    };
    let document: DocumentMut = parse(text)?;
    let has_keys = document.iter().any(|(_, item)| item.is_value());
    if document.contains_key(DEFAULT) || has_keys {
        return edit(text, |document| {
            match document.get_mut(DEFAULT).and_then(Item::as_value_mut) {
                Some(value) => {
                    let decor = value.decor().clone();
                    *value = Value::from(id);
                    *value.decor_mut() = decor;
                }
                None => document[DEFAULT] = toml_edit::value(id),
            }
            Ok(())
        });
    }
    Ok(insert_first_key(text, id))
}

/// Puts the key before the first table and the comment right above that. Nothing but comments can come before it: there are no
/// keys.
fn insert_first_key(text: &str, id: &str) -> String {
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let line = format!("{DEFAULT} = {}{line_end}{line_end}", Value::from(id));
    let mut at = text.len();
    let mut offset = 0;
    for part in text.split_inclusive('\n') {
        if part.trim_start().starts_with('[') {
            at = offset;
            break;
        }
        offset += part.len();
    }
    let (before, table) = text.split_at(at);
    let mut comment = before.len();
    for part in before.split_inclusive('\n').rev() {
        if !part.trim_start().starts_with('#') {
            break;
        }
        comment -= part.len();
    }
    let (before, comment) = before.split_at(comment);
    format!("{before}{line}{comment}{table}")
}

fn parse(text: &str) -> anyhow::Result<DocumentMut> {
    let text = text.trim_start_matches('\u{feff}');
    // One kind of line end inside; `edit` puts the other back.
    Ok(text.replace("\r\n", "\n").parse()?)
}

fn edit(
    text: &str,
    change: impl FnOnce(&mut DocumentMut) -> anyhow::Result<()>,
) -> anyhow::Result<String> {
    let mut document = parse(text)?;
    change(&mut document)?;
    let mut edited = document.to_string();
    if text.contains("\r\n") {
        edited = edited.replace('\n', "\r\n");
    }
    if text.starts_with('\u{feff}') {
        edited.insert(0, '\u{feff}');
    }
    Ok(edited)
}

fn is(item: Option<&Item>, id: &str) -> bool {
    item.and_then(Item::as_str) == Some(id)
}

/// What `greenroom models add` knows of a model, in the order a person would write it.
fn fields_of(model: &Model) -> Vec<(&'static str, Value)> {
    let mut fields = vec![("id", Value::from(&model.id))];
    let mut put = |name, value: Option<Value>| fields.extend(value.map(|value| (name, value)));
    put("name", model.name.as_ref().map(Value::from));
    put("model", model.model.as_ref().map(Value::from));
    let api = Some(model.api.name()).filter(|_| !model.api.is_default());
    put("api", api.map(Value::from));
    put("base_url", Some(Value::from(&model.base_url)));
    put("key_env", model.key_env.as_ref().map(Value::from));
    let file = model.key_file.as_ref();
    put("key_file", file.map(|file| Value::from(file.to_string_lossy().into_owned())));
    let command = model.key_command.as_ref();
    put("key_command", command.map(|words| Value::Array(words.iter().collect())));
    put("key_header", model.key_header.as_ref().map(Value::from));
    fields
}

fn table_of(fields: Vec<(&'static str, Value)>) -> Table {
    let mut table = Table::new();
    for (name, value) in fields {
        table.insert(name, Item::Value(value));
    }
    table
}

fn inline_of(fields: Vec<(&'static str, Value)>) -> InlineTable {
    fields.into_iter().collect()
}

/// The first `[[models]]` of a file. Comments at its end stay above it.
fn add_first(document: &mut DocumentMut, mut table: Table) {
    let trailing = document.trailing().as_str().unwrap_or("").to_owned();
    let is_empty = document.as_table().is_empty() && trailing.trim().is_empty();
    let gap = if is_empty { "" } else { "\n" };
    let line_end = if trailing.is_empty() || trailing.ends_with('\n') { "" } else { "\n" };
    table.decor_mut().set_prefix(format!("{trailing}{line_end}{gap}"));
    document.set_trailing("");
    let mut tables = ArrayOfTables::new();
    tables.push(table);
    document.insert(MODELS, Item::ArrayOfTables(tables));
}

/// One more of `models = [ .. ]`, set like the one before it.
fn add_inline(array: &mut Array, table: InlineTable) {
    let before = array.iter().last().map(|last| last.decor().clone());
    let mut value = Value::InlineTable(table);
    if let Some(prefix) = before.as_ref().and_then(|decor| decor.prefix()?.as_str()) {
        // A comment above the last one is about the last one.
        let space = prefix.rsplit('\n').next().unwrap_or("");
        let prefix = if prefix.contains('\n') { format!("\n{space}") } else { " ".to_owned() };
        value.decor_mut().set_prefix(prefix);
    }
    array.push_formatted(value);
}

/// Comments above a table that was removed, if an empty line is between them and it: they are about more than that table.
fn keep_comments(document: &mut DocumentMut, removed: &Table) {
    let prefix = removed.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or("");
    let Some(end) = prefix.rfind("\n\n") else {
        return; // what is right above it was about it
    };
    let kept = prefix.get(..=end).unwrap_or("").to_owned();
    if kept.trim().is_empty() {
        return; // empty lines go with it
    }
    let next = next_table(document, removed.position());
    match next {
        Some(table) => {
            let own = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or("");
            let prefix = format!("{kept}{own}");
            table.decor_mut().set_prefix(prefix);
        }
        None => {
            let trailing = document.trailing().as_str().unwrap_or("").to_owned();
            document.set_trailing(format!("{kept}{trailing}"));
        }
    }
}

/// The table that comes next in the file.
fn next_table(document: &mut DocumentMut, after: Option<isize>) -> Option<&mut Table> {
    let tables = document.iter_mut().flat_map(|(_, item)| match item {
        Item::Table(table) => vec![table],
        Item::ArrayOfTables(tables) => tables.iter_mut().collect(),
        Item::None | Item::Value(_) => Vec::new(),
    });
    let later = tables.filter(|table| table.position() > after);
    later.min_by_key(|table| table.position())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn qwen() -> Model {
        Model::parse("http://localhost:11434/v1#qwen3").unwrap()
    }

    fn check(edited: anyhow::Result<String>, expected: &Expect) {
        expected.assert_eq(&edited.unwrap());
    }

    #[test]
    fn a_file_is_made_from_nothing_or_from_comments() {
        check(
            add("", &qwen()),
            &expect![[r#"
                [[models]]
                id = "qwen3"
                base_url = "http://localhost:11434/v1"
            "#]],
        );
        check(
            add("# mine\n\n# keep", &qwen()),
            &expect![[r#"
                # mine

                # keep

                [[models]]
                id = "qwen3"
                base_url = "http://localhost:11434/v1"
            "#]],
        );
    }

    const FILE: &str = r#"# Settings of this machine
scripted = false   # no toys

[limits] # bounds
clients_max = 7

# Models, the good ones

# local
[[models]]
id = "a"
base_url = "http://h/v1"
[models.settings.temperature]
type = "number" # hot

# remote
[[models]]
base_url = "http://h/v1"
id = "b"
# the end
"#;

    #[test]
    fn a_model_is_added_behind_the_others() {
        let mut model = qwen();
        model.key_command = Some(vec!["pass".to_owned(), "show \"x\"".to_owned()]);
        model.name = Some("Qwen".to_owned());
        let edited = add(FILE, &model).unwrap();
        let added = edited.strip_prefix(FILE.strip_suffix("# the end\n").unwrap()).unwrap();
        expect![[r#"

            [[models]]
            id = "qwen3"
            name = "Qwen"
            base_url = "http://localhost:11434/v1"
            key_command = ["pass", 'show "x"']
            # the end
        "#]]
        .assert_eq(added);
    }

    #[test]
    fn a_model_is_removed_with_the_comment_right_above_it() {
        check(
            remove(FILE, "a"),
            &expect![[r#"
                # Settings of this machine
                scripted = false   # no toys

                [limits] # bounds
                clients_max = 7

                # Models, the good ones

                # remote
                [[models]]
                base_url = "http://h/v1"
                id = "b"
                # the end
            "#]],
        );
        let none = remove(&remove(FILE, "a").unwrap(), "b").unwrap();
        assert!(!none.contains("models") && none.contains("# Models, the good ones"), "{none}");
        assert!(remove(FILE, "c").unwrap_err().to_string().contains("no model `c`"));
    }

    #[test]
    fn the_default_is_a_key_before_all_tables() {
        let edited = set_default(FILE, Some("b")).unwrap();
        assert!(edited.contains("no toys\ndefault_model = \"b\"\n\n[limits]"), "{edited}");
        let again = set_default(&edited, Some("a")).unwrap();
        assert_eq!(again, edited.replace("\"b\"\n\n", "\"a\"\n\n"));
        assert_eq!(set_default(&again, None).unwrap(), FILE);
        check(
            set_default("# head\n\n# one\n[[models]]\nid = \"a\"\n", Some("a")),
            &expect![[r##"
                # head

                default_model = "a"

                # one
                [[models]]
                id = "a"
            "##]],
        );
    }

    #[test]
    fn lists_of_inline_tables_stay_what_they_are() {
        let one = "models = [{ id = \"a\", base_url = \"http://h/v1\" }]\n";
        check(
            add(one, &qwen()),
            &expect![[r#"
                models = [{ id = "a", base_url = "http://h/v1" }, { id = "qwen3", base_url = "http://localhost:11434/v1" }]
            "#]],
        );
        let lines = "models = [\n  # mine\n  { id = \"a\", base_url = \"http://h/v1\" },\n]\n";
        let added = add(lines, &qwen()).unwrap();
        check(
            Ok(added.clone()),
            &expect![[r#"
                models = [
                  # mine
                  { id = "a", base_url = "http://h/v1" },
                  { id = "qwen3", base_url = "http://localhost:11434/v1" },
                ]
            "#]],
        );
        assert!(!remove(&added, "a").unwrap().contains("\"a\""));
    }

    #[test]
    fn line_ends_and_marks_stay() {
        let text = format!("\u{feff}{}", FILE.replace('\n', "\r\n"));
        for edited in [
            add(&text, &qwen()).unwrap(),
            remove(&text, "a").unwrap(),
            set_default(&text, Some("b")).unwrap(),
        ] {
            assert!(edited.starts_with('\u{feff}'));
            assert_eq!(edited.matches('\n').count(), edited.matches("\r\n").count());
            assert!(edited.contains("clients_max = 7\r\n\r\n# Models"), "{edited:?}");
        }
    }

    #[test]
    fn what_is_no_toml_is_not_changed() {
        assert!(add("[[models]", &qwen()).is_err());
        assert!(add("models = 3", &qwen()).is_err());
    }
}
