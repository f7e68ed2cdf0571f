//! XDP programs, assembled by hand: the kernel's Documentation/bpf/standardization, "BPF
//! Instruction Set Architecture".
//!
//! If all frames belong to the port, six instructions pass each to the socket of its queue. With a
//! filter, a parser precedes them. It accepts up to two VLAN tags and reads the same fields as
//! `net::parse`. It checks the protocol and the port only, so that errors in the port's frames are
//! detected, and counted, behind it.

use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::abi;

/// `struct bpf_insn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Instruction {
    code: u8,
    /// Destination in the low four bits, source in the high ones.
    registers: u8,
    offset: i16,
    immediate: i32,
}

const _: () = assert!(size_of::<Instruction>() == 8);

/// Handling of frames that are not the port's.
#[derive(Clone, Copy)]
pub(super) enum Rest<'a> {
    /// Pass them to the kernel.
    Kernel,
    /// Drop them, and count them in the one element of this map.
    Drop(BorrowedFd<'a>),
}

/// Filter of the port's frames.
#[derive(Clone)]
pub(super) enum Filter<'a> {
    /// All frames.
    All,
    /// UDP over IPv4 or IPv6, to these destination ports if any are given. Fragments carry no port,
    /// or not in each fragment: with ports, they do not match.
    Udp {
        ports: Option<RangeInclusive<u16>>,
        rest: Rest<'a>,
    },
}

// Registers: results and scratch, the context kept across, the frame's cursor and end.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const CONTEXT: u8 = 6;
const CURSOR: u8 = 7;
const END: u8 = 8;
const PROBE: u8 = 9;

// Opcodes: class, width or operation, and where the operand is.
const LOAD_BYTE: u8 = 0x71;
const LOAD_HALF: u8 = 0x69;
const LOAD_WORD: u8 = 0x61;
const LOAD_IMMEDIATE_64: u8 = 0x18;
const MOVE: u8 = 0xb7;
const MOVE_REGISTER: u8 = 0xbf;
const ADD: u8 = 0x07;
const ADD_REGISTER: u8 = 0x0f;
const AND: u8 = 0x57;
const SHIFT_LEFT: u8 = 0x67;
const TO_BIG_ENDIAN: u8 = 0xdc;
const ATOMIC_ADD_64: u8 = 0xdb;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const JUMP: u8 = 0x05;
const IF_EQUAL: u8 = 0x15;
const IF_NOT_EQUAL: u8 = 0x55;
const IF_ABOVE: u8 = 0x25;
const IF_BELOW: u8 = 0xa5;
const IF_ABOVE_REGISTER: u8 = 0x2d;

/// `src` of `LOAD_IMMEDIATE_64`: the immediate is a map's descriptor.
const MAP: u8 = 1;
/// As above; what is loaded is the address of the map's first value.
const MAP_VALUE: u8 = 2;
/// Number of the helper function.
const REDIRECT_MAP: i32 = 51;

// Fields of `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE_INDEX: i16 = 16;

const UDP: i32 = 17;

/// Target of a jump.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Tag(u8),
    Network,
    Ipv4,
    Ipv6,
    Ports,
    Ours,
    Rest,
}

#[derive(Default)]
struct Assembler {
    code: Vec<Instruction>,
    labels: Vec<(Label, usize)>,
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn put(&mut self, code: u8, dst: u8, src: u8, offset: i16, immediate: i32) {
        self.code.push(Instruction {
            code,
            registers: dst | src << 4,
            offset,
            immediate,
        });
    }

    /// An operation on a register and an immediate.
    fn number(&mut self, code: u8, dst: u8, immediate: i32) {
        self.put(code, dst, 0, 0, immediate);
    }

    fn load(&mut self, code: u8, dst: u8, src: u8, offset: i16) {
        self.put(code, dst, src, offset, 0);
    }

    fn copy(&mut self, dst: u8, src: u8) {
        self.put(MOVE_REGISTER, dst, src, 0, 0);
    }

