//! The system prompt of a chat's last renders: sections before and after, who rewrote what, in how many milliseconds, or
//! why everything was passed through.

use std::fmt::Write;

use host::journal::{Archive, ArchivedRender, ArchivedSession, JournalError};
use host::sent_request::transform_json;
use serde_json::{Value, json};
use wire::Timestamp;

use crate::terminal::{escape, escape_line};

/// A render, and the chat it was made in.
pub(crate) struct ChatRender {
    pub(crate) chat: String,
    pub(crate) render: ArchivedRender,
}

/// The last renders of each chat of a session, the oldest first.
pub(crate) fn renders_of(
    archive: &Archive,
    session: &ArchivedSession,
    last: usize,
) -> Result<Vec<ChatRender>, JournalError> {
    let mut all = Vec::new();
    for chat in &session.chats {
        let renders = archive.renders(chat)?;
        let skipped = renders.len().saturating_sub(last);
        all.extend(
            renders
                .into_iter()
                .skip(skipped)
                .map(|render| ChatRender { chat: chat.state.resource.clone(), render }),
        );
    }
    Ok(all)
}

/// What a section was rewritten to; nothing if it was not.
fn find_rewritten<'a>(render: &'a ArchivedRender, id: &str) -> Option<&'a str> {
    let mut rewritten = render.rewritten.iter();
    let rewrite = rewritten.find(|(rewritten, _)| rewritten == id);
    rewrite.map(|(_, content)| content.as_str())
}

pub(crate) fn to_json(renders: &[ChatRender]) -> Value {
    let one = |ChatRender { chat, render }: &ChatRender| {
        let sections = render.before.iter().map(|(id, before)| {
            let after = find_rewritten(render, id).unwrap_or(before);
            json!({"id": id, "before": before, "after": after})
        });
        let transform = transform_json(render);
        json!({
            "chat": chat,
            "turnId": render.turn_id,
            "at": Timestamp(render.at).to_rfc3339(),
            "outcome": transform["outcome"],
            "asked": transform["asked"],
            "sections": sections.collect::<Value>(),
        })
    };
    renders.iter().map(one).collect()
}

pub(crate) fn to_text(renders: &[ChatRender]) -> String {
    if renders.is_empty() {
        return "No prompt of this is stored. The scripted agent renders one at `show_prompt` (send it `prompt`), others \
                before they ask their model.\n"
            .to_owned();
    }
    let mut text = String::new();
    for ChatRender { chat, render } in renders {
        let at = Timestamp(render.at).to_rfc3339();
        let turn = match &render.turn_id {
            Some(turn) => format!("turn {}", escape_line(turn)),
            None => "at the start of the session".to_owned(),
        };
        // Writing into a string does not fail.
        let _ = writeln!(text, "{at}  {}  {turn}", escape_line(chat));
        let _ = writeln!(text, "{}\n", outcome_text(render));
        for (id, before) in &render.before {
            write_section(&mut text, &escape_line(id), before, find_rewritten(render, id));
        }
    }
    text
}

/// The outcome of the render.
pub(super) fn outcome_text(render: &ArchivedRender) -> String {
    let Some(asked) = &render.asked else {
        return match render.outcome.as_str() {
            "nobodyOptedIn" => "Nobody was asked: no connected client opted in.".to_owned(),
            "nothingToRewrite" => {
                "Nobody was asked: every section that clients opted in to is restricted to this host.".to_owned()
            }
            other => format!("Nobody was asked: {}.", escape_line(other)),
        };
    };
    let (client, ms) = (escape_line(&asked.client_id), asked.ms);
    let sections = escape_line(&asked.sections.join(", "));
    let why = match (render.outcome.as_str(), asked.error) {
        ("rewritten", _) if render.rewritten.is_empty() => {
            return format!("{client} was asked for {sections} and changed nothing, in {ms} ms.");
        }
        ("rewritten", _) => {
            let changed: Vec<&str> = render.rewritten.iter().map(|(id, _)| id.as_str()).collect();
            let changed = escape_line(&changed.join(", "));
            return format!("{client} was asked for {sections} and rewrote {changed}, in {ms} ms.");
        }
        ("timeout", _) => "it did not answer in time".to_owned(),
        ("peerGone", _) => "its connection ended".to_owned(),
        ("error", Some(code)) => format!("it answered with error {code}"),
        ("malformed", _) => "its answer was malformed".to_owned(),
        ("tooLarge", _) => "its answer was too large".to_owned(),
        ("busy", _) => "it had too many open requests".to_owned(),
        (other, _) => escape_line(other),
    };
    format!("{client} was asked for {sections}; all passed through after {ms} ms: {why}.")
}

