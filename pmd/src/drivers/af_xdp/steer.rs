//! The NIC's flow classifier and channels: linux/ethtool.h.

use std::io;

use super::abi;
use crate::driver::flow::{FlowMatch, FlowRule};
use crate::drivers::interface::{Control, Interface};

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// Receive and transmit queues of the interface, if its driver reports them.
pub(super) fn queues(control: &Control, interface: &Interface) -> Option<(u16, u16)> {
    let mut channels = Channels {
        command: abi::ETHTOOL_GCHANNELS,
        ..Channels::default()
    };
    // SAFETY: the structure of ETHTOOL_GCHANNELS.
    unsafe { control.ethtool(interface.index, &mut channels) }.ok()?;
    let count = |own: u32| u16::try_from(own.saturating_add(channels.combined)).ok();
    count(channels.rx).zip(count(channels.tx))
}

/// `struct ethtool_tcpip4_spec` in its union of 52 bytes, and `struct ethtool_flow_ext`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Flow {
    addresses: [u32; 2],
    ports: [[u8; 2]; 2],
    rest: [u8; 40],
    extension: [u8; 20],
}

/// `struct ethtool_rxnfc`, with space for the locations of as many rules.
#[repr(C)]
struct Classifier<const RULES: usize> {
    command: u32,
    flow_type: u32,
    data: u64,
    rule_flow_type: u32,
    value: Flow,
    mask: Flow,
    padding: u32,
    queue: u64,
    location: u32,
    padding_2: u32,
    rules: u32,
    places: [u32; RULES],
    padding_3: u32,
}

const _: () = assert!(
    size_of::<Flow>() == 72
        && std::mem::offset_of!(Classifier<1>, value) == 20
        && std::mem::offset_of!(Classifier<1>, queue) == 168
        && std::mem::offset_of!(Classifier<1>, location) == 176
        && std::mem::offset_of!(Classifier<1>, rules) == 184
        && std::mem::offset_of!(Classifier<1>, places) == 188
        && size_of::<Classifier<1>>() == 200
);

/// Maximum number of existing rules that are examined to find a free location.
const MOST: usize = 8191;

impl<const RULES: usize> Classifier<RULES> {
    fn new(command: u32) -> Self {
        let nothing = Flow {
            addresses: [0; 2],
            ports: [[0; 2]; 2],
            rest: [0; 40],
            extension: [0; 20],
        };
        Self {
            command,
            flow_type: 0,
            data: 0,
            rule_flow_type: 0,
            value: nothing,
            mask: nothing,
            padding: 0,
            queue: 0,
            location: 0,
            padding_2: 0,
            rules: 0,
            places: [0; RULES],
            padding_3: 0,
        }
    }

    fn ask(&mut self, control: &Control, interface: i32) -> io::Result<()> {
        // SAFETY: the structure of the classifier's commands; `rules` is the number of locations
        // behind it, and no command gets more than RULES.
        unsafe { control.ethtool(interface, self) }
    }
}

/// Rules in the NIC's classifier, which are removed on drop.
pub(super) struct Rules {
    control: Control,
    interface: i32,
    places: Vec<u32>,
}

impl Rules {
    /// Inserts rules that direct the datagrams to each port to its queue.
    pub(super) fn insert(
        interface: &Interface,
        first_queue: u16,
        steer: &[FlowRule],
    ) -> io::Result<Self> {
        let mut rules = Self {
            control: Control::new()?,
            interface: interface.index,
            places: Vec::new(),
        };
        for rule in steer {
            let mut request = Classifier::<1>::new(abi::ETHTOOL_SRXCLSRLINS);
            request.rule_flow_type = abi::UDP_V4_FLOW;
            let FlowMatch::UdpPort(port) = rule.matches;
            request.value.ports[1] = port.to_be_bytes();
            request.mask.ports[1] = [0xff; 2];
            request.queue = u64::from(first_queue + rule.queue);
            request.location = rules.free_place()?;
            request.ask(&rules.control, rules.interface)?;
            rules.places.push(request.location);
        }
        Ok(rules)
    }

    /// Location of a new rule: the driver's choice, or the first free location of its table.
    fn free_place(&self) -> io::Result<u32> {
        let mut request = Classifier::<0>::new(abi::ETHTOOL_GRXCLSRLCNT);
        request.ask(&self.control, self.interface)?;
        if request.data & abi::RX_CLS_LOC_SPECIAL != 0 {
            return Ok(abi::RX_CLS_LOC_ANY);
        }
        let mut list = Box::new(Classifier::<MOST>::new(abi::ETHTOOL_GRXCLSRLALL));
        list.rules = request.rules.min(MOST as u32);
        list.ask(&self.control, self.interface)?;
        let taken = &list.places[..(list.rules as usize).min(MOST)];
        let table = u32::try_from(list.data).unwrap_or(u32::MAX);
        (0..table)
            .find(|place| !taken.contains(place))
            .ok_or_else(|| io::ErrorKind::StorageFull.into())
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        for &place in &self.places {
            let mut request = Classifier::<0>::new(abi::ETHTOOL_SRXCLSRLDEL);
            request.location = place;
            if let Err(error) = request.ask(&self.control, self.interface) {
                tracing::warn!("rule {place} of the NIC's classifier stays: {error}");
            }
        }
    }
}
