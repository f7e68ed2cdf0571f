//! Resets, from either side.

use std::time::Instant;

use pollux_pmd::RxState;
use pollux_pmd::bus::{Bus, Device};
use pollux_pmd::driver::filter::Filter;
use pollux_pmd::drivers::igb::functions::{Functions, PfConfig};
use pollux_pmd::drivers::igb::message::{Message, Request, WORDS, words_mac};
use pollux_pmd_testkit::fake::FakeBus;

use super::*;

#[test]
fn a_function_waits_for_its_physical_one_no_longer_than_is_reasonable() {
    let world = World::new();
    let open = || {
        let device = world.nic.device(Some(0));
        let error = igbvf::open(device.into(), &spec(""), grant()).err();
        error.unwrap().to_string()
    };
    let error = open();
    assert!(error.contains("has no driver"), "{error}");
    // A driver that never replies: the function is ready, and silent.
    world
        .pf
        .with(|function, world| function.write(world, 0, 0x18, 4, 1 << 14));
    let error = open();
    assert!(error.contains("does not answer"), "{error}");
}

/// A virtual function by its registers, as a driver that is not ours has it.
struct Raw<'a> {
    world: &'a World,
    device: FakeDevice<Function>,
    bus: FakeBus<Function>,
}

impl<'a> Raw<'a> {
    fn new(world: &'a World) -> Self {
        let device = world.vf_device(0);
        let bus = device.bar(0, 0x4000).unwrap();
        Self { world, device, bus }
    }

    fn reset(&self) {
        self.bus.write32(0, 1 << 26);
    }

    /// Writes a message, and does not wait.
    fn write(&self, request: &Request) {
        let (message, len) = request.message();
        self.bus.write32(0xc40, 1 << 2);
        for (i, word) in message.into_iter().take(len).enumerate() {
            self.bus.write32(0x800 + 4 * i, word);
        }
        self.bus.write32(0xc40, 1);
    }

    /// Waits until a message begins with that word, and takes it.
    fn expect(&self, first: u32) -> Message {
        let began = Instant::now();
        while self.bus.read32(0x800) != first {
            assert!(began.elapsed() < Duration::from_secs(30), "{first:#x}");
            self.world.pf.with(Function::tick);
            std::thread::yield_now();
        }
        self.bus.write32(0xc40, 1 << 2);
        let message = std::array::from_fn(|i| self.bus.read32(0x800 + 4 * i));
        self.bus.write32(0xc40, 1 << 1);
        message
    }

    /// Resets the function; returns the address in the reply.
    fn begin(&self) -> MacAddr {
        self.reset();
        self.write(&Request::Reset);
        let [_, low, high, ..] = self.expect(0x8000_0001);
        words_mac([low, high])
    }
}

const _: () = assert!(WORDS == 16);

#[test]
fn an_address_that_a_function_has_chosen_is_not_left_to_the_next_one() {
    let world = World::new();
    let pf = Running::new(world.pf(",vfs=2").unwrap(), 1);
    let vf = Raw::new(&world);
    let given = vf.begin();
    let chosen = MacAddr([2, 0, 0, 0, 7, 7]);
    vf.write(&Request::Mac(chosen));
    vf.expect(0xa000_0002);
    assert_eq!(vf.begin(), given);
    // Another one may have it now.
    let mut other = world.start_vf(1, "");
    world.nic.arrive(&frame(chosen, PEER, 1));
    assert_eq!(other.receive().len(), 0);
    other.stop();
    pf.stop();
}

/// What Linux's igbvf waits for after its reset, where it has nothing more to ask.
#[test]
fn a_function_that_has_read_its_answer_is_told_that_it_may_ask() {
    let world = World::new();
    let pf = Running::new(world.pf(",vfs=1").unwrap(), 1);
    let vf = Raw::new(&world);
    vf.begin();
    vf.expect(0x2000_0100);
    // The link has changed.
    vf.bus.write32(0x800, 0);
    world.nic.chip().plug(false);
    vf.expect(0x2000_0100);
    pf.stop();
}

#[test]
fn functions_are_told_when_their_physical_one_leaves() {
    let world = World::new();
    let pf = Running::new(world.pf(",vfs=1").unwrap(), 1);
    let vf = Raw::new(&world);
    let interrupts = vf.device.interrupts(2).unwrap();
    vf.begin();
    vf.expect(0x2000_0100);
    // Vector 1 is the mailbox's.
    vf.bus.write32(0x1740, 0x80 | 1);
    let told = || {
        vf.device.with(Function::tick);
        rustix::io::read(interrupts.event(1).unwrap(), &mut [0; 8]).is_ok()
    };
    assert!(!told());
    pf.stop();
    assert!(told());
}

