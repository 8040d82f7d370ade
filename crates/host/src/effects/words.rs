//! The same events and replies in the kernel's words and in the agents': neither knows the other.

use agents::{AgentEvent, prompt};
use bytes::Bytes;
use kernel::{AgentReply, Rendered, Section, TextKind, ToolStart, TurnEvent, Worker};

/// What an agent said, for the kernel. Content must have been kept before.
pub(super) fn event(event: AgentEvent) -> TurnEvent {
    match event {
        AgentEvent::PartOpened { part, kind } => TurnEvent::PartOpened {
            part,
            kind: match kind {
                agents::TextKind::Markdown => TextKind::Markdown,
                agents::TextKind::Reasoning => TextKind::Reasoning,
            },
        },
        AgentEvent::Text { part, text } => TurnEvent::Text { part, text },
        AgentEvent::Notice { text } => TurnEvent::Notice { text },
        AgentEvent::Usage(usage) => TurnEvent::Usage(usage),
        AgentEvent::Title(title) => TurnEvent::Title(title),
        AgentEvent::Activity(activity) => TurnEvent::Activity(activity),
        AgentEvent::Checkpoint(data) => TurnEvent::Checkpoint(Bytes::from(data)),
        AgentEvent::Noted(notes) => TurnEvent::Noted(Bytes::from(notes)),
        AgentEvent::Compacted {
            keep_turns,
            summary,
        } => TurnEvent::Compacted {
            keep_turns,
            summary,
        },
        AgentEvent::Lowered { .. } => unreachable!("what is lowered is kept beside the turn"),
        AgentEvent::Keep { .. } => unreachable!("a body is kept before anybody is told"),
        AgentEvent::Content { .. } => unreachable!("content is kept before it is told"),
        AgentEvent::ToolStarted { call, start } => TurnEvent::ToolStarted {
            call,
            start: Box::new(ToolStart {
                name: start.name,
                display_name: start.display_name,
                intention: start.intention,
                contributor: start.contributor,
                meta: start.meta,
            }),
        },
        AgentEvent::ToolInput { call, text } => TurnEvent::ToolInput { call, text },
        AgentEvent::ToolReady { call, fields } => TurnEvent::ToolReady { call, fields },
        AgentEvent::ToolContent { call, content } => TurnEvent::ToolContent { call, content },
        AgentEvent::ToolCompleted {
            call,
            result,
            review,
        } => TurnEvent::ToolCompleted {
            call,
            result,
            review,
        },
        AgentEvent::ClientTool {
            call,
            name,
            input,
            timeout_ms,
        } => TurnEvent::ClientTool {
            call,
            name,
            input,
            timeout_ms,
        },
        AgentEvent::Asked { ask, request } => TurnEvent::Asked { ask, request },
        AgentEvent::SteerPoint { steer } => TurnEvent::SteerPoint { steer },
        AgentEvent::SettingsAsked { ask } => TurnEvent::SettingsAsked { ask },
        AgentEvent::Render { render, sections } => TurnEvent::Render {
            render,
            sections: self::sections(sections),
        },
        AgentEvent::Spawned { call, worker } => TurnEvent::Spawned {
            call,
            worker: Box::new(Worker {
                title: worker.title,
                interactivity: worker.interactivity,
                agent_name: worker.agent_name,
                task: worker.task,
                brief: Bytes::from(worker.brief),
            }),
        },
    }
}

/// What the kernel answers, for an agent.
pub(super) fn reply(reply: AgentReply) -> agents::AgentReply {
    match reply {
        AgentReply::ToolDecided {
            call,
            approved,
            input,
            selected_option,
            suggestion,
            reason,
        } => agents::AgentReply::ToolDecided {
            call,
            approved,
            input,
            selected_option,
            suggestion,
            reason,
        },
        AgentReply::ResultDecided { call, approved } => {
            agents::AgentReply::ResultDecided { call, approved }
        }
        AgentReply::ToolEnded { call, result } => agents::AgentReply::ToolEnded { call, result },
        AgentReply::Answered {
            ask,
            response,
            answers,
        } => agents::AgentReply::Answered {
            ask,
            response,
            answers,
        },
        AgentReply::Steered { steer, message, .. } => agents::AgentReply::Steered {
            steer,
            message,
            user: None,
        },
        AgentReply::Settings { ask, values } => agents::AgentReply::Settings { ask, values },
        AgentReply::Rendered { render, rendered } => agents::AgentReply::Rendered {
            render,
            sections: to_be_read(*rendered),
        },
    }
}

pub(super) fn sections(sections: Vec<prompt::Section>) -> Vec<Section> {
    let section = |section: prompt::Section| Section {
        id: section.id.into_owned(),
        content: section.content.into_owned(),
    };
    sections.into_iter().map(section).collect()
}

/// A render as the model is to read it.
fn to_be_read(rendered: Rendered) -> Vec<prompt::Section> {
    let mut rewritten = rendered.rewritten;
    let sections = rendered.before.into_iter().map(|section| {
        let content = rewritten.remove(&section.id).unwrap_or(section.content);
        prompt::Section::new(section.id, content)
    });
    sections.collect()
}
