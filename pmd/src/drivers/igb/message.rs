//! Messages between a virtual function (VF) and its physical one (PF) through their mailbox. The
//! hardware carries 16 words; software defines their meaning. This is the protocol of Linux's igb
//! and igbvf.

use crate::net::MacAddr;

/// Words of 32 bits in the mailbox.
pub const WORDS: usize = 16;

/// A message. The first word holds its kind.
pub type Message = [u32; WORDS];

/// Flags in the first word of a reply: granted, refused, and clear to send, which allows the VF to
/// send further requests. A VF that has not reported its reset may send nothing else.
const ACK: u32 = 1 << 31;
const NACK: u32 = 1 << 30;
const CLEAR_TO_SEND: u32 = 1 << 29;

/// An unsolicited message of the PF: a change, for example of the link.
const NOTICE: u32 = 0x0100;

/// The kind of a message, and a number that goes with it.
const KIND: u32 = 0xffff;
const NUMBER_SHIFT: u32 = 16;
const NUMBER: u32 = 0xff;

const RESET: u32 = 1;
const SET_MAC: u32 = 2;
const SET_MULTICAST: u32 = 3;
const SET_VLAN: u32 = 4;
const SET_LONGEST: u32 = 5;
const SET_PROMISCUOUS: u32 = 6;

/// The number with [`SET_PROMISCUOUS`]: for all groups.
const ALL_GROUPS: u32 = 2;

/// Most groups in a message: two hashes a word, behind the first.
pub const MAX_GROUPS: usize = 30;

/// A request of a VF to its PF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Report a reset; the reply carries the VF's address.
    Reset,
    /// Change the address.
    Mac(MacAddr),
    /// Receive the groups with these hashes in the multicast table ([`group_hash`]), and no others.
    Groups(Groups),
    /// Receive all groups, or stop that.
    AllGroups(bool),
    /// Join or leave a VLAN.
    Vlan {
        /// Its identifier.
        id: u16,
        /// Join; otherwise leave.
        on: bool,
    },
    /// Receive frames up to this length, in bytes with the check sequence.
    Longest(u32),
}

/// A list of hashes, each an index into the multicast table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    hashes: [u16; MAX_GROUPS],
    len: usize,
}

impl Groups {
    /// The hashes of groups; `None` if a message cannot hold that many.
    #[must_use]
    pub fn new(groups: &[MacAddr]) -> Option<Self> {
        let mut list = Self::default();
        for &group in groups {
            *list.hashes.get_mut(list.len)? = group_hash(group);
            list.len += 1;
        }
        Some(list)
    }

    /// The hashes.
    #[must_use]
    pub fn hashes(&self) -> &[u16] {
        self.hashes.get(..self.len).unwrap_or(&[])
    }
}

/// Index of a group in the multicast table: bits 47 to 36 of its address (section 8.10, RCTL with
/// MO = 0).
#[must_use]
pub fn group_hash(group: MacAddr) -> u16 {
    u16::from(group.0[4]) >> 4 | u16::from(group.0[5]) << 4
}

/// An address in two words: its first byte is the lowest of the first.
pub fn mac_words(MacAddr([a, b, c, d, e, f]): MacAddr) -> [u32; 2] {
    [[a, b, c, d], [e, f, 0, 0]].map(u32::from_le_bytes)
}

/// The address in two words.
pub fn words_mac(words: [u32; 2]) -> MacAddr {
    let [[a, b, c, d], [e, f, ..]] = words.map(u32::to_le_bytes);
    MacAddr([a, b, c, d, e, f])
}

impl Request {
    /// The request of a message; `None` for a request that no VF is granted.
    #[must_use]
    pub fn parse(message: &Message) -> Option<Self> {
        let [first, second, third, ..] = *message;
        let number = first >> NUMBER_SHIFT & NUMBER;
        match (first & KIND, number) {
            (RESET, _) => Some(Self::Reset),
            (SET_MAC, 0) => Some(Self::Mac(words_mac([second, third]))),
            (SET_MULTICAST, number) if number as usize <= MAX_GROUPS => {
                let halves = message.iter().skip(1).flat_map(|&word| [word, word >> 16]);
                let mut groups = Groups {
                    len: number as usize,
                    ..Groups::default()
                };
                for (hash, half) in groups.hashes.iter_mut().zip(halves).take(groups.len) {
                    *hash = half as u16 & 0xfff;
                }
                Some(Self::Groups(groups))
            }
            (SET_VLAN, number @ 0..=1) => Some(Self::Vlan {
                id: second as u16 & 0xfff,
                on: number == 1,
            }),
            (SET_LONGEST, 0) => Some(Self::Longest(second)),
            (SET_PROMISCUOUS, 0) => Some(Self::AllGroups(false)),
            (SET_PROMISCUOUS, ALL_GROUPS) => Some(Self::AllGroups(true)),
            _ => None,
        }
    }

    /// The message of the request, and the number of its words.
    #[must_use]
    pub fn message(&self) -> (Message, usize) {
        let mut message = [0; WORDS];
        let [first, second, third, ..] = &mut message;
        let len = match *self {
            Self::Reset => {
                *first = RESET;
                1
            }
            Self::Mac(mac) => {
                *first = SET_MAC;
                [*second, *third] = mac_words(mac);
                3
            }
            Self::Groups(groups) => {
                *first = SET_MULTICAST | (groups.len as u32) << NUMBER_SHIFT;
                let words = message.iter_mut().skip(1);
                for (word, pair) in words.zip(groups.hashes().chunks(2)) {
                    *word = pair
                        .iter()
                        .rev()
                        .fold(0, |word, &hash| word << 16 | u32::from(hash));
                }
                WORDS
            }
            Self::AllGroups(on) => {
                *first = SET_PROMISCUOUS | if on { ALL_GROUPS << NUMBER_SHIFT } else { 0 };
                1
            }
            Self::Vlan { id, on } => {
                *first = SET_VLAN | u32::from(on) << NUMBER_SHIFT;
                *second = id.into();
                2
            }
            Self::Longest(len) => {
                (*first, *second) = (SET_LONGEST, len);
                2
            }
        };
        (message, len)
    }

