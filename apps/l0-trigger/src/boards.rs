//! Boards that are wrong: named while the run goes on.

use pollux_pipelines::l0::L0Stats;

use crate::config::TriggerConfig;

/// Fewest events before a board is judged: at first some are torn.
const ENOUGH: u64 = 1000;

/// What a board's faults are called, in a sentence.
pub fn explain(fault: &str) -> &'static str {
    match fault {
        "clock" => "its time stamps differ from those of most other boards: check its clock",
        "late" => {
            "its frames come when their events are closed: check its path, or raise deadline_us"
        }
        "absent" => "most events are without it: check that it runs, and its clock",
        "sequence" => "its sequence numbers begin anew again and again: check its counter",
        "loss" => "frames of it are missing by their sequence numbers: check its path",
        "duplicates" => "its frames come twice: check its path",
        "hot" => "it has more hits than rings explain, which are passed over: check it for noise",
        "identity" => {
            "frames on its port claim to be of another board: check identifiers and cables"
        }
        _ => "it is not as the others",
    }
}

/// What has been said of each board.
pub struct BoardWatch {
    /// UDP port and board number of each stream.
    names: Vec<(u16, u8)>,
    told: Vec<Vec<&'static str>>,
}

impl BoardWatch {
    pub fn new(config: &TriggerConfig) -> Self {
        let ports = config.streams.iter().map(|stream| stream.udp_port);
        let names: Vec<_> = ports.zip(config.boards()).collect();
        Self {
            told: vec![Vec::new(); names.len()],
            names,
        }
    }

    /// Warns of what is new; for the rounds of housekeeping while the trigger's loop runs.
    pub fn watch(&mut self, stats: &L0Stats) {
        for warning in self.news(stats) {
            tracing::warn!("{warning}");
        }
    }

    fn news(&mut self, stats: &L0Stats) -> Vec<String> {
        if stats.events.built.get() < ENOUGH {
            return Vec::new();
        }
        let mut news = Vec::new();
        for (stream, told) in self.told.iter_mut().enumerate() {
            let (port, board) = self.names[stream];
            for fault in stats.faults(stream) {
                if !told.contains(&fault) {
                    told.push(fault);
                    let why = explain(fault);
                    news.push(format!(
                        "stream {stream} (UDP port {port}, board {board}): {fault}: {why}"
                    ));
                }
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_of_a_board_is_told_once_and_of_that_board() {
        let stats = L0Stats::new(4);
        let mut watch = BoardWatch::new(&TriggerConfig::default());
        stats.sources[2].skewed.add(7);
        assert!(watch.news(&stats).is_empty(), "too early");
        stats.events.built.add(ENOUGH);
        let news = watch.news(&stats);
        assert_eq!(news.len(), 1);
        assert!(news[0].starts_with("stream 2 (UDP port 58915, board 2): clock: "));
        assert!(watch.news(&stats).is_empty());
        stats.sources[2].misrouted.add(1);
        assert!(watch.news(&stats)[0].contains("identity"));
    }
}
