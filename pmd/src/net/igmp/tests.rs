#![allow(clippy::unwrap_used)]

use super::wire::{HostAddress, Message, Query, read};
use super::*;
use crate::net::MacAddr;
use crate::net::Reject;
use IgmpVersion::{V1, V2, V3};
use pollux_mempool::time::Ns;
use pollux_pmd_testkit::frames::{DST_IP, DST_MAC, Frame, SRC_MAC, ethernet, naive_checksum};
use proptest::prelude::*;
use std::net::Ipv4Addr;

mod messages;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const OTHER: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 4);
const SECOND: u64 = 1_000_000_000;

fn own() -> HostAddress {
    HostAddress {
        mac: MacAddr(DST_MAC),
        ip: DST_IP.into(),
    }
}

fn host(groups: &[Ipv4Addr]) -> IgmpHost {
    let mut host = IgmpHost::new(MacAddr(DST_MAC), DST_IP.into(), 1);
    for &group in groups {
        host.join(group, Ns(0)).unwrap();
    }
    host
}

/// A frame with a message and a correct checksum, as a querier or another host sends it.
fn message(to: [u8; 4], bytes: &[u8]) -> Frame {
    let mut body = bytes.to_vec();
    body[2..4].fill(0);
    let sum = naive_checksum(&body).to_be_bytes();
    body[2..4].copy_from_slice(&sum);
    Frame {
        dst: to,
        options: vec![0x94, 4, 0, 0],
        ..Frame::ip(2, body)
    }
}

/// The frame with another time to live.
fn with_ttl(frame: &Frame, ttl: u8) -> Vec<u8> {
    let mut bytes = frame.bytes();
    let at = 14 + 4 * frame.tags.len();
    let end = at + 20 + frame.options.len();
    bytes[at + 8] = ttl;
    bytes[at + 10..at + 12].fill(0);
    let sum = naive_checksum(&bytes[at..end]).to_be_bytes();
    bytes[at + 10..at + 12].copy_from_slice(&sum);
    bytes
}

fn received(to: [u8; 4], bytes: &[u8]) -> Vec<u8> {
    with_ttl(&message(to, bytes), 1)
}

const ALL: [u8; 4] = [224, 0, 0, 1];

/// Queries: of version 1; of version 2 in tenths of a second; of version 3 for 10 s, with
/// robustness 2 and an interval of 125 s, as a router sends them.
fn v1_query() -> Vec<u8> {
    received(ALL, &[0x11, 0, 0, 0, 0, 0, 0, 0])
}

fn v2_query(tenths: u8, group: Ipv4Addr) -> Vec<u8> {
    let to = if group.is_unspecified() {
        ALL
    } else {
        group.octets()
    };
    let [a, b, c, d] = group.octets();
    received(to, &[0x11, tenths, 0, 0, a, b, c, d])
}

fn v3_query(group: Ipv4Addr, sources: &[[u8; 4]]) -> Vec<u8> {
    let to = if group.is_unspecified() {
        ALL
    } else {
        group.octets()
    };
    let [a, b, c, d] = group.octets();
    let fixed = [0x11, 100, 0, 0, a, b, c, d, 2, 125, 0, sources.len() as u8];
    received(to, &[&fixed[..], &sources.concat()].concat())
}

/// Messages that a host sends up to a time: time and bytes behind the IP header.
fn sent(host: &mut IgmpHost, until: Ns) -> Vec<(Ns, Vec<u8>)> {
    let mut all = Vec::new();
    while host.due() <= until {
        let due = host.due();
        host.poll(due, |frame| {
            assert!(frame.len() >= 60);
            let len = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
            all.push((due, frame[38..14 + len].to_vec()));
            true
        });
    }
    all
}

fn messages(host: &mut IgmpHost, until: Ns) -> Vec<Vec<u8>> {
    let sent = sent(host, until);
    sent.into_iter().map(|(_, message)| message).collect()
}

