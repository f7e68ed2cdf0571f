//! What a card has is one driver's, and lies in memory that this driver has made: whatever safe code
//! that wraps or shares the device does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pollux_card_model::{SimulatedCard, WireFrame};
use pollux_mempool::{IovaMap, MemoryRegion};
use pollux_pmd::bus::{BusError, Device, DmaMapping, DmaMemory, Ids, Interrupts};
use pollux_pmd::drivers::card::{Form, StreamConfig, Streams, StreamsConfig, open};
use pollux_pmd::event::{ClopConfig, RegionOptions};
use pollux_pmd::grant::MemoryGrant;
use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpEndpoint, UdpTemplate};
use pollux_pmd::port::{Port, PortConfig};
use pollux_pmd::spec::PortSpec;
use pollux_pmd_testkit::fake::{FakeBus, FakeClock, FakeDevice, grant};
use pollux_pmd_testkit::models::card::{Card, Outside};

use super::{MAC, pool};

fn spec() -> PortSpec {
    let spec = "pci:0000:03:00.0,ip=10.0.0.1,mac=02:00:00:00:00:01";
    spec.parse().unwrap()
}

/// Bytes of the one list.
const LIST: usize = 64 << 10;

fn config() -> StreamsConfig {
    let clop = ClopConfig {
        buffers: 1,
        size: LIST,
        ..ClopConfig::default()
    };
    let stream = StreamConfig {
        port: 0,
        udp: 5000,
        form: Form::Payload,
        clop,
    };
    StreamsConfig {
        streams: vec![stream],
        ..StreamsConfig::default()
    }
}

/// A datagram for the stream comes, and then nothing until its buffer is announced.
fn arrive(device: &FakeDevice<Card>) {
    let end = |mac, socket: &str| UdpEndpoint {
        mac: MacAddr(mac),
        socket: socket.parse().unwrap(),
    };
    let from = end([2, 0, 0, 0, 0, 9], "10.0.0.2:7");
    let template = UdpTemplate::new(from, end(MAC, "10.0.0.1:5000"));
    let mut frame = [7; UDP_HEADERS + 100];
    assert_eq!(template.write(&mut frame, 100), Some(frame.len()));
    device.with(|card, world| {
        card.0.put(0, WireFrame::good(frame));
        world.now += 2_000_000;
        card.0.advance(&mut Outside(world), 2_000_000_000);
    });
}

/// A device that is honest but for one thing: what it says of memory.
struct Lying(FakeDevice<Card>, Lie);

type Lie = Box<dyn Fn(&Arc<MemoryRegion>, DmaMapping) -> DmaMapping + Send + Sync>;

impl DmaMemory for Lying {
    fn map(&self, region: &Arc<MemoryRegion>, grant: MemoryGrant) -> Result<DmaMapping, BusError> {
        Ok((self.1)(region, self.0.map(region, grant)?))
    }
}

impl Device for Lying {
    type Bus = FakeBus<Card>;
    type Clock = FakeClock<Card>;

    fn name(&self) -> &str {
        self.0.name()
    }

    fn ids(&self) -> Ids {
        self.0.ids()
    }

    fn bar(&self, index: u8, needed: usize) -> Result<FakeBus<Card>, BusError> {
        self.0.bar(index, needed)
    }

    fn config(&self, at: u16) -> Result<u32, BusError> {
        self.0.config(at)
    }

    fn set_config(&self, at: u16, value: u32) -> Result<(), BusError> {
        self.0.set_config(at, value)
    }

    fn interrupts(&self, vectors: u16) -> Result<Interrupts, BusError> {
        self.0.interrupts(vectors)
    }

    fn reset(&self) -> Result<(), BusError> {
        self.0.reset()
    }

    fn is_gone(&self) -> bool {
        self.0.is_gone()
    }

    fn memory(&self) -> RegionOptions {
        self.0.memory()
    }

    fn clock(&self) -> FakeClock<Card> {
        self.0.clock()
    }
}

#[test]
fn a_list_lies_in_the_memory_that_was_made_for_it() {
    let pool = pool(64, 2048);
    let device = FakeDevice::new(Card::new());
    // It says that the list's memory is the pool's.
    let others = pool.region().clone();
    let lie = move |region: &Arc<MemoryRegion>, real: DmaMapping| {
        if region.len() != LIST {
            return real;
        }
        let addresses = real.addresses().clone();
        DmaMapping::new(others.clone(), addresses, move || real.end())
    };
    let lying = Arc::new(Lying(device.clone(), Box::new(lie)));
    let mut streams = Streams::start(lying, &spec(), &config(), grant()).unwrap();
    arrive(&device);
    let announced = streams.poll().unwrap();
    let region = pool.region();
    let into = announced.buffer.bytes().as_ptr().addr();
    let into = into.wrapping_sub(region.as_ptr().addr().get());
    assert!(into >= region.len(), "{into} bytes into a pool");
}

#[test]
fn one_card_has_one_driver() {
    let device = Arc::new(FakeDevice::new(Card::new()));
    let start = || Streams::start(device.clone(), &spec(), &config(), grant());
    let first = start().unwrap();
    let refused = |error: String| assert!(error.contains("on it already"), "{error}");
    refused(start().err().unwrap().to_string());
    let port = open(device.clone(), &spec(), grant());
    refused(port.err().unwrap().to_string());
    // The card then has no other owner, and its state is unchanged.
    drop(first);
    let port = open(device.clone(), &spec(), grant()).unwrap();
    refused(start().err().unwrap().to_string());
    drop(port);
    drop(start().unwrap());
}

/// One mapping after the other is at an address that is no multiple of 64: no event queue, ring or page
/// there reaches the card.
#[test]
fn memory_at_misaligned_bus_addresses_is_refused() {
    let mut refused = Vec::new();
    for wrong in 0.. {
        let device = FakeDevice::new(Card::new());
        let mapped = Arc::new(AtomicUsize::new(0));
        let count = mapped.clone();
        let lie = move |region: &Arc<MemoryRegion>, real: DmaMapping| {
            if count.fetch_add(1, Ordering::Relaxed) != wrong {
                return real;
            }
            let base = real.addresses().iova(0, 64).unwrap().0 + 32;
            let addresses = IovaMap::offset(region, base).unwrap();
            DmaMapping::new(region.clone(), addresses, move || real.end())
        };
        let driver = open(Arc::new(Lying(device, Box::new(lie))), &spec(), grant()).unwrap();
        let config = PortConfig::new(pool(64, 2048));
        let port = Port::new("lying", driver).configure(config).unwrap();
        if let Err(error) = port.start() {
            refused.push(error.to_string());
        }
        if mapped.load(Ordering::Relaxed) <= wrong {
            break;
        }
    }
    for what in ["event queue", "transmit ring", "page of 4 KiB"] {
        let of = |error: &&String| error.contains(what) && error.contains("not a multiple of");
        assert!(
            refused.iter().any(|error| of(&error)),
            "{what}: {refused:?}"
        );
    }
}
