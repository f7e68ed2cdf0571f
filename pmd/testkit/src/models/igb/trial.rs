//! The drivers against devices that do what they like, and the physical function (PF) against
//! virtual ones (VFs) that do: for tests and fuzzing.

use std::sync::Arc;

use pollux_mempool::Mempool;
use pollux_pmd::bus::{Bus as _, Device as _};
use pollux_pmd::driver::Driver;
use pollux_pmd::driver::filter::Filter;
use pollux_pmd::drivers::igb::functions::{Functions, PfConfig, VfConfig};
use pollux_pmd::drivers::igb::message::{WORDS, mac_words};
use pollux_pmd::drivers::igb::registers::{RAH, RAL, WINDOW};
use pollux_pmd::drivers::igbvf;
use pollux_pmd::net::MacAddr;
use pollux_pmd::port::PortError;
use pollux_pmd::spec::PortSpec;

use super::{Function, MAC, Nic};
use crate::adversary::{self, Adversary, Choices, FaultPlan, Outcome, Trial};
use crate::fake::{FakeDevice, Model as _, World, grant};

type Device = FakeDevice<Adversary<Function>>;

/// Receives, sends, stops and starts with the driver of the PF.
///
/// # Panics
/// If the driver breaks a promise: see [`adversary::run`].
#[must_use]
pub fn physical(
    pool: &Mempool,
    options: &str,
    plan: impl Into<FaultPlan>,
    steps: usize,
) -> Outcome {
    let spec = spec(options);
    let open = |device: Device| pollux_pmd::drivers::igb::open(Arc::new(device), &spec, grant());
    run(pool, &|| Nic::new().function(None), &open, plan, steps)
}

/// The same with the driver of a VF, whose PF is no better than its device: `answers` is the seed
/// of what it says.
///
/// # Panics
/// As for [`physical`].
#[must_use]
pub fn virtual_function(
    pool: &Mempool,
    options: &str,
    answers: u64,
    plan: impl Into<FaultPlan>,
    steps: usize,
) -> Outcome {
    let spec = spec(options);
    let open = |device: Device| igbvf::open(Arc::new(device), &spec, grant());
    let model = || {
        let nic = Nic::new();
        nic.chip().pretend_physical(answers);
        nic.function(Some(0))
    };
    run(pool, &model, &open, plan, steps)
}

#[expect(clippy::expect_used, reason = "a test's tool")]
fn spec(options: &str) -> PortSpec {
    let spec = format!("pci:0000:01:00.0{options}");
    spec.parse().expect("a spec")
}

fn run(
    pool: &Mempool,
    model: &dyn Fn() -> Function,
    open: &dyn Fn(Device) -> Result<Box<dyn Driver>, PortError>,
    plan: impl Into<FaultPlan>,
    steps: usize,
) -> Outcome {
    let arrive = |function: &mut Function, world: &mut World, choices: &mut Choices| {
        let len = match choices.below(8) {
            0..6 => 60 + choices.below(200),
            6 => 1518,
            _ => choices.below(10_000),
        };
        let mut bytes = vec![0xa5; len];
        bytes.iter_mut().take(6).for_each(|byte| *byte = 0xff);
        function.arrive(&bytes, world);
    };
    let trial = Trial {
        model,
        open,
        arrive: &arrive,
        pool,
        shortest: 1,
    };
    adversary::run(&trial, plan, steps)
}

/// Two VFs write what they like into their mailboxes, and the PF serves them.
///
/// # Panics
/// If one comes to have the address of another.
#[expect(clippy::expect_used, reason = "a test's tool")]
pub fn mailboxes(mut choices: Choices, steps: usize) {
    const VFS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];
    let nic = Nic::new();
    let (device, vfs) = (nic.device(None), [0, 1].map(|vf| nic.device(Some(vf))));
    let bus = device.bar(0, WINDOW).expect("its registers");
    let pf = PfConfig {
        mac: MAC,
        filter: Filter::from_spec(&spec("")).expect("a filter"),
        vlans: vec![5],
        longest: 1518,
    };
    let configs = VFS.map(|mac| VfConfig {
        mac,
        fixed: false,
        vlan: None,
    });
    let mut functions = Functions::new(&bus, pf, &configs);
    for _ in 0..steps {
        if choices.is_over() {
            break;
        }
        let vf = choices.below(2);
        let write = |at: usize, value: u32| {
            vfs[vf].with(|function, world| function.write(world, 0, at, 4, value));
        };
        match choices.below(8) {
            0 => write(0, 1 << 26),
            1 => write(0xc40, choices.number() as u32),
            2 => write(choices.below(0x1000) * 4, choices.number() as u32),
            3 => {
                // An address that another function may have.
                let [low, high] = mac_words([MAC, VFS[0], VFS[1]][choices.below(3)]);
                for (at, word) in [(0x800, 2), (0x804, low), (0x808, high), (0xc40, 1)] {
                    write(at, word);
                }
            }
            kind => {
                let number = choices.below(32) as u32;
                write(0x800, choices.below(8) as u32 | number << 16);
                for word in 1..WORDS * usize::from(kind > 5) {
                    write(0x800 + 4 * word, choices.number() as u32);
                }
                write(0xc40, 1);
            }
        }
        functions.serve();
        let entry = |i: usize| (bus.read32(RAL.of(i)), bus.read32(RAH.of(i)) & 0xffff);
        let [own, a, b] = [0, 1, 2].map(entry);
        assert!(own == address(MAC) && own != a && own != b, "{own:x?}");
        assert!(a != b || a == (0, 0), "{a:x?}");
    }
}

fn address(mac: MacAddr) -> (u32, u32) {
    let [low, high] = mac_words(mac);
    (low, high)
}
