//! A device has one driver in a process, as long as anything of the first is left that could write its
//! registers.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use pollux_pmd::bus::Device;
use pollux_pmd::driver::Driver;
use pollux_pmd::drivers::{e1000e, igb, igbvf, virtio};
use pollux_pmd::port::{Port, PortConfig, PortError, StartedPort};
use pollux_pmd::{MemoryGrant, PortSpec};
use pollux_pmd_testkit::fake::{FakeDevice, Model as _, grant};
use pollux_pmd_testkit::models::igb::{Function, Nic};
use pollux_pmd_testkit::models::{e1000e::Card, virtio_net};

type Open<D> = fn(Arc<D>, &PortSpec, MemoryGrant) -> Result<Box<dyn Driver>, PortError>;

fn has_one_driver<D: Device>(device: D, open: Open<D>) {
    let (spec, device) = ("pci:0000:03:00.0", Arc::new(device));
    let open = || open(device.clone(), &spec.parse().unwrap(), grant());
    let is_refused = |whose: &str| {
        let error = open().err().map(|error| error.to_string());
        let error = error.unwrap_or_default();
        assert!(error.contains("on it already"), "{whose}: {error:?}");
    };
    let config = PortConfig {
        ring: 64,
        ..PortConfig::new(pollux_pmd_testkit::ports::pool(1024, 2048))
    };
    let port = Port::new(spec, open().unwrap());
    is_refused("a driver");
    let StartedPort { port, rx, tx } = port.configure(config).unwrap().start().unwrap();
    is_refused("a port");
    drop(port);
    is_refused("queues of a port that was dropped");
    drop(rx);
    is_refused("a transmit queue");
    drop(tx);
    drop(open().unwrap());
}

#[test]
fn an_82574_has_one_driver() {
    has_one_driver(FakeDevice::new(Card::new([2, 0, 0, 0, 0, 1])), e1000e::open);
}

#[test]
fn an_82576_has_one_driver() {
    has_one_driver(Nic::new().device(None), igb::open);
}

#[test]
fn a_virtual_function_has_one_driver() {
    let nic = Nic::new();
    let pf = nic.device(None);
    let spec = "pci:0000:01:00.0,vfs=1".parse().unwrap();
    let driver = igb::open(Arc::new(pf.clone()), &spec, grant()).unwrap();
    let config = PortConfig {
        ring: 64,
        ..PortConfig::new(pollux_pmd_testkit::ports::pool(1024, 2048))
    };
    let _running = Port::new("pf", driver)
        .configure(config)
        .unwrap()
        .start()
        .unwrap();
    let device = nic.device(Some(0));
    device.with(|function, _| {
        function.meanwhile(move || {
            pf.with(Function::tick);
            // So that the thread that answers has its turn, on a busy machine too.
            std::thread::sleep(std::time::Duration::from_micros(5));
        });
    });
    has_one_driver(device, igbvf::open);
}

#[test]
fn a_virtio_device_has_one_driver() {
    has_one_driver(
        FakeDevice::new(virtio_net::VirtioNet::new(virtio_net::ALL)),
        virtio::pci::open,
    );
}
