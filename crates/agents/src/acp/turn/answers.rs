//! Questions of the agent to people, and their answers on the way back (AG-31 to AG-34).
//!
//! Promises: what was asked about is what is answered; a denial is never an approval. What the session's settings answer is said so. A
//! yes to a call that its agent has changed since is none (AG-31c): the call is asked about again.

use agent_api::{AgentEvent, AgentReply, ToolReady, ToolResult, TurnOver};
use agent_client_protocol_schema::v1 as acp;
use serde_json::{Value, json};
use wire::Object;

use super::super::approvals::{self, ApprovalVerdict, ONLY_READS};
use super::super::connection::{AgentQuestion, AgentQuestionKind};
use super::super::mapper::{
    AskedPermission as AskedCall, Mapper, PermissionChoice, confirmation_options, distinct_options,
    option_for,
};
use super::super::question::{self, AgentForm};
use super::super::rpc::{AcpError, RequestId};
use super::TurnStopped;
use super::commands::CommandCall;
use super::requested_command::RequestedCommand;
use super::run::{AskedUser, Injected, RunningTurn};
use super::writes::AgentWrite;

/// What people said to a question.
pub(super) struct UserAnswer {
    id: RequestId,
    question: AnsweredQuestion,
    reply: Result<AgentReply, TurnOver>,
}

pub(super) enum AnsweredQuestion {
    Permission {
        call: u64,
        options: Vec<acp::PermissionOption>,
    },
    Form {
        form: Box<AgentForm>,
        options: Vec<acp::PermissionOption>,
    },
    /// A write that the agent asks for (AG-51).
    Write {
        call: u64,
        write: Box<AgentWrite>,
    },
    /// A command that the agent asks for (AG-52).
    Command {
        call: u64,
        command: Box<RequestedCommand>,
    },
}

impl AnsweredQuestion {
    /// The call that it is about.
    fn call(&self) -> Option<u64> {
        match self {
            Self::Permission { call, .. }
            | Self::Write { call, .. }
            | Self::Command { call, .. } => Some(*call),
            Self::Form { .. } => None,
        }
    }
}

