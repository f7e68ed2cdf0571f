//! IGMP host: reports membership changes and answers queries.

use std::net::Ipv4Addr;
use std::sync::Arc;

use pollux_mempool::time::Ns;

use super::wire::{self, Frame, HostAddress, Message, Query, Record};
use super::{GroupError, IgmpVersion, MAX_GROUPS, check_group};
use crate::count::Count;
use crate::net::{MacAddr, Reject};

/// No event is scheduled.
const NEVER: Ns = Ns(u64::MAX);

const SECOND: u64 = 1_000_000_000;

/// Number of reports of a change, unless a querier sets another (RFC 3376 section 8.1).
const ROBUSTNESS: u8 = 2;
/// Time between two queries, unless a querier sets another (section 8.2).
const QUERY_INTERVAL: Ns = Ns(125 * SECOND);
/// Longest time between two reports of one change (section 8.11; RFC 2236 section 8.10).
const V3_REPEAT: Ns = Ns(SECOND);
const V2_REPEAT: Ns = Ns(10 * SECOND);
/// Delay before a frame that could not be sent is retried.
const RETRY: Ns = Ns(10_000_000);

/// IGMP counters of a host, readable by any thread.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct IgmpCounts {
    /// Current number of groups.
    pub groups: Count,
    /// Current version: 3 until a query of an older querier is received.
    pub version: Count,
    /// Groups joined.
    pub joins: Count,
    /// Groups left.
    pub leaves: Count,
    /// Queries received.
    pub queries: Count,
    /// Reports sent, leaves included.
    pub reports: Count,
    /// Of them, reports that answer a query.
    pub answers: Count,
    /// Reports suppressed because another host had reported the group (versions 1 and 2).
    pub spared: Count,
    /// Ignored messages: a bad checksum, too short, or forwarded by a router.
    pub bad: Count,
    /// Reports that found no transmit buffer; they are retried.
    pub unsent: Count,
}

/// Membership of one port in multicast groups.
///
/// It processes the IGMP messages that the port receives ([`observe`](Self::observe)), and produces
/// those that are due ([`poll`](Self::poll)). It uses version 3, or the older version of a querier
/// on the network until no query of that version has arrived for some minutes. All sources of a
/// group are wanted: a query about some of them is answered for the whole group, which includes
/// them.
///
/// Nothing allocates after [`new`](Self::new). All times are of one clock with any origin.
#[derive(Debug)]
pub struct IgmpHost {
    address: HostAddress,
    /// At most [`MAX_GROUPS`].
    members: Vec<Membership>,
    /// When the answer to a general query is due, in version 3.
    general: Option<Ns>,
    version: IgmpVersion,
    querier: Querier,
    random: Random,
    /// When the next frame is due.
    due: Ns,
    counts: Arc<IgmpCounts>,
}

#[derive(Debug)]
struct Membership {
    group: Ipv4Addr,
    /// The group is left as soon as the leave has been reported.
    leaving: bool,
    /// The change (joined, or leaving) has been reported at least once.
    reported: bool,
    /// When the change is reported next.
    change: Option<Ns>,
    /// Remaining reports of the change.
    reports: u8,
    /// When the answer to a query is due.
    answer: Option<Ns>,
}

/// State of the querier.
#[derive(Debug)]
struct Querier {
    robustness: u8,
    interval: Ns,
    /// Until when a querier of version 1, and of version 2, counts as present.
    v1_until: Ns,
    v2_until: Ns,
}

impl IgmpHost {
    /// A host with addresses `mac` and `ip`, in no group. `seed` determines its random delays:
    /// hosts with different seeds do not answer at the same moment.
    #[must_use]
    pub fn new(mac: MacAddr, ip: Ipv4Addr, seed: u64) -> Self {
        let counts = Arc::<IgmpCounts>::default();
        counts.version.set(IgmpVersion::V3 as u64);
        Self {
            address: HostAddress { mac, ip },
            members: Vec::with_capacity(MAX_GROUPS),
            general: None,
            version: IgmpVersion::V3,
            querier: Querier {
                robustness: ROBUSTNESS,
                interval: QUERY_INTERVAL,
                v1_until: Ns(0),
                v2_until: Ns(0),
            },
            random: Random(seed),
            due: NEVER,
            counts,
        }
    }

