//! Which process a command was: enough to say after a crash whether it still runs.

use serde::{Deserialize, Serialize};

use crate::session;

/// A process, by what no other has: its number is given again, but not to one that started at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRecord {
    pub pid: i32,
    /// In ticks since the machine was started.
    pub started: u64,
}

impl ProcessRecord {
    /// Whether it still runs. A process of before the machine was started again does not.
    pub fn is_running(self) -> bool {
        session::is_alive(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let own = session::record_of(rustix::process::getpid());
        assert!(own.is_running());
        let earlier = ProcessRecord { started: own.started + 1, ..own };
        assert!(!earlier.is_running());
        assert!(!ProcessRecord { pid: 0, started: 0 }.is_running());
        let text = serde_json::to_string(&own).unwrap();
        assert_eq!(serde_json::from_str::<ProcessRecord>(&text).unwrap(), own);
    }
}