const NONE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
const LEAVES: [u8; 8] = [0x17, 0, 0xf7, 0xfa, 239, 1, 2, 3];
const V2_REPORT: [u8; 8] = [0x16, 0, 0xf8, 0xfa, 239, 1, 2, 3];
const V1_REPORT: [u8; 8] = [0x12, 0, 0xfc, 0xfa, 239, 1, 2, 3];

/// A report of version 3 with one record of a type for each group.
fn v3_report(kind: u8, groups: &[Ipv4Addr]) -> Vec<u8> {
    let mut report = vec![0x22, 0, 0, 0, 0, 0, 0, groups.len() as u8];
    for group in groups {
        report.extend([kind, 0, 0, 0]);
        report.extend(group.octets());
    }
    let sum = naive_checksum(&report).to_be_bytes();
    report[2..4].copy_from_slice(&sum);
    report
}

#[test]
fn a_join_is_repeated_after_a_random_time() {
    let both = [GROUP, OTHER];
    let mut host = host(&both);
    let all = sent(&mut host, Ns(1000 * SECOND));
    let times: Vec<_> = all.iter().map(|(at, _)| at.0).collect();
    assert_eq!(all.len(), 2, "robustness is 2 (section 8.1)");
    assert!(all.iter().all(|(_, sent)| *sent == v3_report(4, &both)));
    assert!(times[0] == 0 && (1..=SECOND).contains(&times[1]));
    let counts = host.counts();
    assert_eq!((counts.groups.get(), counts.joins.get()), (2, 2));
    assert_eq!((counts.reports.get(), counts.answers.get()), (2, 0));
    // Already joined: no report is due.
    host.join(GROUP, Ns(0)).unwrap();
    assert_eq!(host.due(), Ns(u64::MAX));
    // The same seed gives the same times; another seed gives others.
    let repeat = |seed| {
        let mut host = IgmpHost::new(MacAddr(DST_MAC), DST_IP.into(), seed);
        host.join(GROUP, Ns(0)).unwrap();
        sent(&mut host, Ns(SECOND)).last().unwrap().0
    };
    assert_eq!(repeat(1), Ns(times[1]));
    assert_ne!(repeat(2), repeat(1));
}

#[test]
fn queries_are_answered_within_their_time() {
    let both = [GROUP, OTHER];
    let start = 10 * SECOND;
    for seed in 0..50 {
        let mut host = IgmpHost::new(MacAddr(DST_MAC), DST_IP.into(), seed);
        for group in both {
            host.join(group, Ns(0)).unwrap();
        }
        sent(&mut host, Ns(start));
        let asked = [
            (v3_query(NONE, &[]), v3_report(2, &both)),
            (v3_query(GROUP, &[]), v3_report(2, &[GROUP])),
            (v3_query(OTHER, &[[10, 0, 0, 9]]), v3_report(2, &[OTHER])),
        ];
        for (n, (query, answer)) in asked.iter().enumerate() {
            let now = start * (2 + n as u64);
            host.observe(query, Ns(now)).unwrap();
            let all = sent(&mut host, Ns(u64::MAX - 1));
            assert_eq!(all.len(), 1);
            assert!(all[0].0.0 > now && all[0].0.0 <= now + 10 * SECOND);
            assert_eq!(all[0].1, *answer);
        }
        let counts = host.counts();
        assert_eq!((counts.queries.get(), counts.answers.get()), (3, 3));
        // A query for a group that is not joined, which is not answered.
        host.observe(&v3_query(Ipv4Addr::new(239, 9, 9, 9), &[]), Ns(start))
            .unwrap();
        assert_eq!(host.due(), Ns(u64::MAX));
    }
}

#[test]
fn queries_that_overlap_have_one_answer() {
    let mut host = host(&[GROUP]);
    sent(&mut host, Ns(10 * SECOND));
    let now = Ns(20 * SECOND);
    for _ in 0..20 {
        host.observe(&v3_query(NONE, &[]), now).unwrap();
    }
    // Answers for a group may be due before the general one.
    for _ in 0..20 {
        host.observe(&v3_query(GROUP, &[]), now).unwrap();
    }
    let answers = messages(&mut host, Ns(1000 * SECOND));
    assert!(answers.len() <= 2, "{answers:x?}");
    assert!(
        answers
            .iter()
            .all(|answer| *answer == v3_report(2, &[GROUP]))
    );
}