    /// Joins a group: the first report is due at once. No effect if the group is already joined.
    ///
    /// # Errors
    /// [`GroupError`] if the address is invalid or the table is full.
    pub fn join(&mut self, group: Ipv4Addr, now: Ns) -> Result<(), GroupError> {
        check_group(group)?;
        let full = self.members.len() == MAX_GROUPS;
        let known = self.members.iter_mut().find(|member| member.group == group);
        let reports = self.querier.robustness;
        match known {
            Some(member) if !member.leaving => return Ok(()),
            Some(member) => member.change_to(false, now, reports),
            None if full => return Err(GroupError::TooMany),
            None => self.members.push(Membership {
                group,
                leaving: false,
                reported: false,
                change: Some(now),
                reports,
                answer: None,
            }),
        }
        self.counts.joins.add(1);
        self.reschedule();
        Ok(())
    }

    /// Leaves all groups: the first report is due at once. [`has_left`](Self::has_left) tells when
    /// the last report has been produced.
    pub fn leave_all(&mut self, now: Ns) {
        let reports = self.querier.robustness;
        for member in self.members.iter_mut().filter(|member| !member.leaving) {
            member.change_to(true, now, reports);
            self.counts.leaves.add(1);
        }
        self.general = None;
        self.reschedule();
    }

