//! `/terminals`: the terminals of the host, listed, opened and ended.
//!
//! Promises: a number means the terminal that the last list showed under it, whatever others start and end meanwhile.

use client::terminals::{TerminalEntry, dispose_terminal, list_terminals};
use wire::ChannelUri;
use wire::rpc::code;

use super::TerminalChat;
use super::changes::describe;
use crate::chat::argument_words::{ArgumentWord, propose_words};
use crate::chat::line::{Line, Style};
use crate::chat::model_argument::ArgumentProposal;
use crate::terminals::list_lines;

const WORDS: [ArgumentWord; 2] = [
    ArgumentWord::new("new", "start a shell where the agent works"),
    ArgumentWord::new("kill", "NUMBER: end a terminal and what runs in it"),
];

/// What was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TerminalsRequest {
    List,
    New,
    Open(ChannelUri),
    End { number: usize, uri: ChannelUri },
}

impl TerminalChat {
    /// Does what stands behind `/terminals`.
    pub(super) async fn enter_terminals(&mut self, typed: &str) -> anyhow::Result<()> {
        if self.terminals.is_empty() {
            self.terminals = list_terminals(self.chat.live());
        }
        match parse(typed, &self.terminals) {
            Ok(TerminalsRequest::List) => self.print_terminals(),
            Ok(TerminalsRequest::New) => self.start_shell().await?,
            Ok(TerminalsRequest::Open(uri)) => {
                let uri = uri.to_string();
                self.run_terminals(&["attach", &uri]).await?;
            }
            Ok(TerminalsRequest::End { number, uri }) => self.end_terminal(number, &uri).await,
            Err(why) => self.note_error(&why),
        }
        Ok(())
    }

    fn print_terminals(&mut self) {
        self.terminals = list_terminals(self.chat.live());
        let mut lines: Vec<Line> = list_lines(&self.terminals)
            .into_iter()
            .map(|line| Line::new(Style::Plain, line))
            .collect();
        let hint = if lines.is_empty() {
            "  No terminals. /terminals new starts a shell"
        } else {
            "  /terminals NUMBER opens one, /terminals kill NUMBER ends it"
        };
        lines.push(Line::new(Style::Dim, hint));
        self.print(lines);
    }

    async fn end_terminal(&mut self, number: usize, uri: &ChannelUri) {
        match dispose_terminal(self.chat.live(), uri).await {
            Ok(()) => self.note(&format!("Ended terminal {number}")),
            Err(error) if error.code() == Some(code::NOT_FOUND) => {
                self.note_error(&format!("terminal {number} is gone; /terminals lists the others"));
            }
            Err(error) => self.note_error(&describe(&error)),
        }
    }

    /// Where the agent works, on whichever machine that is.
    async fn start_shell(&mut self) -> anyhow::Result<()> {
        let directory = self.chat.directory();
        let directory = directory.as_ref().and_then(|directory| directory.to_str());
        match directory {
            Some(directory) => {
                let directory = directory.to_owned();
                self.run_terminals(&["new", "--directory", &directory]).await
            }
            None => self.run_terminals(&["new"]).await,
        }
    }

    /// Another program of ours has the screen until it ends.
    async fn run_terminals(&mut self, arguments: &[&str]) -> anyhow::Result<()> {
        let program = std::env::current_exe()?;
        let mut command = tokio::process::Command::new(program);
        command.arg("terminals").args(arguments);
        self.host.pass_to(&mut command);
        // What went wrong it says itself.
        let ended = self.hand_over(|| Ok(command.kill_on_drop(true).spawn()?)).await;
        if let Err(error) = ended {
            self.note_error(&format!("{error:#}"));
        }
        Ok(())
    }

    /// What the first word behind `/terminals` may become.
    pub(super) fn propose_terminals(text: &str, cursor: usize) -> Vec<ArgumentProposal> {
        propose_words(text, cursor, &WORDS)
    }
}

fn parse(typed: &str, listed: &[TerminalEntry]) -> Result<TerminalsRequest, String> {
    let find = |word: &str| {
        let number = word.parse::<usize>();
        let number = number.map_err(|_| format!("{word} is not the number of a terminal"))?;
        let entry = number.checked_sub(1).and_then(|index| listed.get(index)).ok_or_else(|| {
            format!("there is no terminal {number}; /terminals lists those there are")
        })?;
        Ok::<_, String>((number, entry.uri.clone()))
    };
    let words: Vec<&str> = typed.split_whitespace().collect();
    match words.as_slice() {
        [] | ["list"] => Ok(TerminalsRequest::List),
        ["new"] => Ok(TerminalsRequest::New),
        ["kill", word] => find(word).map(|(number, uri)| TerminalsRequest::End { number, uri }),
        [word] if word.starts_with(|c: char| c.is_ascii_digit()) => {
            find(word).map(|(_, uri)| TerminalsRequest::Open(uri))
        }
        _ => {
            Err("use /terminals alone, or with `new`, a number, or `kill` and a number".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use client::terminals::TerminalOwner;

    use super::*;

    #[test]
    fn a_number_means_what_was_listed() {
        let uri = |name: &str| ChannelUri::parse(&format!("ahp-terminal:/{name}")).unwrap();
        let entry = |name: &str| TerminalEntry {
            uri: uri(name),
            title: name.to_owned(),
            is_running: true,
            held_by: TerminalOwner::Me,
        };
        let listed = [entry("a"), entry("b")];
        let parse = |typed: &str| parse(typed, &listed);
        assert_eq!(parse(" "), Ok(TerminalsRequest::List));
        assert_eq!(parse("new"), Ok(TerminalsRequest::New));
        assert_eq!(parse("2"), Ok(TerminalsRequest::Open(uri("b"))));
        let ended = TerminalsRequest::End { number: 1, uri: uri("a") };
        assert_eq!(parse("kill 1"), Ok(ended));
        for (typed, why) in [
            ("3", "there is no terminal 3"),
            ("0", "there is no terminal 0"),
            ("kill 7", "there is no terminal 7"),
            ("kill it", "it is not the number of a terminal"),
            ("kill", "use /terminals alone"),
            ("start", "use /terminals alone"),
            ("new 2", "use /terminals alone"),
        ] {
            let said = parse(typed).unwrap_err();
            assert!(said.contains(why), "{typed}: {said}");
        }
    }
}