#[test]
fn a_host_without_groups_is_silent() {
    let mut host = host(&[]);
    for query in [v3_query(NONE, &[]), v2_query(100, NONE), v1_query()] {
        host.observe(&query, Ns(0)).unwrap();
        assert_eq!(sent(&mut host, Ns(1000 * SECOND)), []);
    }
    assert!(host.has_left());
}

#[test]
fn an_older_querier_is_followed_until_it_is_gone() {
    let mut host = host(&[GROUP]);
    sent(&mut host, Ns(10 * SECOND));
    let version = |host: &IgmpHost| host.counts().version.get();
    let now = 20 * SECOND;
    host.observe(&v2_query(100, NONE), Ns(now)).unwrap();
    assert_eq!(version(&host), 2);
    assert_eq!(messages(&mut host, Ns(now + 10 * SECOND)), [V2_REPORT]);
    // A query of version 3 is answered in version 2 meanwhile: RFC 3376 section 7.2.1.
    host.observe(&v3_query(NONE, &[]), Ns(now + 20 * SECOND))
        .unwrap();
    assert_eq!(messages(&mut host, Ns(now + 30 * SECOND)), [V2_REPORT]);
    // A version 1 querier takes precedence.
    let later = now + 40 * SECOND;
    host.observe(&v1_query(), Ns(later)).unwrap();
    assert_eq!(version(&host), 1);
    assert_eq!(messages(&mut host, Ns(later + 10 * SECOND)), [V1_REPORT]);
    // Section 8.12: twice 125 s and 10 s after the last of them.
    let (v2_ends, v1_ends) = (now + 260 * SECOND, later + 260 * SECOND);
    assert!(v2_ends < v1_ends);
    host.observe(&v3_query(NONE, &[]), Ns(v1_ends - 1)).unwrap();
    assert_eq!(version(&host), 1);
    host.observe(&v3_query(NONE, &[]), Ns(v1_ends)).unwrap();
    assert_eq!(version(&host), 3);
    let answers = messages(&mut host, Ns(v1_ends + 10 * SECOND));
    assert_eq!(answers, [v3_report(2, &[GROUP])]);
}

#[test]
fn one_who_asks_for_one_group_in_version_2_is_no_querier() {
    let mut host = host(&[GROUP]);
    sent(&mut host, Ns(10 * SECOND));
    host.observe(&v2_query(10, GROUP), Ns(20 * SECOND)).unwrap();
    assert_eq!(host.counts().version.get(), 3, "RFC 3376 section 7.2.1");
    let answers = messages(&mut host, Ns(21 * SECOND));
    assert_eq!(answers, [v3_report(2, &[GROUP])]);
}

#[test]
fn a_report_of_another_host_spares_an_answer_in_version_2_alone() {
    let report = received(GROUP.octets(), &V2_REPORT);
    let mut member = host(&[GROUP, OTHER]);
    sent(&mut member, Ns(10 * SECOND));
    member
        .observe(&v3_query(NONE, &[]), Ns(20 * SECOND))
        .unwrap();
    member.observe(&report, Ns(20 * SECOND)).unwrap();
    let answers = messages(&mut member, Ns(30 * SECOND));
    assert_eq!(answers, [v3_report(2, &[GROUP, OTHER])]);

    member
        .observe(&v2_query(100, NONE), Ns(40 * SECOND))
        .unwrap();
    member.observe(&report, Ns(40 * SECOND)).unwrap();
    let answers = messages(&mut member, Ns(50 * SECOND));
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0][4..], OTHER.octets());
    assert_eq!(member.counts().spared.get(), 1);

    // A switch needs a report from every host at its ports, whichever others are in the group.
    let mut newcomer = host(&[GROUP]);
    newcomer.observe(&v2_query(100, NONE), Ns(0)).unwrap();
    newcomer.observe(&report, Ns(0)).unwrap();
    assert_eq!(messages(&mut newcomer, Ns(0)), [V2_REPORT]);
}

