//! When the journal cannot be written (G-15): nothing of the batch was seen, so memory goes back to what the journal holds.
//! Every owner undoes its own changes; channels that changed leave memory and are loaded again when somebody needs them.

use wire::RpcError;
use wire::rpc::code;

use super::{Kernel, Sender, Step};
use crate::frame::Frame;
use crate::io::{Effect, FailureReply, Output, Timer};
use crate::recovery::unwritable_reason;

impl Kernel {
    /// The last batch is in the journal.
    pub fn committed(&mut self) {
        self.uncommitted = 0;
        self.log.commit();
        self.channels.commit();
        self.peers.commit();
        self.active_clients.commit();
        self.recovery.commit();
    }

    /// The outputs since the last commit could not be written. What comes back is to be sent and done instead.
    pub fn rolled_back(&mut self, outputs: Vec<Output>, why: &str) -> Output {
        debug_assert!(
            self.unwritable().is_none(),
            "while nothing can be recorded nothing is tried to be"
        );
        self.uncommitted = 0;
        self.recovery.roll_back(why);
        // While nothing can be recorded no agent works, not even one that is silent.
        let working = self.runs.chats().cloned().collect();
        let mut stopped = Vec::new();
        for (uri, run) in self.channels.roll_back(working) {
            if let Some(run) = run {
                self.runs.end(run.id());
                stopped.push(Effect::StopTurn { run: run.id() });
            }
            // Its turn may be open in the journal; of a session this means nothing and does no harm.
            self.recovery.add_interrupted(uri);
        }
        self.log.roll_back();
        self.peers.roll_back();
        let peers = &self.peers;
        self.active_clients.roll_back(|client_id| peers.is_connected(client_id));
        self.requests.roll_back(|peer| peers.ready(peer).is_some());
        self.queries.outdate();
        self.replays.clear();
        let mut step = Step::new(self);
        step.out.effects = stopped;
        step.send_refusals_instead(outputs, why);
        let retry_ms = step.limits().journal_retry_ms;
        step.wake_in(Timer::Probe, retry_ms);
        let mut out = step.out;
        out.seq = self.log.seq();
        out
    }
}

impl Step<'_> {
    /// Sends what holds without the failed write, and failure replies in place of the rest.
    fn send_refusals_instead(&mut self, outputs: Vec<Output>, why: &str) {
        let committed = self.seq();
        let mut nothing_lost_yet = true;
        for output in outputs {
            // What names a seq that was taken back shows what is lost, whether it wrote or not.
            nothing_lost_yet &= !output.wrote && output.seq <= committed;
            if nothing_lost_yet {
                self.out.frames.extend(output.frames);
                self.out.effects.extend(output.effects);
                continue;
            }
            // What asks for no answer of its own but says something (a pong, a parse error) shows no state: it stands.
            if !output.wrote && output.failure_replies.is_empty() {
                self.out.frames.extend(output.frames);
            }
            for reply in output.failure_replies {
                self.reply_unrecorded(reply, &unwritable_reason(why));
            }
            let effects = output.effects.into_iter();
            self.out.effects.extend(effects.filter(stands_unrecorded));
        }
    }

    pub(super) fn reply_unrecorded(&mut self, reply: FailureReply, reason: &str) {
        let reason = reason.to_owned();
        match reply {
            FailureReply::Answer { peer, id } => {
                let error = RpcError::new(code::INTERNAL_ERROR, reason);
                self.send(peer, Frame::error(&id, &error));
            }
            FailureReply::Refusal { peer, channel, action, origin } => {
                let sender = Sender {
                    peer,
                    origin,
                    as_sent: None, // `action` has it
                };
                self.refuse(&sender, &channel, action, reason);
            }
        }
    }
}

/// Questions, timers and stops stand; what was to follow from a record that is not there does not.
pub(super) fn stands_unrecorded(effect: &Effect) -> bool {
    match effect {
        Effect::RunTurn(_)
        | Effect::EndChat { .. }
        | Effect::Reply { .. }
        | Effect::StartSession { .. }
        | Effect::Survey(_)
        | Effect::RecordRender { .. }
        | Effect::SettingsChanged { .. }
        | Effect::TitleChanged { .. }
        | Effect::RequestMcp(_)
        | Effect::CallNamed { .. }
        | Effect::RemoveWorktree(_)
        | Effect::Terminal { .. }
        | Effect::Configure { .. } => false,
        Effect::Read { .. }
        | Effect::Complete { .. }
        | Effect::ChangeModels { .. }
        | Effect::Fetch { .. }
        | Effect::StoreBodies { .. }
        | Effect::Compose { .. }
        | Effect::CheckMessage { .. }
        | Effect::ListSettingValues { .. }
        | Effect::ClientAnswered { .. }
        | Effect::OperateChangeset { .. }
        | Effect::ComputeChangeset(_)
        | Effect::UseFiles { .. }
        | Effect::BeginWatch { .. }
        | Effect::EndWatch { .. }
        | Effect::CheckWorktree { .. }
        | Effect::Authenticate(_)
        | Effect::ForgetTokens { .. }
        | Effect::UnloadChat { .. }
        | Effect::StopTurn { .. }
        | Effect::WakeAt { .. }
        | Effect::Close { .. }
        | Effect::Forget { .. }
        | Effect::Pause { .. }
        | Effect::Resume { .. }
        | Effect::Probe
        | Effect::Collect { .. } => true,
    }
}