    /// Whether the host is in no group and has reported all leaves.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.members.is_empty()
    }

    /// When [`poll`](Self::poll) has a frame to send.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Ns {
        self.due
    }

    /// Counters.
    #[must_use]
    pub fn counts(&self) -> Arc<IgmpCounts> {
        Arc::clone(&self.counts)
    }

    /// Processes a frame that the port received.
    ///
    /// # Errors
    /// Why the frame was ignored; [`Reject::NotForUs`] if it is not IGMP for this host. Other
    /// errors are counted as [`bad`](IgmpCounts::bad).
    pub fn observe(&mut self, frame: &[u8], now: Ns) -> Result<(), Reject> {
        match wire::read(frame, self.address) {
            Ok(Message::Query(query)) => self.take_query(&query, now),
            Ok(Message::Report(group)) => self.take_report(group, now),
            Ok(Message::Other) => return Err(Reject::NotForUs),
            Err(reject) => {
                self.counts.bad.add((reject != Reject::NotForUs).into());
                return Err(reject);
            }
        }
        self.reschedule();
        Ok(())
    }

    /// Produces the frame that is due at `now`, if any, and passes it to `send`, which returns
    /// `false` if it could not send it; the frame is then retried later. Returns whether a frame
    /// was sent; more may be due then.
    pub fn poll(&mut self, now: Ns, send: impl FnOnce(&[u8]) -> bool) -> bool {
        if now < self.due {
            return false;
        }
        self.follow_querier(now);
        let Some((frame, what)) = self.next_frame(now) else {
            self.reschedule();
            return false;
        };
        if !send(frame.bytes()) {
            self.counts.unsent.add(1);
            self.due = Ns(now.0.saturating_add(RETRY.0));
            return false;
        }
        self.counts.reports.add(1);
        match what {
            What::Changes => self.changes_sent(now),
            What::General => {
                self.counts.answers.add(1);
                self.general = None;
            }
            What::Answers => {
                self.counts.answers.add(1);
                let answered = self.members.iter_mut().filter(|m| m.answers(now));
                answered.for_each(|member| member.answer = None);
            }
            What::Report(group) => self.report_sent(group, now),
            What::Leave(group) => self.members.retain(|member| member.group != group),
        }
        self.reschedule();
        true
    }

    /// The frame that is due first, and its content.
    fn next_frame(&mut self, now: Ns) -> Option<(Frame, What)> {
        match self.version {
            IgmpVersion::V3 => self.next_v3(now),
            IgmpVersion::V2 => self.next_older(now),
            IgmpVersion::V1 => {
                // Leaves are not reported in this version: the routers time the group out.
                self.members.retain(|member| !member.leaving);
                self.next_older(now)
            }
        }
    }

    fn next_v3(&mut self, now: Ns) -> Option<(Frame, What)> {
        let members = self.members.iter();
        let changes = members.filter(|member| member.changes(now));
        let changes = changes.map(|member| {
            let record = if member.leaving {
                Record::Leave
            } else {
                Record::Join
            };
            (record, member.group)
        });
        if let Some(frame) = Frame::v3(self.address, changes) {
            return Some((frame, What::Changes));
        }
        let joined = |member: &&Membership| !member.leaving;
        let record = |member: &Membership| (Record::Joined, member.group);
        if self.general.is_some_and(|at| at <= now) {
            let all = self.members.iter().filter(joined).map(record);
            if let Some(frame) = Frame::v3(self.address, all) {
                return Some((frame, What::General));
            }
            // A host without groups is silent.
            self.general = None;
        }
        let answers = self.members.iter().filter(|member| member.answers(now));
        Some((Frame::v3(self.address, answers.map(record))?, What::Answers))
    }

    fn next_older(&self, now: Ns) -> Option<(Frame, What)> {
        let mut members = self.members.iter();
        let member = members.find(|member| member.changes(now) || member.answers(now))?;
        let (address, group) = (self.address, member.group);
        Some(if member.leaving {
            (Frame::leave(address, group), What::Leave(group))
        } else {
            let frame = Frame::report(address, self.version, group);
            (frame, What::Report(group))
        })
    }

    /// Call it when a report of version 3 has reported all due changes.
    fn changes_sent(&mut self, now: Ns) {
        // One time for all, so that they share the next report as well.
        let next = self.random.within(V3_REPEAT, now);
        for member in self.members.iter_mut().filter(|member| member.changes(now)) {
            member.reported_once(next);
        }
        self.members
            .retain(|member| !member.leaving || member.change.is_some());
    }

    /// Call it when a report of version 1 or 2, which is complete for its group, was sent.
    fn report_sent(&mut self, group: Ipv4Addr, now: Ns) {
        let next = self.random.within(V2_REPEAT, now);
        let members = self.members.iter_mut();
        for member in members.filter(|member| member.group == group) {
            if member.answer.take().is_some() {
                self.counts.answers.add(1);
            }
            if member.changes(now) {
                member.reported_once(next);
            }
        }
    }

    fn take_query(&mut self, query: &Query, now: Ns) {
        self.counts.queries.add(1);
        self.querier.heard(query, now);
        self.follow_querier(now);
        let mut at = self.random.within(query.max_response, now);
        if self.version == IgmpVersion::V3 {
            // RFC 3376 section 5.2.
            if self.general.is_some_and(|general| general <= at) {
                return;
            }
            if query.group.is_none() {
                self.general = Some(at);
                return;
            }
        }
        let latest = Ns(now.0.saturating_add(query.max_response.0));
        let asked = |group| query.group.is_none_or(|asked| asked == group);
        for member in &mut self.members {
            if !member.leaving && asked(member.group) {
                member.answer_by(at, latest, self.version);
                // Each group has a random delay of its own.
                at = self.random.within(query.max_response, now);
            }
        }
    }

    /// Another host is in the group: in versions 1 and 2 a router needs no further report.
    fn take_report(&mut self, group: Ipv4Addr, now: Ns) {
        self.follow_querier(now);
        if self.version == IgmpVersion::V3 {
            return;
        }
        // But a switch forwards frames only to hosts whose report it has seen: each host reports
        // once.
        let mut members = self.members.iter_mut();
        let member = members.find(|m| m.group == group && m.reported && !m.leaving);
        if let Some(member) = member {
            let spared = member.answer.take().is_some() | member.change.take().is_some();
            self.counts.spared.add(spared.into());
        }
    }

    /// Uses the version of the oldest querier that is present. Messages planned in another version
    /// are cancelled (RFC 3376 section 7.2.1), except changes that have not been reported yet.
    fn follow_querier(&mut self, now: Ns) {
        let version = self.querier.version(now);
        if version == self.version {
            return;
        }
        self.version = version;
        self.counts.version.set(version as u64);
        self.general = None;
        for member in &mut self.members {
            member.answer = None;
            if member.reported {
                member.change = None;
            }
        }
        self.members
            .retain(|member| !member.leaving || member.change.is_some());
    }

    /// Determines what is due next.
    fn reschedule(&mut self) {
        let joined = self.members.iter().filter(|member| !member.leaving);
        self.counts.groups.set(joined.count() as u64);
        let times = self.members.iter().flat_map(|m| [m.change, m.answer]);
        let times = times.chain([self.general]).flatten();
        self.due = times.min().unwrap_or(NEVER);
    }
}