#[test]
fn an_earlier_answer_is_kept_in_version_2() {
    let mut host = host(&[GROUP]);
    host.observe(&v2_query(100, NONE), Ns(0)).unwrap();
    sent(&mut host, Ns(50 * SECOND));
    let now = 60 * SECOND;
    for n in 0..100 {
        host.observe(&v2_query(100, NONE), Ns(now + n)).unwrap();
    }
    let planned = host.due();
    // RFC 2236 section 3: only a query with an earlier deadline changes the time.
    host.observe(&v2_query(1, GROUP), Ns(now + 100)).unwrap();
    let (earliest, latest) = (now + 100, now + 100 + SECOND / 10);
    assert!(host.due() <= planned && (earliest..=latest).contains(&host.due().0));
    assert_eq!(messages(&mut host, Ns(now + 50 * SECOND)), [V2_REPORT]);
}

#[test]
fn leaving_is_told_in_the_words_of_each_version() {
    // Version 3: as many reports as for a join.
    let mut member = host(&[GROUP, OTHER]);
    sent(&mut member, Ns(10 * SECOND));
    member.leave_all(Ns(10 * SECOND));
    assert!(!member.has_left());
    let leaves = sent(&mut member, Ns(100 * SECOND));
    let said = v3_report(3, &[GROUP, OTHER]);
    assert!(leaves.len() == 2 && leaves.iter().all(|(_, leave)| *leave == said));
    assert_eq!(leaves[0].0, Ns(10 * SECOND), "at once");
    assert!(member.has_left() && member.counts().leaves.get() == 2);
    // Version 2: once. Version 1 has no leave message.
    for (query, expected) in [(v2_query(100, NONE), 1), (v1_query(), 0)] {
        let mut member = host(&[GROUP]);
        member.observe(&query, Ns(0)).unwrap();
        sent(&mut member, Ns(20 * SECOND));
        member.leave_all(Ns(20 * SECOND));
        let leaves = messages(&mut member, Ns(100 * SECOND));
        assert_eq!(leaves, vec![LEAVES.to_vec(); expected]);
        assert!(member.has_left());
    }
}

#[test]
fn who_comes_back_before_it_has_left_is_in_again() {
    let mut host = host(&[GROUP]);
    sent(&mut host, Ns(10 * SECOND));
    host.leave_all(Ns(10 * SECOND));
    assert_eq!(
        messages(&mut host, Ns(10 * SECOND)),
        [v3_report(3, &[GROUP])]
    );
    host.join(GROUP, Ns(10 * SECOND)).unwrap();
    let joins = messages(&mut host, Ns(100 * SECOND));
    assert_eq!(joins, [v3_report(4, &[GROUP]), v3_report(4, &[GROUP])]);
    assert_eq!(host.counts().groups.get(), 1);
}

#[test]
fn a_change_of_version_leaves_no_join_untold() {
    let mut host = host(&[GROUP]);
    host.observe(&v2_query(100, NONE), Ns(0)).unwrap();
    // Sent at once, not when the answer is due.
    assert_eq!(messages(&mut host, Ns(0)), [V2_REPORT]);
}

#[test]
fn what_cannot_be_sent_is_tried_again() {
    let mut host = host(&[GROUP]);
    assert!(!host.poll(Ns(0), |_| false));
    let retry = host.due();
    assert!(retry > Ns(0) && retry <= Ns(SECOND));
    assert!(!host.poll(Ns(0), |_| unreachable!("not yet")));
    assert_eq!(messages(&mut host, retry), [v3_report(4, &[GROUP])]);
    let counts = host.counts();
    assert_eq!((counts.unsent.get(), counts.reports.get()), (1, 1));
}