/// Its thread writes registers, and must not do so after the reset.
#[test]
fn requests_after_the_stop_get_no_reply() {
    let world = World::new();
    let mut port = Some(Running::new(world.pf(",vfs=1").unwrap(), 1).stop().0);
    let vf = Raw::new(&world);
    for _ in 0..50 {
        let pf = Running::start(port.take().unwrap(), pool());
        vf.reset();
        vf.write(&Request::Reset);
        world.pf.with(Function::tick);
        port = Some(pf.stop().0);
        let enabled = world.pf.bar(0, 0x20000).unwrap().read32(0x1524);
        assert_eq!(enabled, 0);
    }
}

#[test]
fn a_device_that_is_gone_reports_no_events() {
    let world = World::new();
    let bus = world.pf.bar(0, 0x20000).unwrap();
    let pf = PfConfig {
        mac: PEER,
        filter: Filter::from_spec(&spec("")).unwrap(),
        vlans: Vec::new(),
        longest: 1518,
    };
    let vf = igb::functions::VfConfig {
        mac: MacAddr([2, 0, 0, 0, 0, 1]),
        fixed: false,
        vlan: None,
    };
    let mut functions = Functions::new(&bus, pf, &[vf]);
    world.pf.unplug();
    functions.serve();
    let counted: u64 = functions.statistics().iter().map(|(_, n)| n).sum();
    assert_eq!(counted, 0, "{:?}", functions.statistics());
}

#[test]
fn a_reset_of_the_physical_function_is_noticed() {
    let world = World::new();
    let pf = Running::new(world.pf(",vfs=1").unwrap(), 1);
    let mut a = world.start_vf(0, "");
    assert!(a.port.link().up);
    let (pf, _) = pf.stop();
    assert!(!a.port.link().up);
    let mut pf = Running::start(pf, pool_of(&a));
    assert!(!a.port.link().up, "until it begins anew");
    world.nic.arrive(&frame(a.mac(), PEER, 1));
    assert_eq!(a.receive().len(), 0);
    let (port, _) = a.stop();
    let mut a = Running::start(port, pool());
    assert!(a.port.link().up);
    world.nic.arrive(&frame(a.mac(), PEER, 2));
    assert_eq!(a.receive().len(), 1);
    assert_eq!(pf.receive().len(), 0);
    a.stop();
    pf.stop();
}

#[test]
fn a_function_that_its_owner_wants_back_is_down() {
    let world = World::new();
    let device = world.vf_device(0);
    let mut pf = Running::new(world.pf(",vfs=1").unwrap(), 1);
    let vf = igbvf::open(device.clone().into(), &spec(""), grant()).unwrap();
    let mut vf = Running::new(Port::new("vf", vf), 1);
    for (port, device) in [(&mut vf, &device), (&mut pf, &world.pf)] {
        assert!(port.port.link().up);
        device.want_back();
        assert_eq!(port.port.link().to_string(), "gone");
        // Its queues know by that look.
        port.receive();
        assert_eq!(port.rx[0].state(), RxState::Down);
    }
    vf.stop();
    pf.stop();
}

fn pool_of(port: &Running) -> Mempool {
    port.pool.clone()
}

/// Under traffic, over and over.
#[test]
fn a_function_comes_and_goes_and_the_others_do_not_mind() {
    let world = World::new();
    let mut pf = Running::new(world.pf(",vfs=2").unwrap(), 1);
    let mut b = world.start_vf(1, "");
    let mut port = Some(
        world
            .vf(0, "")
            .unwrap()
            .configure(PortConfig::new(pool()))
            .unwrap(),
    );
    for n in 0..20 {
        let mut a = Running::start(port.take().unwrap(), pool());
        for mac in [pf.mac(), a.mac(), b.mac()] {
            world.nic.arrive(&frame(mac, PEER, n));
        }
        assert_eq!(a.receive().len(), 1);
        world.nic.arrive(&frame(a.mac(), PEER, n));
        port = Some(a.stop().0);
        world.nic.arrive(&frame(b.mac(), PEER, n));
        assert_eq!((pf.receive().len(), b.receive().len()), (1, 2));
    }
    b.stop();
    pf.stop();
}
