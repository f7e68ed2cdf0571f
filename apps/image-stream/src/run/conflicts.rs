//! Warns of modules that are taken for one another.

use std::time::{Duration, Instant};

use pollux_images::receive::{ModuleIdentity, SenderConflict, SenderView};

/// How often the senders are looked at.
const INTERVAL: Duration = Duration::from_secs(1);

/// Most warnings of a run: a module whose identity changes with each packet would fill the log.
const MOST: usize = 16;

/// The senders of a run, and what has been said of them.
pub struct Conflicts {
    senders: SenderView,
    ports: Vec<u16>,
    said: Vec<(Option<ModuleIdentity>, ModuleIdentity)>,
    looked: Instant,
}

impl Conflicts {
    /// Stream n is that of the n-th UDP port.
    pub fn new(senders: SenderView, ports: Vec<u16>) -> Self {
        Self {
            senders,
            ports,
            said: Vec::new(),
            looked: Instant::now(),
        }
    }

    /// Warns of new conflicts, at intervals.
    pub fn keep(&mut self) {
        if self.looked.elapsed() >= INTERVAL {
            self.look();
        }
    }

    /// Warns of new conflicts.
    pub fn look(&mut self) {
        self.looked = Instant::now();
        for conflict in self.senders.conflicts() {
            let SenderConflict {
                known,
                other,
                packets,
            } = conflict;
            if self.said.len() < MOST && !self.said.contains(&(known, other)) {
                self.said.push((known, other));
                tracing::warn!("{}", text(known, other, packets, &self.ports));
            }
        }
    }
}

fn text(
    known: Option<ModuleIdentity>,
    other: ModuleIdentity,
    packets: u64,
    ports: &[u16],
) -> String {
    let name = |module: ModuleIdentity| {
        let port = ports.get(usize::from(module.stream.0));
        let port = port.map_or_else(String::new, |port| format!(", UDP port {port}"));
        format!(
            "module {} (row {}, column {}{port})",
            module.module_id, module.row, module.column
        )
    };
    let known = known.map_or_else(|| "another module".into(), name);
    format!(
        "{packets} packets of {} are refused as module-conflict: those of {known} came first. One of them \
         has a wrong identifier, position or port; start again when that is mended",
        name(other)
    )
}

#[cfg(test)]
mod tests {
    use pollux_pmd::stream::StreamId;

    use super::*;

    #[test]
    fn both_modules_are_named() {
        let module = |module_id| ModuleIdentity {
            stream: StreamId(1),
            module_id,
            row: 2,
            column: 3,
        };
        let said = text(Some(module(7)), module(8), 5, &[50001, 50002]);
        for part in [
            "5 packets of module 8 (row 2, column 3, UDP port 50002)",
            "those of module 7 (row 2",
        ] {
            assert!(said.contains(part), "{said}");
        }
        assert!(text(None, module(8), 1, &[]).contains("of another module came first"));
    }
}