/// Content of a frame.
enum What {
    /// All changes that are due.
    Changes,
    /// All groups.
    General,
    /// All groups whose answers are due.
    Answers,
    /// This group is joined.
    Report(Ipv4Addr),
    /// This group has been left.
    Leave(Ipv4Addr),
}

impl Membership {
    fn changes(&self, now: Ns) -> bool {
        self.change.is_some_and(|at| at <= now)
    }

    fn answers(&self, now: Ns) -> bool {
        self.answer.is_some_and(|at| at <= now)
    }

    fn change_to(&mut self, leaving: bool, now: Ns, reports: u8) {
        (self.leaving, self.reported, self.answer) = (leaving, false, None);
        (self.change, self.reports) = (Some(now), reports);
    }

    /// Its change has been reported; the next report is due at `next`, if any remains.
    fn reported_once(&mut self, next: Ns) {
        self.reported = true;
        self.reports = self.reports.saturating_sub(1);
        self.change = (self.reports > 0).then_some(next);
    }

    /// Schedules an answer for `at`. In version 3 the earlier of two times holds; in the others the
    /// planned time, unless it is too late for this query (RFC 2236 section 3).
    fn answer_by(&mut self, at: Ns, latest: Ns, version: IgmpVersion) {
        let holds = match version {
            IgmpVersion::V3 => at,
            _ => latest,
        };
        if self.answer.is_none_or(|planned| planned > holds) {
            self.answer = Some(at);
        }
    }
}

impl Querier {
    fn heard(&mut self, query: &Query, now: Ns) {
        // RFC 3376 section 8.12.
        let asks_again = u64::from(self.robustness).saturating_mul(self.interval.0);
        let until = Ns(now
            .0
            .saturating_add(asks_again.saturating_add(query.max_response.0)));
        match query.version {
            IgmpVersion::V1 => self.v1_until = until,
            // The answer to a leave may come from a host that is no longer the querier.
            IgmpVersion::V2 if query.group.is_none() => self.v2_until = until,
            IgmpVersion::V2 => {}
            IgmpVersion::V3 => {
                self.robustness = query.robustness.unwrap_or(ROBUSTNESS);
                self.interval = query.interval.unwrap_or(QUERY_INTERVAL);
            }
        }
    }

    fn version(&self, now: Ns) -> IgmpVersion {
        if now < self.v1_until {
            IgmpVersion::V1
        } else if now < self.v2_until {
            IgmpVersion::V2
        } else {
            IgmpVersion::V3
        }
    }
}

/// Pseudo-random numbers, reproducible from a seed: SplitMix64 (Steele, Lea and Flood, OOPSLA
/// 2014).
#[derive(Debug)]
struct Random(u64);

impl Random {
    /// A random time after `now`, by `longest` at most.
    fn within(&mut self, longest: Ns, now: Ns) -> Ns {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // The high half of the product: uniform from 0 to `longest` - 1.
        let after = (u128::from(z) * u128::from(longest.0)) >> 64;
        Ns(now.0.saturating_add(after as u64 + 1))
    }
}
