//! What follows a commit: frames go to connections, effects start.

use std::cmp::Reverse;

use kernel::{CloseReason, Effect};

use super::{KernelTask, SetTimer, SteppedInput};
use crate::telemetry::MetricCounter;

impl KernelTask {
    pub(super) fn send_and_start_effects(&mut self, stepped: Vec<SteppedInput>) {
        let mut effects = Vec::new();
        for SteppedInput { output, since, is_telemetry, .. } in stepped {
            let waited_ms = u32::try_from(since.elapsed().as_millis()).unwrap_or(u32::MAX);
            if !is_telemetry {
                self.count(MetricCounter::Frames, output.frames.len() as u64);
            }
            for outgoing in output.frames {
                self.delivery.put(outgoing, waited_ms);
            }
            effects.extend(output.effects);
        }
        self.delivery.hand_over();
        let runtime = self.effects_runtime.clone();
        let _entered = runtime.enter();
        for effect in effects {
            self.start_effect(effect);
        }
    }

    #[expect(clippy::too_many_lines, reason = "a table")]
    fn start_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Read { ticket, query } => self.effects.read(ticket, query),
            Effect::Complete { ticket, complete } => self.effects.complete(ticket, *complete),
            Effect::CheckMessage { ticket, check } => self.effects.check_message(ticket, *check),
            Effect::ChangeModels { ticket, change } => self.effects.change_models(ticket, *change),
            Effect::Fetch { ticket, fetch } => self.effects.fetch(ticket, fetch),
            Effect::StoreBodies { ticket, bodies } => self.effects.store_bodies(ticket, bodies),
            Effect::Compose { ticket, compose } => self.effects.compose(ticket, *compose),
            Effect::StartSession { session, provider, config, working_directories } => {
                let effects = &self.effects;
                effects.start_session(session, provider, config, working_directories);
            }
            Effect::Survey(survey) => self.effects.survey(*survey),
            Effect::ClientAnswered { ask, answer, hold } => {
                self.effects.asker().deliver(ask, answer, hold);
            }
            Effect::RecordRender { session, rendered } => {
                self.effects.record_render(&session, rendered)
            }
            Effect::RunTurn(turn) => {
                self.streams.begin(turn.run);
                self.effects.run_turn(*turn);
            }
            Effect::StopTurn { run } => {
                self.streams.end(run);
                self.effects.stop_turn(run);
            }
            Effect::Reply { run, reply } => self.effects.reply(run, reply),
            Effect::EndChat { chat } => self.effects.end_chat(&chat),
            Effect::UnloadChat { chat } => self.effects.unload_chat(&chat),
            Effect::RemoveWorktree(facts) => self.effects.remove_worktree(facts),
            Effect::CheckWorktree { ticket, facts } => {
                self.effects.check_worktree(ticket, facts);
            }
            Effect::ComputeChangeset(place) => self.effects.compute_changeset(*place),
            Effect::OperateChangeset { ticket, operation } => {
                self.effects.operate_changeset(ticket, *operation);
            }
            Effect::ListSettingValues { ticket, question } => {
                self.effects.list_setting_values(ticket, question);
            }
            Effect::UseFiles { ticket, task } => self.effects.use_files(ticket, *task),
            Effect::BeginWatch { ticket, task } => self.effects.begin_watch(ticket, *task),
            Effect::EndWatch { watch } => self.effects.end_watch(&watch),
            Effect::CallNamed { run, call, id } => self.effects.name_call(run, call, id),
            Effect::SettingsChanged { session, provider, values } => {
                self.effects.tell_settings(&session, &provider, &values)
            }
            Effect::TitleChanged { chat, provider, title } => {
                self.effects.tell_title(&chat, &provider, &title)
            }
            Effect::RequestMcp(request) => self.effects.request_mcp(&request),
            Effect::Authenticate(brought) => self.effects.authenticate(brought),
            Effect::ForgetTokens { principal } => self.effects.forget_tokens(&principal),
            Effect::Terminal { terminal, act } => {
                self.effects.act_on_terminal(terminal, act);
            }
            Effect::WakeAt { timer, at } => self.set_timer(timer, at),
            Effect::Close { peer, why } => self.close(peer, why),
            Effect::Forget { peer } => {
                self.effects.pace.remove_peer(peer);
                self.delivery.remove(peer);
            }
            Effect::Pause { peer } => {
                if let Some(link) = self.delivery.link(peer) {
                    link.pause();
                }
            }
            Effect::Resume { peer } => {
                if let Some(link) = self.delivery.link(peer) {
                    link.resume();
                }
            }
            Effect::Probe => self.effects.probe(),
            Effect::Collect { buckets, before } => self.effects.collect(buckets, before),
            Effect::Configure { values } => self.configure(&values),
        }
    }

    fn set_timer(&mut self, timer: kernel::Timer, at: wire::Timestamp) {
        self.timers_set += 1;
        // No room for more than there are: kernels at rest have one or none, and there may be thousands.
        self.timers.reserve_exact(1);
        self.timers.push(Reverse(SetTimer {
            at: self.clock.instant_of(at),
            number: self.timers_set,
            timer,
        }));
    }

    fn close(&self, peer: kernel::PeerId, why: CloseReason) {
        if let Some(link) = self.delivery.link(peer) {
            let (code, reason) = match why {
                CloseReason::Superseded => (1008, "another connection took this client id"),
                CloseReason::UnsupportedVersion => (1002, "no acceptable protocol version"),
                CloseReason::Policy => (1008, "a limit was exceeded"),
            };
            link.close(code, reason);
        }
    }

    fn configure(&self, values: &wire::Object) {
        if let (Some(hook), Some(level)) = (&self.on_log_level, values.get("logLevel")) {
            hook(level.as_str().unwrap_or("info"));
        }
    }
}