    /// Two instructions long.
    fn load_map(&mut self, dst: u8, kind: u8, map: BorrowedFd<'_>) {
        self.put(LOAD_IMMEDIATE_64, dst, kind, 0, map.as_raw_fd());
        self.put(0, 0, 0, 0, 0);
    }

    fn label(&mut self, label: Label) {
        self.labels.push((label, self.code.len()));
    }

    fn jump(&mut self, code: u8, register: u8, immediate: i32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.put(code, register, 0, 0, immediate);
    }

    /// Jumps to `Rest` unless the frame has `bytes` more behind the cursor.
    fn need(&mut self, bytes: i32) {
        self.copy(PROBE, CURSOR);
        self.number(ADD, PROBE, bytes);
        self.jumps.push((self.code.len(), Label::Rest));
        self.put(IF_ABOVE_REGISTER, PROBE, END, 0, 0);
    }

    /// The program: all jumps go forward, and to labels that were set.
    fn finish(mut self) -> Vec<Instruction> {
        for (at, to) in self.jumps {
            let target = self.labels.iter().find(|(label, _)| *label == to);
            debug_assert!(target.is_some_and(|&(_, target)| target > at));
            if let Some(&(_, target)) = target {
                self.code[at].offset = (target - at - 1) as i16;
            }
        }
        self.code
    }
}

/// A 16-bit number as a little-endian machine loads it from the wire.
const fn wire(half: u16) -> i32 {
    half.to_be() as i32
}

/// A program that passes the frames of `filter` to the socket that `sockets` has for their queue.
/// Frames of a queue without a socket are not the port's.
pub(super) fn assemble(sockets: BorrowedFd<'_>, filter: &Filter<'_>) -> Vec<Instruction> {
    assemble_with(sockets, filter, abi::XDP_PASS)
}

fn assemble_with(
    sockets: BorrowedFd<'_>,
    filter: &Filter<'_>,
    without_socket: i32,
) -> Vec<Instruction> {
    let mut asm = Assembler::default();
    let mut context = R1;
    if let Filter::Udp { ports, .. } = filter {
        context = CONTEXT;
        parse(&mut asm, ports.as_ref());
    }
    asm.label(Label::Ours);
    asm.load(LOAD_WORD, R2, context, RX_QUEUE_INDEX);
    asm.load_map(R1, MAP, sockets);
    asm.number(MOVE, R3, without_socket);
    asm.number(CALL, 0, REDIRECT_MAP);
    asm.number(EXIT, 0, 0);
    match filter {
        Filter::All => return asm.finish(),
        Filter::Udp { rest, .. } => {
            asm.label(Label::Rest);
            let verdict = match rest {
                Rest::Kernel => abi::XDP_PASS,
                Rest::Drop(counter) => {
                    asm.load_map(R1, MAP_VALUE, *counter);
                    asm.number(MOVE, R2, 1);
                    asm.put(ATOMIC_ADD_64, R1, R2, 0, 0);
                    abi::XDP_DROP
                }
            };
            asm.number(MOVE, R0, verdict);
            asm.number(EXIT, 0, 0);
        }
    }
    asm.finish()
}

