//! `/permissions`: the session's mode, and the rules that hold in it.

use host::rules::{PermissionRule, RuleContext, RuleStore};

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
                    "{error}. Agents ask before everything until it is corrected: `greenroom rules edit`"
                ));
            }
        };
        let (mut directories, mut is_whole) = (Vec::new(), true);
        for path in self.chat.directories() {
            match path.canonicalize() {
                Ok(real) => directories.push(real),
                Err(error) => {
                    is_whole = false;
                    self.note_error(&format!(
                        "{} cannot be found ({error}): its rules are not listed",
                        path.display()
                    ));
                }
            }
        }
        let place = RuleContext { session: self.chat.session().to_string(), directories };
        let listed: Vec<&PermissionRule> = rules.in_force(&place);
        let lines: Vec<Line> = describe_rules(&listed)
            .into_iter()
            .map(|line| Line::new(Style::Plain, format!("  {line}")))
            .collect();
        if lines.is_empty() && is_whole {
            let none =
                "  No rules apply here. `greenroom rules add 'bash(cargo test:*)'` adds one.";
            return self.print([Line::new(Style::Dim, none)]);
        }
        if !lines.is_empty() {
            self.print(lines);
        }
    }
}