impl RunningTurn<'_> {
    pub(super) async fn ask(&mut self, question: AgentQuestion) -> Result<(), TurnStopped> {
        let id = question.id;
        match question.kind {
            AgentQuestionKind::Permission(request) => match question::from_permission(&request) {
                Some(form) => {
                    let options = distinct_options(request.options);
                    self.ask_form(id, form, options).await
                }
                None => self.ask_permission(id, *request).await,
            },
            AgentQuestionKind::Elicitation(request) => match question::from_elicitation(&request) {
                Some(form) => self.ask_form(id, form, Vec::new()).await,
                None => {
                    let unknown = AcpError::new(
                        super::super::rpc::INVALID_PARAMS,
                        "a form that greenroom does not know",
                    );
                    self.answer(&id, Err(unknown));
                    Ok(())
                }
            },
            AgentQuestionKind::ReadFile(request) => self.read_file(id, request).await,
            AgentQuestionKind::WriteFile(request) => self.write_file(id, *request).await,
            AgentQuestionKind::Terminal(request) => self.serve_terminal(id, *request).await,
        }
    }

    pub(super) fn answer(&self, id: &RequestId, answer: Result<Value, AcpError>) {
        self.prepared.process.connection.answer(id, &answer);
    }

    async fn ask_permission(
        &mut self,
        id: RequestId,
        request: acp::RequestPermissionRequest,
    ) -> Result<(), TurnStopped> {
        let mut steps = Vec::new();
        let asked = self.mapper.ask(request.tool_call, &mut steps);
        self.carry_out(steps).await?;
        let Some(asked) = asked else {
            self.answer(&id, Ok(cancelled())); // more calls than a turn can have
            return Ok(());
        };
        let options = distinct_options(request.options);
        self.decide_or_ask(id, asked, options).await
    }

    /// What the session's settings do not decide people are asked about.
    pub(super) async fn decide_or_ask(
        &mut self,
        id: RequestId,
        asked: AskedCall,
        options: Vec<acp::PermissionOption>,
    ) -> Result<(), TurnStopped> {
        let config = self.turn.events.settings().await?;
        match self.verdict(&config, &asked).await {
            ApprovalVerdict::Ask => self.ask_people(id, asked, options).await,
            ApprovalVerdict::Allow => self.allow_by_setting(id, asked, &options).await,
            ApprovalVerdict::Refuse => self.refuse_by_setting(id, asked, &options).await,
        }
    }

    /// What the session's settings say. Files that steer tools and agents are asked about all the same (G-63), and so are those
    /// that lie outside.
    pub(super) async fn verdict(&mut self, config: &Object, asked: &AskedCall) -> ApprovalVerdict {
        let verdict = approvals::verdict(config, asked.kind);
        let is_full = config.get(approvals::SETTING).and_then(Value::as_str) == Some("full-access");
        if verdict != ApprovalVerdict::Allow || is_full {
            return verdict;
        }
        if !asked.diffs.is_empty() && self.edits.are_ordinary(&asked.diffs).await {
            ApprovalVerdict::Allow
        } else {
            ApprovalVerdict::Ask
        }
    }

    async fn allow_by_setting(
        &mut self,
        id: RequestId,
        asked: AskedCall,
        options: &[acp::PermissionOption],
    ) -> Result<(), TurnStopped> {
        let once =
            options.iter().find(|option| option.kind == acp::PermissionOptionKind::AllowOnce);
        let Some(once) = once else {
            // A setting grants nothing for longer than once.
            return self.ask_people(id, asked, options.to_vec()).await;
        };
        let call = asked.call;
        let ready = Box::new(Mapper::ready_by_setting(asked.ready));
        self.turn.events.send(AgentEvent::ToolReady { call, ready }).await?;
        self.mapper.decide(call, true);
        let option = once.option_id.to_string();
        self.answer(&id, Ok(selected_outcome(&option)));
        Ok(())
    }

    async fn refuse_by_setting(
        &mut self,
        id: RequestId,
        asked: AskedCall,
        options: &[acp::PermissionOption],
    ) -> Result<(), TurnStopped> {
        let ready = Mapper::ready_by_setting(asked.ready);
        self.refuse(id, asked.call, ready, options, ONLY_READS).await
    }

    /// Nobody is asked: the call is denied, and the user reads why.
    async fn refuse(
        &mut self,
        id: RequestId,
        call: u64,
        ready: ToolReady,
        options: &[acp::PermissionOption],
        why: &str,
    ) -> Result<(), TurnStopped> {
        self.show_refusal(call, ready, why).await?;
        self.mapper.decide(call, false);
        self.answer(&id, Ok(deny(options)));
        Ok(())
    }

    pub(super) async fn show_refusal(
        &mut self,
        call: u64,
        ready: ToolReady,
        why: &str,
    ) -> Result<(), TurnOver> {
        let refused = AgentEvent::ToolRefused {
            call,
            ready: Box::new(ready),
            result: ToolResult::failed(why, why),
        };
        self.turn.events.send(refused).await
    }

    async fn ask_people(
        &mut self,
        id: RequestId,
        asked: AskedCall,
        options: Vec<acp::PermissionOption>,
    ) -> Result<(), TurnStopped> {
        let AskedCall { call, mut ready, diffs, .. } = asked;
        match self.edits.previews(call, &diffs, self.turn.events).await {
            Ok(edits) => ready.edits = edits,
            Err(why) => {
                // Nobody consents to what cannot be shown.
                let why = format!("Refused: what it would change cannot be shown ({why}).");
                return self.refuse(id, call, ready, &options, &why).await;
            }
        }
        ready.options = confirmation_options(&options);
        let event = AgentEvent::ToolReady { call, ready: Box::new(ready) };
        let open = AskedUser::Permission { call, options: options.clone() };
        self.open.insert(id.clone(), open);
        self.wait_for(id, event, AnsweredQuestion::Permission { call, options }).await
    }

    async fn ask_form(
        &mut self,
        id: RequestId,
        form: AgentForm,
        options: Vec<acp::PermissionOption>,
    ) -> Result<(), TurnStopped> {
        let ask = self.next_ask();
        let request = form.request.clone();
        let event = AgentEvent::InputRequested { ask, request };
        self.open.insert(id.clone(), AskedUser::Input(ask));
        let form = Box::new(form);
        self.wait_for(id, event, AnsweredQuestion::Form { form, options }).await
    }

    /// Asks people; the answer comes while the agent may go on.
    pub(super) async fn wait_for(
        &mut self,
        id: RequestId,
        event: AgentEvent,
        question: AnsweredQuestion,
    ) -> Result<(), TurnStopped> {
        let events = self.turn.events;
        let mut asking: futures_util::future::BoxFuture<'_, UserAnswer> = Box::pin(async move {
            let reply = events.ask(event).await;
            UserAnswer { id, question, reply }
        });
        // Begun now, so that it is asked before anything else is said.
        match futures_util::poll!(&mut asking) {
            std::task::Poll::Ready(answer) => self.handle_answer(answer).await,
            std::task::Poll::Pending => {
                self.answers.push(asking);
                Ok(())
            }
        }
    }

    pub(super) async fn handle_answer(&mut self, answer: UserAnswer) -> Result<(), TurnStopped> {
        let UserAnswer { id, question, reply } = answer;
        let reply = reply?;
        let is_this = |open: &AskedUser| open.call() == question.call();
        if !self.open.get(&id).is_some_and(is_this) {
            return self.end_unasked(question.call(), &reply).await;
        }
        self.open.remove(&id);
        match (question, reply) {
            (
                AnsweredQuestion::Permission { call, options },
                AgentReply::ToolDecided { approved, selected_option, suggestion, reason, .. },
            ) => {
                let chosen = selected_option.as_ref().and_then(|option| option["id"].as_str());
                let is_approved = self.decide(&id, &options, approved, chosen);
                self.mapper.decide(call, is_approved);
                if is_approved {
                    Ok(())
                } else {
                    self.pass_on_words(suggestion.as_ref(), reason.as_ref())
                }
            }
            (
                AnsweredQuestion::Form { form, options },
                AgentReply::Answered { response, answers, .. },
            ) => {
                self.answer(&id, Ok(form.answer(&response, &answers, &options)));
                Ok(())
            }
            (
                AnsweredQuestion::Write { call, write },
                AgentReply::ToolDecided { approved: true, .. },
            ) => self.finish_write(id, call, &write).await,
            (
                AnsweredQuestion::Command { call, command },
                AgentReply::ToolDecided { approved: true, .. },
            ) => self.start_command(id, CommandCall::hosts(call), *command).await,
            (
                AnsweredQuestion::Write { .. } | AnsweredQuestion::Command { .. },
                AgentReply::ToolDecided { suggestion, reason, .. },
            ) => {
                self.deny_request(&id);
                self.pass_on_words(suggestion.as_ref(), reason.as_ref())
            }
            (question, _) => {
                self.end_unanswered(&id, question);
                Ok(())
            }
        }
    }

    /// Skipped with its turn, or no answer to this question at all: nobody said yes.
    fn end_unanswered(&mut self, id: &RequestId, question: AnsweredQuestion) {
        match question {
            AnsweredQuestion::Permission { call, options } => {
                self.mapper.decide(call, false);
                self.answer(id, Ok(deny(&options)));
            }
            AnsweredQuestion::Write { .. } | AnsweredQuestion::Command { .. } => {
                self.deny_request(id);
            }
            AnsweredQuestion::Form { form, options } => {
                let cancel = wire::published::state::ChatInputResponseKind::Cancel;
                self.answer(id, Ok(form.answer(&cancel, &Object::new(), &options)));
            }
        }
    }

    /// Answers a permission request by what was decided; whether that allows the call.
    fn decide(
        &self,
        id: &RequestId,
        options: &[acp::PermissionOption],
        approved: bool,
        chosen: Option<&str>,
    ) -> bool {
        let plain = if approved { PermissionChoice::Approve } else { PermissionChoice::Deny };
        let option =
            chosen.and_then(|chosen| option_for(options, PermissionChoice::Option(chosen)));
        // An option that says something else than the decision is not what was decided.
        let option = option.filter(|(_, allows)| *allows == approved);
        match option.or_else(|| option_for(options, plain)) {
            Some((option, allows)) => {
                self.answer(id, Ok(selected_outcome(&option)));
                allows
            }
            None => {
                self.answer(id, Ok(cancelled()));
                false
            }
        }
    }

    /// Words that came with a denial (AG-32): said at once where the agent listens, else when the prompt is over.
    fn pass_on_words(
        &mut self,
        suggestion: Option<&Value>,
        reason: Option<&Value>,
    ) -> Result<(), TurnStopped> {
        let suggestion = suggestion.and_then(|message| message["text"].as_str());
        let reason =
            reason.and_then(|reason| reason.as_str().or_else(|| reason["markdown"].as_str()));
        let Some(words) = suggestion.or(reason).filter(|words| !words.trim().is_empty()) else {
            return Ok(()); // none came
        };
        let blocks = json!([{"type": "text", "text": words}]);
        if self.prepared.process.abilities.steering {
            self.inject(blocks, Injected::Words(words.to_owned()))
        } else {
            self.follow_ups.push(words.to_owned())
        }
        Ok(())
    }

    /// The agent does not ask any more; it has its answer.
    pub(super) async fn withdraw(&mut self, id: &RequestId) -> Result<(), TurnOver> {
        self.commands.free_place(id);
        match self.open.remove(id) {
            Some(AskedUser::Permission { call, .. } | AskedUser::Call(call)) => {
                self.mapper.decide(call, false);
                self.turn.events.send(AgentEvent::ConfirmationWithdrawn { call }).await
            }
            Some(AskedUser::Input(ask)) => {
                self.turn.events.send(AgentEvent::QuestionWithdrawn { ask }).await
            }
            None => Ok(()), // it was answered
        }
    }

    /// A call went on without an answer.
    pub(super) async fn withdraw_call(&mut self, call: u64) -> Result<(), TurnOver> {
        let id = self.open.iter().find(|(_, asked)| asked.call() == Some(call));
        if let Some(id) = id.map(|(id, _)| id.clone()) {
            self.open.remove(&id);
            self.answer(&id, Ok(cancelled()));
            self.turn.events.send(AgentEvent::ConfirmationWithdrawn { call }).await?;
        }
        Ok(())
    }
}

fn selected_outcome(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

fn deny(options: &[acp::PermissionOption]) -> Value {
    match option_for(options, PermissionChoice::Deny) {
        Some((option, _)) => selected_outcome(&option),
        None => cancelled(),
    }
}
