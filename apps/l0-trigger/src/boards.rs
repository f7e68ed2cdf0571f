//! Warnings about faulty boards during the run.

use pollux_na62::l0::L0Stats;

use crate::config::TriggerConfig;

/// Number of events after which the boards are judged again, by the counts since the last
/// judgement.
const STRETCH: u64 = 1000;
/// Number of judgements without a fault after which the fault is over, and is reported again when
/// it returns.
const OVER: u32 = 10;

/// Text of a board's faults in a sentence.
pub fn explain(fault: &str) -> &'static str {
    match fault {
        "clock" => "its time stamps differ from those of most other boards: check its clock",
        "rate" => {
            "it sends many more events than most other boards: check its trigger, and for noise"
        }
        "late" => {
            "its frames come when their events are closed: check its path, or raise deadline_us"
        }
        "absent" => "most events are without it: check that it runs, and its clock",
        "sequence" => "its sequence numbers begin anew again and again: check its counter",
        "loss" => "frames of it are missing by their sequence numbers: check its path",
        "duplicates" => "its frames come twice: check its path",
        "hot" => "it has more hits than rings explain, which are passed over: check it for noise",
        "identity" => {
            "its frames claim to be of another board, or come on the port of another: check \
             identifiers and cables"
        }
        "unreadable" => {
            "its frames cannot be read, or are of no configured board: check what it sends, and \
             the first stage and the board numbers of the configuration"
        }
        _ => "it is not as the others",
    }
}

/// Warnings given so far for each board.
pub struct BoardWatch {
    /// UDP port and board number of each stream.
    names: Vec<(u16, u8)>,
    /// Recent faults of each board, and the number of judgements since each was last found.
    told: Vec<Vec<(&'static str, u32)>>,
    /// Counters at the last judgement.
    before: L0Stats,
}

impl BoardWatch {
    pub fn new(config: &TriggerConfig) -> Self {
        let ports = config.streams.iter().map(|stream| stream.udp_port);
        let names: Vec<_> = ports.zip(config.boards()).collect();
        let none = L0Stats::new(names.len());
        Self {
            told: vec![Vec::new(); names.len()],
            names,
            before: none.since(&none),
        }
    }

    /// Warns of new faults; for the iterations of housekeeping while the trigger's loop runs.
    pub fn watch(&mut self, stats: &L0Stats) {
        for warning in self.news(stats) {
            tracing::warn!("{warning}");
        }
    }

    fn news(&mut self, stats: &L0Stats) -> Vec<String> {
        let stretch = stats.since(&self.before);
        if stretch.events.built.get() < STRETCH {
            return Vec::new();
        }
        self.before = stats.since(&L0Stats::new(self.names.len()));
        let mut news = Vec::new();
        for (stream, faults) in stats.name_faults(&stretch).into_iter().enumerate() {
            let told = &mut self.told[stream];
            for (fault, quiet) in &mut *told {
                *quiet = if faults.contains(fault) {
                    0
                } else {
                    *quiet + 1
                };
            }
            told.retain(|&(_, quiet)| quiet < OVER);
            for fault in faults {
                if told.iter().all(|&(known, _)| known != fault) {
                    told.push((fault, 0));
                    let ((port, board), why) = (self.names[stream], explain(fault));
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

    /// Adds events, of which a board missed some.
    fn run(stats: &L0Stats, events: u64, missed: u64) {
        stats.events.built.add(events);
        stats.events.shared.add(events);
        for source in &stats.sources {
            source.frames.add(events);
        }
        stats.sources[3].absent.add(missed);
        stats.sources[3].missed.add(missed);
    }

    #[test]
    fn each_fault_of_a_board_is_told_once_and_of_that_board() {
        let stats = L0Stats::new(4);
        let mut watch = BoardWatch::new(&TriggerConfig::default());
        stats.sources[2].skewed.add(7);
        assert!(watch.news(&stats).is_empty(), "too early");
        run(&stats, STRETCH, 0);
        let news = watch.news(&stats);
        assert_eq!(news.len(), 1);
        assert!(news[0].starts_with("stream 2 (UDP port 58915, board 2): clock: "));
        assert!(watch.news(&stats).is_empty());
        stats.sources[2].misrouted.add(STRETCH);
        stats.sources[2].missing.add(STRETCH);
        run(&stats, STRETCH, 0);
        let news = watch.news(&stats);
        assert!(
            news.iter()
                .any(|said| said.contains("board 2): identity: "))
        );
    }

    /// However long it was sound before.
    #[test]
    fn a_board_that_dies_is_named_at_once_and_in_the_report() {
        let stats = L0Stats::new(4);
        let mut watch = BoardWatch::new(&TriggerConfig::default());
        run(&stats, 1_000_000_000, 0);
        assert!(watch.news(&stats).is_empty());
        run(&stats, STRETCH, STRETCH);
        let news = watch.news(&stats);
        assert_eq!(news.len(), 1);
        assert!(news[0].starts_with("stream 3 (UDP port 58916, board 3): absent: "));
        assert_eq!(stats.faults(3), ["absent"]);
        assert!((0..3).all(|stream| stats.faults(stream).is_empty()));
        // Reported again only after it was over.
        for (sound, told) in [(1, 0), (OVER, 1)] {
            for _ in 0..sound {
                run(&stats, STRETCH, 0);
                assert!(watch.news(&stats).is_empty());
            }
            run(&stats, STRETCH, STRETCH);
            assert_eq!(watch.news(&stats).len(), told);
        }
        assert_eq!(stats.faults(3), ["absent"]);
    }

    /// One lost or late frame in a hundred, now and then, is normal on a network.
    #[test]
    fn a_few_frames_in_a_stretch_name_no_board() {
        let stats = L0Stats::new(4);
        let mut watch = BoardWatch::new(&TriggerConfig::default());
        stats.events.built.add(1_000_000);
        stats.sources[1].frames.add(1_000_000);
        watch.news(&stats);
        stats.events.built.add(STRETCH);
        stats.sources[1].frames.add(STRETCH / 8);
        stats.sources[1].missing.add(5);
        assert!(watch.news(&stats).is_empty() && stats.faults(1).is_empty());
    }
}
