//! Lists to choose from that have the keys: sessions, agents, models and their settings, permission modes, turns, and a question of
//! our own.
//!
//! Promises: what is half typed stays as it is. Escape goes back without a change. What cannot be undone, or gives an agent
//! much, is asked about once, in words that are never cut, and done only on an Enter that came after its answer was drawn.

use client::chat::{AgentOffer, ChangesList, ModelOffer, OfferedMode, OperationRequest};
use wire::ChannelUri;

use super::changes::TurnPicker;
use super::model_picker::SettingPicker;
use super::overlay::{KeyUse, Overlay, OverlayLines};
use super::prompt_keys::ALL_AT_ONCE;
use super::session_picker::SessionPicker;
use super::{Flow, TerminalChat};
use crate::chat::editor::Editor;
use crate::chat::keys::Key;
use crate::chat::line::Style;
use crate::chat::menu::{Menu, MenuItem, MenuOutcome};
use crate::chat::tool::body;

/// Rows of a list.
const ROWS_MAX: usize = 12;
/// Rows that stay for everything else.
const ROWS_BESIDE: usize = 8;

#[derive(Debug)]
pub(super) enum Picker {
    Sessions(SessionPicker),
    Models(Menu<ModelOffer>),
    Agents(Menu<AgentOffer>),
    Setting(SettingPicker),
    Modes(Menu<OfferedMode>),
    Turns(TurnPicker),
    YesNoQuestion(YesNoQuestion),
}

/// A question of our own, answered by yes or no.
#[derive(Debug)]
pub(super) struct YesNoQuestion {
    text: String,
    action: QuestionAction,
    menu: Menu<bool>,
    /// The answer that is selected stands on the screen: Enter can be meant for it.
    is_drawn: bool,
}

/// What is done on a yes.
#[derive(Debug, Clone)]
pub(super) enum QuestionAction {
    DeleteSession {
        uri: ChannelUri,
        /// The list it was chosen from is shown again.
        is_listed: bool,
    },
    SetMode(OfferedMode),
    /// Has the host do something with files of a list.
    Operate {
        list: Box<ChangesList>,
        request: Box<OperationRequest>,
    },
}

impl YesNoQuestion {
    pub(super) fn new(text: String, yes: &str, no: &str, action: QuestionAction) -> Self {
        // What changes nothing is selected.
        let items = vec![MenuItem::new(false, no, ""), MenuItem::new(true, yes, "")];
        Self { text, action, menu: Menu::new(items), is_drawn: false }
    }

    fn lines(&self, width: usize, rows: usize) -> OverlayLines {
        OverlayLines {
            above: body(&self.text, Style::Warn, width),
            below: self.menu.lines(width, rows),
            prompt: Some("arrows, Enter › "),
            ..OverlayLines::default()
        }
    }
}

impl TerminalChat {
    pub(super) fn open_picker(&mut self, picker: Picker) {
        self.popup.close();
        self.overlay = Some(Overlay::Picker(Box::new(picker)));
    }

    pub(super) async fn press_picker(
        &mut self,
        picker: Picker,
        key: &Key,
    ) -> anyhow::Result<KeyUse> {
        match picker {
            Picker::Sessions(sessions) => self.press_sessions(sessions, key).await?,
            Picker::Models(mut menu) => match menu.key(key) {
                MenuOutcome::Taken | MenuOutcome::Unused => self.open_picker(Picker::Models(menu)),
                MenuOutcome::Closed => {}
                MenuOutcome::Chosen => self.choose_model(menu),
            },
            Picker::Agents(mut menu) => match menu.key(key) {
                MenuOutcome::Taken | MenuOutcome::Unused => self.open_picker(Picker::Agents(menu)),
                MenuOutcome::Closed => {}
                MenuOutcome::Chosen => self.choose_agent(menu).await,
            },
            Picker::Setting(setting) => self.press_setting(setting, key),
            Picker::Modes(menu) => self.press_modes(menu, key)?,
            Picker::Turns(turns) => self.press_turns(turns, key),
            Picker::YesNoQuestion(question) => self.press_question(question, key).await?,
        }
        Ok(KeyUse::Used(Flow::Continue))
    }

