//! Renders of system prompts: the newest of each chat, for the operator's eyes alone (G-37).

use agent_api::Section;
use kernel::{Rendered, Transform, TransformAttempt, TransformFailure};
use rusqlite::{Connection, Result, params};
use serde_json::{Value, json};

use super::int;
use super::write::run;
use crate::journal::JournalError;

/// How many are stored of each chat.
pub(in crate::journal) const KEPT: i64 = 50;

/// A render as it was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedRender {
    /// None at the start of a session.
    pub turn_id: Option<String>,
    /// Milliseconds since 1970.
    pub at: i64,
    /// Id and text of each section, in order.
    pub before: Vec<(String, String)>,
    /// What a client made of some of them.
    pub rewritten: Vec<(String, String)>,
    /// The name of its outcome.
    pub outcome: String,
    pub asked: Option<ArchivedAsk>,
}

/// Who was asked to rewrite what.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedAsk {
    pub client_id: String,
    pub method: String,
    pub sections: Vec<String>,
    pub ms: u64,
    /// The code of the error it answered with.
    pub error: Option<i64>,
}

pub(super) fn put(conn: &Connection, rendered: &Rendered) -> Result<()> {
    let before = rendered.before.iter().map(section_json).collect::<Value>().to_string();
    conn.prepare_cached(
        "INSERT INTO render (chat, turn_id, at, before_json, after_json, outcome, asked_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        int(rendered.chat.0),
        rendered.turn_id.as_deref().unwrap_or(""),
        rendered.at.0,
        before,
        json!(rendered.rewritten).to_string(),
        rendered.transform.outcome_name(),
        rendered
            .transform
            .attempt()
            .map(|asked| asked_json(asked, &rendered.transform).to_string()),
    ])?;
    run(
        conn,
        "DELETE FROM render WHERE chat = ?1 AND id <=
             (SELECT id FROM render WHERE chat = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        &[&int(rendered.chat.0), &KEPT],
    )
}

pub(in crate::journal) fn section_json(section: &Section) -> Value {
    json!([section.id, section.content])
}

pub(in crate::journal) fn asked_json(asked: &TransformAttempt, transform: &Transform) -> Value {
    let mut json = json!({
        "clientId": asked.client_id,
        "method": asked.method,
        "sections": asked.sections,
        "ms": asked.ms,
    });
    if let Transform::PassedThrough(_, TransformFailure::Error(code)) = transform {
        json["error"] = json!(code);
    }
    json
}

/// The renders of a chat, the oldest first.
pub(super) fn of_chat(conn: &Connection, chat: u64) -> Result<Vec<ArchivedRender>, JournalError> {
    let unread = |error: rusqlite::Error| JournalError::Unreadable(error.to_string());
    let mut statement = conn
        .prepare_cached(
            "SELECT turn_id, at, before_json, after_json, outcome, asked_json FROM render
             WHERE chat = ?1 ORDER BY id",
        )
        .map_err(unread)?;
    let mut rows = statement.query([int(chat)]).map_err(unread)?;
    let mut renders = Vec::new();
    while let Some(row) = rows.next().map_err(unread)? {
        let text = |at: usize| row.get::<_, String>(at).map_err(unread);
        let asked = row.get::<_, Option<String>>(5).map_err(unread)?;
        renders.push(ArchivedRender {
            turn_id: Some(text(0)?).filter(|turn| !turn.is_empty()),
            at: row.get(1).map_err(unread)?,
            before: parse_json(&text(2)?)?,
            rewritten: parse_json::<std::collections::BTreeMap<_, _>>(&text(3)?)?
                .into_iter()
                .collect(),
            outcome: text(4)?,
            asked: asked.map(|asked| ask_of(&asked)).transpose()?,
        });
    }
    Ok(renders)
}

fn ask_of(text: &str) -> Result<ArchivedAsk, JournalError> {
    let json: Value = parse_json(text)?;
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let sections = json["sections"].as_array().into_iter().flatten();
    Ok(ArchivedAsk {
        client_id: text(&json["clientId"]),
        method: text(&json["method"]),
        sections: sections.map(text).collect(),
        ms: json["ms"].as_u64().unwrap_or(0),
        error: json["error"].as_i64(),
    })
}

fn parse_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, JournalError> {
    serde_json::from_str(text)
        .map_err(|error| JournalError::Unreadable(format!("a render is damaged: {error}")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kernel::{Batch, ChannelId, Record, Seq, TransformSkipped};
    use wire::Timestamp;

    use super::*;
    use crate::journal::{Journal, Sqlite};

    fn rendered(chat: u64, text: &str, transform: Transform) -> Record {
        let section = |id: &str| Section::new(id.to_owned(), format!("{id} {text}"));
        let rewritten = matches!(transform, Transform::Rewritten(_));
        let rewritten = rewritten.then(|| ("tone".to_owned(), "new".to_owned()));
        Record::Render(Box::new(Rendered {
            chat: ChannelId(chat),
            turn_id: Some("t".to_owned()),
            at: Timestamp(7),
            before: vec![section("tone"), section("identity")],
            rewritten: rewritten.into_iter().collect::<BTreeMap<_, _>>(),
            transform,
        }))
    }

    #[test]
    fn the_newest_of_each_chat_are_kept_as_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Sqlite::open(dir.path()).unwrap();
        let nobody = || Transform::NotAsked(TransformSkipped::NobodyOptedIn);
        let asked = TransformAttempt {
            client_id: "ann".to_owned(),
            method: "systemMessageTransform",
            sections: vec!["tone".to_owned()],
            ms: 12,
        };
        let mut records = vec![rendered(2, "other", nobody())];
        records.extend((0..60).map(|n| rendered(1, &n.to_string(), nobody())));
        records.push(rendered(1, "a", Transform::Rewritten(asked.clone())));
        let refused = Transform::PassedThrough(asked, TransformFailure::Error(-7));
        records.push(rendered(1, "b", refused));
        let seq = Seq(1);
        journal.append(&Batch { seq, records }).unwrap();
        let kept = of_chat(&journal.conn, 1).unwrap();
        assert_eq!(kept.len(), 50);
        assert_eq!(kept[0].before[0].1, "tone 12");
        assert_eq!((kept[0].outcome.as_str(), &kept[0].asked), ("nobodyOptedIn", &None));
        let [.., rewritten, refused] = &kept[..] else { unreachable!() };
        assert_eq!(rewritten.rewritten, [("tone".to_owned(), "new".to_owned())]);
        assert_eq!(rewritten.asked.as_ref().map(|asked| asked.ms), Some(12));
        assert_eq!(refused.outcome, "error");
        assert_eq!(refused.asked.as_ref().and_then(|asked| asked.error), Some(-7));
        assert_eq!(of_chat(&journal.conn, 2).unwrap().len(), 1);
    }
}
