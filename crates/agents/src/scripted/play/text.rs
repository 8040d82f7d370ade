//! The steps that send text.

use std::time::Duration;

use agent_api::{AgentEvent, TextKind};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::super::step::Stream;
use super::{ScenePlayer, SceneStop};

/// Largest streamed chunk: the number may come from a user's message.
const CHUNK_BYTES_MAX: u64 = 16 * 1_024 * 1_024;

impl ScenePlayer<'_> {
    pub(super) async fn send_text(
        &self,
        kind: TextKind,
        chunks: &[String],
    ) -> Result<(), SceneStop> {
        let part = self.part_number(0);
        self.send(AgentEvent::PartOpened { part, kind }).await?;
        for (n, chunk) in chunks.iter().enumerate() {
            self.pause_before_chunk(n).await;
            self.send(AgentEvent::Text { part, text: self.scope.substitute(chunk) }).await?;
        }
        Ok(())
    }

    pub(super) async fn send_stream(&self, stream: &Stream) -> Result<(), SceneStop> {
        let part = self.part_number(0);
        let chunks = self.number(&stream.chunks, "stream.chunks")?;
        let size = self.number(&stream.size, "stream.size")?;
        let every_ms = self.number(&stream.every_ms, "stream.every_ms")?;
        let size = match usize::try_from(size) {
            Ok(bytes) if size <= CHUNK_BYTES_MAX => bytes,
            _ => {
                let what = format!("a chunk has at most {CHUNK_BYTES_MAX} bytes");
                return Err(self.play_error("stream.size", &what));
            }
        };
        self.send(AgentEvent::PartOpened { part, kind: TextKind::Markdown }).await?;
        // Ticks keep their rate however long a send takes; a pause of zero is no interval.
        let mut ticks = (every_ms > 0).then(|| interval(Duration::from_millis(every_ms)));
        if let Some(ticks) = &mut ticks {
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        for n in 0..chunks {
            match &mut ticks {
                Some(ticks) => drop(ticks.tick().await),
                None => tokio::task::consume_budget().await,
            }
            let first = if n == 0 { stream.first.as_str() } else { "" };
            let text = format!("{first}{}{}", chunk(n, size), stream.end);
            self.send(AgentEvent::Text { part, text }).await?;
        }
        Ok(())
    }

    /// Pauses before the `n`th chunk like typing, or at least gives others a chance.
    pub(super) async fn pause_before_chunk(&self, n: usize) {
        match self.pace {
            Some(pause) if n > 0 => sleep(pause).await,
            _ => tokio::task::consume_budget().await,
        }
    }
}

/// `size` bytes of ASCII that begin with the number of the chunk, so that a reader can see a gap.
fn chunk(n: u64, size: usize) -> String {
    let mut text = format!("{n} ");
    text.truncate(size);
    let filler = b"abcdefghijklmnopqrstuvwxyz ".iter().cycle();
    text.extend(filler.take(size - text.len()).map(|byte| char::from(*byte)));
    text
}