    async fn press_question(
        &mut self,
        mut question: YesNoQuestion,
        key: &Key,
    ) -> anyhow::Result<()> {
        let is_yes = question.menu.selected().is_some_and(|item| item.value);
        let outcome = match key {
            Key::Enter if is_yes && (!question.is_drawn || self.is_burst) => {
                self.note(ALL_AT_ONCE);
                MenuOutcome::Unused
            }
            // Letters decide nothing, and narrow nothing down to one answer.
            Key::Up | Key::Down | Key::Enter | Key::Escape => question.menu.key(key),
            Key::BackTab if matches!(question.action, QuestionAction::SetMode(_)) => {
                return self.skip_mode(&question.action);
            }
            _ => MenuOutcome::Unused,
        };
        match outcome {
            MenuOutcome::Taken => {
                question.is_drawn = false;
                self.open_picker(Picker::YesNoQuestion(question));
            }
            MenuOutcome::Unused => self.open_picker(Picker::YesNoQuestion(question)),
            MenuOutcome::Chosen if is_yes => self.do_asked(question.action).await?,
            MenuOutcome::Chosen | MenuOutcome::Closed => {
                if let QuestionAction::DeleteSession { is_listed: true, .. } = question.action {
                    self.open_sessions();
                }
            }
        }
        Ok(())
    }

    async fn do_asked(&mut self, action: QuestionAction) -> anyhow::Result<()> {
        match action {
            QuestionAction::DeleteSession { uri, is_listed } => {
                self.delete_session(&uri, is_listed).await
            }
            QuestionAction::SetMode(mode) => self.set_mode(&mode)?,
            QuestionAction::Operate { list, request } => self.operate_if_current(list, request),
        }
        Ok(())
    }

    /// What a list draws around the input line, which holds what narrows it.
    pub(super) fn picker_lines(&self, picker: &Picker, width: usize) -> OverlayLines {
        let rows = self.painter.rows().saturating_sub(ROWS_BESIDE).clamp(3, ROWS_MAX);
        let heading = |text: &str| body(text, Style::Dim, width);
        match picker {
            Picker::Sessions(sessions) => sessions.lines(width, rows),
            Picker::Models(menu) => OverlayLines {
                above: heading("Enter uses it for later messages · Escape goes back"),
                below: menu.lines(width, rows),
                prompt: Some("model › "),
                ..OverlayLines::default()
            },
            Picker::Agents(menu) => OverlayLines {
                above: heading("Enter starts a new session with it · Escape goes back"),
                below: menu.lines(width, rows),
                prompt: Some("agent › "),
                ..OverlayLines::default()
            },
            Picker::Setting(setting) => OverlayLines {
                above: heading(&setting.heading()),
                below: setting.menu.lines(width, rows),
                prompt: Some("value › "),
                ..OverlayLines::default()
            },
            Picker::Modes(menu) => OverlayLines {
                above: heading("What the agent may do without asking · Escape goes back"),
                below: menu.lines(width, rows),
                prompt: Some("approvals › "),
                ..OverlayLines::default()
            },
            Picker::Turns(turns) => OverlayLines {
                above: heading("Enter lists what the turn changed · Escape goes back"),
                below: turns.menu.lines(width, rows),
                prompt: Some("turn › "),
                ..OverlayLines::default()
            },
            Picker::YesNoQuestion(question) => question.lines(width, rows),
        }
    }
}

impl Picker {
    /// It stands on the screen now.
    pub(super) fn mark_drawn(&mut self) {
        if let Self::YesNoQuestion(question) = self {
            question.is_drawn = true;
        }
    }

    /// What is typed into while it is open.
    pub(super) fn editor(&self) -> &Editor {
        match self {
            Self::Sessions(sessions) => sessions.editor(),
            Self::Models(menu) => &menu.filter,
            Self::Agents(menu) => &menu.filter,
            Self::Setting(setting) => &setting.menu.filter,
            Self::Modes(menu) => &menu.filter,
            Self::Turns(turns) => &turns.menu.filter,
            Self::YesNoQuestion(question) => &question.menu.filter,
        }
    }
}