/// Falls through to `Ours`, or jumps to `Rest`.
fn parse(asm: &mut Assembler, ports: Option<&RangeInclusive<u16>>) {
    let ethertype = R2;
    asm.copy(CONTEXT, R1);
    asm.load(LOAD_WORD, CURSOR, R1, DATA);
    asm.load(LOAD_WORD, END, R1, DATA_END);
    asm.need(14);
    asm.load(LOAD_HALF, ethertype, CURSOR, 12);
    asm.number(ADD, CURSOR, 14);
    for tag in 0..2 {
        asm.jump(IF_EQUAL, ethertype, wire(0x8100), Label::Tag(tag));
        asm.jump(IF_NOT_EQUAL, ethertype, wire(0x88a8), Label::Network);
        asm.label(Label::Tag(tag));
        asm.need(4);
        asm.load(LOAD_HALF, ethertype, CURSOR, 2);
        asm.number(ADD, CURSOR, 4);
    }
    asm.label(Label::Network);
    asm.jump(IF_EQUAL, ethertype, wire(0x0800), Label::Ipv4);
    asm.jump(IF_EQUAL, ethertype, wire(0x86dd), Label::Ipv6);
    asm.jump(JUMP, 0, 0, Label::Rest);

    asm.label(Label::Ipv4);
    asm.need(20);
    asm.load(LOAD_BYTE, R3, CURSOR, 9);
    asm.jump(IF_NOT_EQUAL, R3, UDP, Label::Rest);
    if ports.is_some() {
        // A fragment: more fragments follow, or not the first.
        asm.load(LOAD_HALF, R3, CURSOR, 6);
        asm.number(AND, R3, wire(0x3fff));
        asm.jump(IF_NOT_EQUAL, R3, 0, Label::Rest);
        // The header's length, in words.
        asm.load(LOAD_BYTE, R3, CURSOR, 0);
        asm.number(AND, R3, 0xf);
        asm.number(SHIFT_LEFT, R3, 2);
        asm.put(ADD_REGISTER, CURSOR, R3, 0, 0);
        asm.jump(JUMP, 0, 0, Label::Ports);
    } else {
        asm.jump(JUMP, 0, 0, Label::Ours);
    }

    asm.label(Label::Ipv6);
    asm.need(40);
    asm.load(LOAD_BYTE, R3, CURSOR, 6);
    asm.jump(IF_NOT_EQUAL, R3, UDP, Label::Rest);
    if let Some(ports) = ports {
        asm.number(ADD, CURSOR, 40);
        asm.label(Label::Ports);
        asm.need(4);
        asm.load(LOAD_HALF, R3, CURSOR, 2);
        asm.number(TO_BIG_ENDIAN, R3, 16);
        asm.jump(IF_BELOW, R3, i32::from(*ports.start()), Label::Rest);
        asm.jump(IF_ABOVE, R3, i32::from(*ports.end()), Label::Rest);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::fd::AsFd;

    use super::super::bpf::{Map, Program};
    use super::*;

    /// Verdict of the tests' programs for frames that would go to a socket: XDP_TX, which no other
    /// path returns.
    const OURS: i32 = 3;

    struct Judge {
        program: Program,
        counter: Map<u64>,
    }

    impl Judge {
        fn new(ports: Option<RangeInclusive<u16>>, drop: bool) -> Option<Self> {
            let made = Map::of_sockets(1).and_then(|map| Ok((map, Map::of_counter()?)));
            let Ok((sockets, counter)) = made else {
                println!("skipped: BPF maps need CAP_BPF");
                return None;
            };
            let rest = if drop {
                Rest::Drop(counter.as_fd())
            } else {
                Rest::Kernel
            };
            let filter = Filter::Udp { ports, rest };
            let code = assemble_with(sockets.as_fd(), &filter, OURS);
            let program = Program::load(&code).unwrap();
            Some(Self { program, counter })
        }

        fn says(&self, frame: &[u8]) -> i32 {
            self.program.run(frame).unwrap() as i32
        }
    }

    fn ethernet(tags: &[u16], ethertype: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for tag in tags {
            frame.extend([tag.to_be_bytes(), [0, 5]].concat());
        }
        frame.extend(ethertype.to_be_bytes());
        frame.extend(payload);
        frame
    }

    fn ipv4(protocol: u8, options: usize, fragment: u16, port: u16) -> Vec<u8> {
        let mut packet = vec![0x45 + options as u8, 0, 0, 0, 0, 0];
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol]);
        packet.resize(20 + 4 * options, 0x77);
        packet.extend([0x12, 0x34]);
        packet.extend(port.to_be_bytes());
        packet.resize(packet.len() + 4, 0);
        packet
    }

    fn ipv6(next: u8, port: u16) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, next];
        packet.resize(40, 0);
        packet.extend([0x12, 0x34]);
        packet.extend(port.to_be_bytes());
        packet.resize(packet.len() + 4, 0);
        packet
    }

    #[test]
    fn six_instructions_take_all() {
        let Ok(sockets) = Map::of_sockets(1) else {
            println!("skipped: BPF maps need CAP_BPF");
            return;
        };
        assert_eq!(assemble(sockets.as_fd(), &Filter::All).len(), 6);
        let code = assemble_with(sockets.as_fd(), &Filter::All, OURS);
        let program = Program::load(&code).unwrap();
        assert_eq!(program.run(&[0xff; 14]).unwrap() as i32, OURS);
    }

    #[test]
    fn udp_is_told_from_the_rest() {
        for drop in [false, true] {
            let Some(judge) = Judge::new(None, drop) else {
                return;
            };
            let other = if drop { abi::XDP_DROP } else { abi::XDP_PASS };
            let v4 = |protocol| ethernet(&[], 0x0800, &ipv4(protocol, 0, 0x4000, 1));
            assert_eq!(judge.says(&v4(17)), OURS);
            assert_eq!(judge.says(&ethernet(&[], 0x86dd, &ipv6(17, 1))), OURS);
            let fragment = ipv4(17, 0, 0x2001, 1);
            assert_eq!(judge.says(&ethernet(&[], 0x0800, &fragment)), OURS);
            for tags in [&[0x8100][..], &[0x88a8], &[0x88a8, 0x8100]] {
                let tagged = ethernet(tags, 0x0800, &ipv4(17, 0, 0, 1));
                assert_eq!(judge.says(&tagged), OURS, "{tags:x?}");
            }
            let others = [
                v4(1),
                v4(6),
                ethernet(&[], 0x86dd, &ipv6(58, 1)),
                ethernet(&[], 0x0806, &[0; 28]),
                ethernet(&[0x88a8, 0x8100, 0x8100], 0x0800, &ipv4(17, 0, 0, 1)),
                ethernet(&[0x8100], 0x0806, &[0; 28]),
                // Truncated, in each layer.
                ethernet(&[], 0x0800, &[]),
                ethernet(&[], 0x8100, &[0, 5, 8]),
                ethernet(&[], 0x0800, &ipv4(17, 0, 0, 1)[..19]),
                ethernet(&[], 0x86dd, &ipv6(17, 1)[..39]),
            ];
            for frame in &others {
                assert_eq!(judge.says(frame), other, "{frame:x?}");
            }
            let counted = if drop { others.len() as u64 } else { 0 };
            assert_eq!(judge.counter.count().unwrap(), counted);
        }
    }

    #[test]
    fn ports_are_a_range() {
        let Some(judge) = Judge::new(Some(5000..=6000), false) else {
            return;
        };
        for (port, verdict) in [
            (4999, abi::XDP_PASS),
            (5000, OURS),
            (5555, OURS),
            (6000, OURS),
            (6001, abi::XDP_PASS),
            (0x1388_u16.swap_bytes(), abi::XDP_PASS),
        ] {
            for options in [0, 1, 10] {
                let frame = ethernet(&[], 0x0800, &ipv4(17, options, 0x4000, port));
                assert_eq!(judge.says(&frame), verdict, "{port}, {options} words");
            }
            let frame = ethernet(&[0x8100], 0x86dd, &ipv6(17, port));
            assert_eq!(judge.says(&frame), verdict, "{port}");
        }
        for fragment in [0x2000, 0x0001, 0x3fff] {
            let frame = ethernet(&[], 0x0800, &ipv4(17, 0, fragment, 5000));
            assert_eq!(judge.says(&frame), abi::XDP_PASS, "{fragment:x}");
        }
        // The header's length exceeds the frame; truncated between the ports.
        let long = ethernet(&[], 0x0800, &ipv4(17, 10, 0, 5000)[..40]);
        assert_eq!(judge.says(&long), abi::XDP_PASS);
        let cut = ethernet(&[], 0x0800, &ipv4(17, 0, 0, 5000)[..23]);
        assert_eq!(judge.says(&cut), abi::XDP_PASS);
    }
}