#[test]
fn as_many_groups_as_fit_and_no_others() {
    let group = |n: usize| Ipv4Addr::new(239, 0, 1, n as u8);
    let groups: Vec<_> = (0..MAX_GROUPS).map(group).collect();
    let mut host = host(&groups);
    assert_eq!(
        host.join(group(MAX_GROUPS), Ns(0)),
        Err(GroupError::TooMany)
    );
    assert_eq!(host.join(group(0), Ns(0)), Ok(()), "in it already");
    assert_eq!(messages(&mut host, Ns(0)), [v3_report(4, &groups)]);
    for bad in [[10, 0, 0, 1], [224, 0, 0, 1], [224, 0, 0, 0], [255; 4]] {
        let error = host.join(bad.into(), Ns(0)).unwrap_err();
        assert_eq!(error, GroupError::NotAGroup(bad.into()));
    }
}

#[test]
fn addresses_of_groups() {
    // RFC 1112 section 6.4: 23 bits of the group.
    let address = MacAddr([1, 0, 0x5e, 0x01, 2, 3]);
    assert_eq!(MacAddr::of_group(GROUP), address);
    assert_eq!(MacAddr::of_group(Ipv4Addr::new(224, 129, 2, 3)), address);
    let all = MacAddr([1, 0, 0x5e, 0, 0, 1]);
    let twins = [GROUP, Ipv4Addr::new(224, 129, 2, 3)];
    assert_eq!(group_stations(&twins), [all, address]);
}

/// With arbitrary frames at arbitrary times, the host continues, sends a bounded number of
/// messages, and leaves.
fn survives(frames: &[(Vec<u8>, u64)]) -> Result<(), TestCaseError> {
    let mut host = host(&[GROUP, OTHER]);
    let mut now = Ns(0);
    for (frame, later) in frames {
        now = Ns(now.0.saturating_add(*later));
        let _ = host.observe(frame, now);
        let mut reports = 0;
        while host.poll(now, |frame| (60..=558).contains(&frame.len())) {
            reports += 1;
            prop_assert!(reports <= 6);
        }
    }
    host.leave_all(now);
    let mut reports = 0;
    while !host.has_left() {
        now = host.due();
        host.poll(now, |_| true);
        reports += 1;
        prop_assert!(reports <= 20);
    }
    prop_assert_eq!(host.due(), Ns(u64::MAX));
    Ok(())
}

proptest! {
    #[test]
    fn damaged_messages_do_no_harm(
        frames in proptest::collection::vec((
            0usize..6, proptest::collection::vec((14usize..54, any::<u8>()), 0..3), 0..20 * SECOND,
        ), 0..20),
    ) {
        let of = |(kind, damage, later): (usize, Vec<(usize, u8)>, u64)| {
            let mut frame = [
                v1_query(), v2_query(50, NONE), v2_query(50, GROUP), v3_query(NONE, &[]),
                v3_query(GROUP, &[[1; 4]]), received(GROUP.octets(), &V2_REPORT),
            ][kind].clone();
            for (at, byte) in damage {
                if let Some(place) = frame.get_mut(at) {
                    *place = byte;
                }
            }
            (frame, later)
        };
        survives(&frames.into_iter().map(of).collect::<Vec<_>>())?;
    }

    #[test]
    fn any_message_with_a_right_checksum_does_no_harm(
        bodies in proptest::collection::vec((
            proptest::collection::vec(any::<u8>(), 4..40), any::<bool>(), any::<u64>(),
        ), 0..20),
    ) {
        let of = |(mut body, is_query, later): (Vec<u8>, bool, u64)| {
            if is_query {
                body[0] = 0x11;
            }
            (received(ALL, &body), later % (1000 * SECOND))
        };
        survives(&bodies.into_iter().map(of).collect::<Vec<_>>())?;
    }
}

#[test]
fn frames_of_the_tests_come_from_another_host() {
    assert_eq!(v1_query()[6..12], SRC_MAC);
}