    /// The PF's reply to this request; `None` if the words reply to another one.
    #[must_use]
    pub fn reply(&self, words: [u32; 3]) -> Option<Reply> {
        let [first, low, high] = words;
        let asked = self.message().0[0] & KIND;
        match first & (ACK | NACK | KIND) {
            word if word == asked | ACK => Some(Reply::Granted(words_mac([low, high]))),
            // A VF whose reset is refused has no address, but may go on.
            word if word == asked | NACK => match first & CLEAR_TO_SEND {
                0 if asked != RESET => Some(Reply::ResetFirst),
                _ => Some(Reply::Refused),
            },
            _ => None,
        }
    }
}

/// A reply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Granted; for a reset, with this address.
    Granted(MacAddr),
    /// Refused.
    Refused,
    /// The VF has not reported its reset, which must be its first request.
    ResetFirst,
}

impl Reply {
    /// The words of the reply to a request whose first word was `asked`, and their number.
    pub(super) fn message(self, asked: u32) -> ([u32; 3], usize) {
        match self {
            // Linux's igbvf wants this word as it is, without "clear to send".
            Self::Granted(mac) if asked & KIND == RESET => {
                let [low, high] = mac_words(mac);
                ([RESET | ACK, low, high], 3)
            }
            Self::Granted(_) => ([asked | ACK | CLEAR_TO_SEND, 0, 0], 1),
            Self::Refused => ([asked | NACK | CLEAR_TO_SEND, 0, 0], 1),
            Self::ResetFirst => ([asked | NACK, 0, 0], 1),
        }
    }
}

/// The notice of a change. Without `is_clear` the VF may send no requests: the PF is stopping, or
/// has not seen the VF's reset.
pub(super) fn notice(is_clear: bool) -> u32 {
    NOTICE | if is_clear { CLEAR_TO_SEND } else { 0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const MAC: MacAddr = MacAddr([2, 0x11, 0x22, 0x33, 0x44, 0x55]);

    #[test]
    fn requests_come_back_as_they_were_sent() {
        let group = |last| MacAddr([1, 0, 0x5e, 0, 0x12, last]);
        let all: Vec<_> = (0..MAX_GROUPS as u8).map(group).collect();
        let groups = |n: usize| Request::Groups(Groups::new(&all[..n]).unwrap());
        let vlan = |on| Request::Vlan { id: 100, on };
        let requests = [
            Request::Reset,
            Request::Mac(MAC),
            groups(0),
            groups(1),
            groups(MAX_GROUPS),
            Request::AllGroups(true),
            Request::AllGroups(false),
            vlan(true),
            vlan(false),
            Request::Longest(1522),
        ];
        for request in requests {
            assert_eq!(Request::parse(&request.message().0), Some(request));
        }
        let too_many = [&all[..], &all[..1]].concat();
        assert_eq!(Groups::new(&too_many), None);
    }

    /// The words that Linux's igbvf writes and reads.
    #[test]
    fn words_are_those_of_linux() {
        assert_eq!(Request::Reset.message().0[..2], [1, 0]);
        assert_eq!(Request::Mac(MAC).message().0[..3], [2, 0x3322_1102, 0x5544]);
        let groups = [[1, 0, 0x5e, 0, 0x12, 0x34], [0x33, 0x33, 0, 0, 0xff, 1]].map(MacAddr);
        let groups = Request::Groups(Groups::new(&groups).unwrap());
        assert_eq!(groups.message().0[..3], [0x0002_0003, 0x001f_0341, 0]);
        let vlan = Request::Vlan { id: 100, on: true };
        assert_eq!(vlan.message().0[..2], [0x0001_0004, 100]);
        let granted = Reply::Granted(MAC);
        assert_eq!(granted.message(1).0, [0x8000_0001, 0x3322_1102, 0x5544]);
        assert_eq!(granted.message(0x0001_0004).0[0], 0xa001_0004);
        assert_eq!(Reply::Refused.message(2).0[0], 0x6000_0002);
        assert_eq!(Reply::ResetFirst.message(2).0[0], 0x4000_0002);
        assert_eq!((notice(true), notice(false)), (0x2000_0100, 0x0100));
    }

    #[test]
    fn a_reply_is_about_its_request() {
        let request = Request::Vlan { id: 1, on: true };
        for reply in [Reply::Refused, Reply::ResetFirst] {
            let (words, _) = reply.message(request.message().0[0]);
            assert_eq!(request.reply(words), Some(reply));
            assert_eq!(Request::Mac(MAC).reply(words), None);
        }
        let (words, _) = Reply::Granted(MAC).message(1);
        assert_eq!(Request::Reset.reply(words), Some(Reply::Granted(MAC)));
        // Linux's igb tells that it is there.
        assert_eq!(request.reply([0x2000_0100, 0, 0]), None);
        assert_eq!(
            Request::Reset.reply([0x4000_0001, 0, 0]),
            Some(Reply::Refused)
        );
    }

    #[test]
    fn a_request_that_is_never_granted_is_not_parsed() {
        let mut message = [u32::MAX; WORDS];
        assert_eq!(Request::parse(&message), None);
        for first in [
            0,
            7,
            0x0001_0002,
            0x001f_0003,
            0x0002_0004,
            0x0001_0006,
            0x0100,
        ] {
            message[0] = first;
            assert_eq!(Request::parse(&message), None, "{first:#x}");
        }
    }
}
