//! `/permissions`: the session's mode, and the rules that hold in it.

use host::rules::{CallPlace, PermissionRule, RuleStore};

use super::TerminalChat;
use crate::chat::line::{Line, Style};
use crate::rules::describe_rules;
use crate::terminal::escape_line;

impl TerminalChat {
    pub(super) fn show_permissions(&mut self) {
        if let Some(mode) = self.chat.permission_mode() {
            let line = Line::new(Style::Bold, format!("  {}", escape_line(&mode.title)));
            self.print([line.then(Style::Dim, "  /approvals or Shift-Tab chooses another mode")]);
        }
        let Some(data) = self.data.clone() else {
            return self.note("The rules are where the host runs: `greenroom rules list` there");
        };
        let rules = match RuleStore::new(&data).load() {
            Ok(rules) => rules,
            Err(error) => {
                return self.note_error(&format!(
                    "{error}. Until it is mended everything is asked: `greenroom rules edit`"
                ));
            }
        };
        let directory = self
            .chat
            .directory()
            .and_then(|path| path.canonicalize().ok());
        let place = CallPlace {
            session: self.chat.session().to_string(),
            directories: directory.into_iter().collect(),
        };
        let listed: Vec<&PermissionRule> = rules.in_force(&place);
        let lines = describe_rules(&listed).into_iter();
        let lines: Vec<Line> = lines
            .map(|line| Line::new(Style::Plain, format!("  {line}")))
            .collect();
        if lines.is_empty() {
            let none = "  No rules hold here. `greenroom rules add 'bash(cargo test:*)'` adds one.";
            return self.print([Line::new(Style::Dim, none)]);
        }
        self.print(lines);
    }
}