/// A section as it is, or what was taken out of it and put in.
pub(super) fn write_section(text: &mut String, id: &str, before: &str, after: Option<&str>) {
    match after {
        None if before.is_empty() => {
            let _ = writeln!(text, "== {id}: empty\n");
        }
        None => {
            let _ = writeln!(text, "== {id}\n{}\n", escape(before).trim_end());
        }
        Some(after) => {
            let _ = writeln!(text, "== {id}, rewritten\n{}", diff(before, after));
        }
    }
}

/// Lines that went and lines that came, the rest between them.
pub(crate) fn diff(before: &str, after: &str) -> String {
    let (before, after) = (escape(before), escape(after));
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(&new).take_while(same).count();
    let left = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(left).take_while(same).count();
    let mut text = String::new();
    let mut put = |sign: char, lines: &[&str]| {
        for line in lines {
            text.push(sign);
            text.push(' ');
            text.push_str(line);
            text.push('\n');
        }
    };
    put(' ', &old[..head]);
    put('-', &old[head..old.len() - tail]);
    put('+', &new[head..new.len() - tail]);
    put(' ', &old[old.len() - tail..]);
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use host::journal::ArchivedAsk;

    use super::*;

    fn render(outcome: &str, rewritten: &[(&str, &str)]) -> ChatRender {
        let owned = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(id, text)| ((*id).to_owned(), (*text).to_owned())).collect()
        };
        ChatRender {
            chat: "ahp-chat:/c".to_owned(),
            render: ArchivedRender {
                turn_id: Some("t1".to_owned()),
                at: 0,
                before: owned(&[("tone", "Be brief.\nBe kind."), ("custom_instructions", "")]),
                rewritten: owned(rewritten),
                outcome: outcome.to_owned(),
                asked: Some(ArchivedAsk {
                    client_id: "ann".to_owned(),
                    method: "systemMessageTransform".to_owned(),
                    sections: vec!["tone".to_owned()],
                    ms: 3,
                    error: None,
                }),
            },
        }
    }

    #[test]
    fn the_rewriting_client_and_its_changes_are_printed() {
        let renders =
            [render("rewritten", &[("tone", "Be brief.\nBe polite.")]), render("timeout", &[])];
        expect![[r#"
            1970-01-01T00:00:00.000Z  ahp-chat:/c  turn t1
            ann was asked for tone and rewrote tone, in 3 ms.

            == tone, rewritten
              Be brief.
            - Be kind.
            + Be polite.

            == custom_instructions: empty

            1970-01-01T00:00:00.000Z  ahp-chat:/c  turn t1
            ann was asked for tone; all passed through after 3 ms: it did not answer in time.

            == tone
            Be brief.
            Be kind.

            == custom_instructions: empty

        "#]]
        .assert_eq(&to_text(&renders));
    }

    #[test]
    fn programs_see_all_of_it() {
        let json = to_json(&[render("rewritten", &[("tone", "x")])]);
        assert_eq!(
            json[0]["sections"][0],
            json!({"id": "tone", "before": "Be brief.\nBe kind.", "after": "x"})
        );
        assert_eq!(json[0]["asked"]["ms"], 3);
    }

    #[test]
    fn a_diff_contains_unchanged_lines() {
        assert_eq!(diff("a\nb\nc", "a\nc"), "  a\n- b\n  c\n");
        assert_eq!(diff("", "x"), "+ x\n");
        assert_eq!(diff("a\na", "a"), "  a\n- a\n");
    }
}
