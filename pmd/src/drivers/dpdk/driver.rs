//! DPDK device as a port.

use std::sync::Arc;

use pollux_dpdk_sys as dpdk;
use pollux_mempool::{IovaMap, Mempool};

use super::device::{Device, Setup};
use super::eal::{self, Eal};
use super::options::Options;
use super::rx::Rx;
use super::shadow::Owner;
use super::stamps::Stamps;
use super::start;
use super::steer;
use super::tx::Tx;
use crate::driver::filter::Multicast;
use crate::driver::flow::FlowRule;
use crate::driver::{Capabilities, Driver, Link, Queues, Statistics};
use crate::grant::MemoryGrant;
use crate::port::{PortConfig, PortError};
use crate::spec::PortSpec;

/// Size of the Ethernet header, which the MTU does not count.
const ETHERNET: usize = 14;

/// Size of two VLAN tags, which the MTU does not count either.
const TAGS: usize = 8;

/// Drivers that enter the kernel for each burst.
const KERNEL_BACKED: &[&str] = &["net_af_packet", "net_pcap", "net_tap"];

/// Drivers that require frames in memory where DPDK has allocated its mbufs, and their
/// replacements. Frames of this crate are elsewhere: the first driver gives the memory around the
/// mbufs to the kernel to write into (`get_base_addr` in rte_eth_af_xdp.c), the second shares with
/// its peer only the memory that DPDK has allocated (`virtio_user/vhost_user.c`).
const OWN_MEMORY: &[(&str, &str)] = &[
    ("net_af_xdp", "af_xdp:INTERFACE"),
    ("net_virtio_user", "vhost-user:PATH"),
];

struct Dpdk {
    spec: String,
    options: Options,
    capabilities: Capabilities,
    /// `None` between runs: buffers that a device has not returned when it is stopped, it returns
    /// when it is closed. Dropped before the shadows.
    device: Option<Arc<Device>>,
    shadows: Option<Arc<Owner>>,
}

/// DPDK is part of the process: the grant covers the writes of its devices.
pub(crate) fn open(spec: &PortSpec, _: MemoryGrant) -> Result<Box<dyn Driver>, PortError> {
    let options = Options::parse(spec)?;
    let refused = |what| PortError::Device {
        port: spec.to_string(),
        what,
    };
    let probed = start::start(options.eal.clone(), options.pci())
        .and_then(|eal| Device::probe(&eal, &options.devargs))
        .map_err(refused)?;
    if let Some((driver, instead)) = (OWN_MEMORY.iter()).find(|own| own.0 == probed.driver()) {
        return Err(refused(format!(
            "{driver} takes frames in memory of DPDK's own alone, and a port's are in its pool: \
             use {instead}"
        )));
    }
    Ok(Box::new(Dpdk {
        spec: spec.to_string(),
        capabilities: capabilities(&probed, &options),
        options,
        device: Some(Arc::new(probed)),
        shadows: None,
    }))
}

fn capabilities(device: &Device, options: &Options) -> Capabilities {
    let info = device.info();
    Capabilities {
        max_rx_queues: info.max_rx_queues,
        max_tx_queues: info.max_tx_queues,
        mac: device.mac(),
        max_frame: usize::from(options.mtu.unwrap_or(device.mtu())) + ETHERNET,
        checksum_offload: false,
        wire_time: options.hardware_stamps,
        recorded: false,
        kernel_backed: KERNEL_BACKED.contains(&device.driver()),
    }
}

/// Addresses at which devices see a pool's memory: physical ones only if EAL has decided so.
fn iova_of(pool: &Mempool, is_pci: bool) -> Result<Option<IovaMap>, String> {
    // SAFETY: reads EAL's decision.
    let physical = unsafe { dpdk::rte_eal_iova_mode() } == dpdk::rte_iova_mode_RTE_IOVA_PA;
    match (is_pci, physical) {
        // The address is unused.
        (false, _) => Ok(None),
        (true, false) => Ok(Some(IovaMap::identity(pool.region()))),
        (true, true) => IovaMap::physical(pool.region())
            .map(Some)
            .map_err(|error| error.to_string()),
    }
}

impl Dpdk {
    fn refused(&self, what: String) -> PortError {
        PortError::Device {
            port: self.spec.clone(),
            what,
        }
    }

    fn unsupported(&self, asked: &str, offered: String) -> PortError {
        PortError::Unsupported {
            port: self.spec.clone(),
            asked: asked.into(),
            offered,
        }
    }

    /// The offload for frames in several buffers, if one buffer is shorter than the longest frame;
    /// refused if the device lacks it, and would drop such frames or worse.
    fn scatter(&self, device: &Device, pool: &Mempool, mtu: u16) -> Result<u64, PortError> {
        let longest = usize::from(mtu) + ETHERNET + TAGS;
        let headroom = dpdk::RTE_PKTMBUF_HEADROOM as usize;
        let room = pool.stride().saturating_sub(headroom);
        let scatter = dpdk::DPDK_RX_OFFLOAD_SCATTER;
        if longest <= room {
            Ok(0)
        } else if device.info().rx_offload_capa & scatter != 0 {
            Ok(scatter)
        } else {
            Err(self.unsupported(
                &format!("an MTU of {mtu} with buffers that hold a frame of {room} B"),
                format!(
                    "no frames in several buffers (its driver is {}): give mtu={} or less, or a \
                     pool with a data_room of {}",
                    device.driver(),
                    room.saturating_sub(ETHERNET + TAGS),
                    pool.data_room() + longest - room
                ),
            ))
        }
    }

    /// Configures all but steering and time stamps, and starts the device.
    fn set_up(
        &self,
        eal: &Eal,
        device: &Device,
        shadows: &Owner,
        config: &PortConfig,
    ) -> Result<(), PortError> {
        let refused = |what| self.refused(what);
        if let Some(mtu) = self.options.mtu {
            device.set_mtu(mtu).map_err(|why| {
                self.unsupported(
                    &format!("an MTU of {mtu}"),
                    format!("{} ({why})", device.mtu()),
                )
            })?;
        }
        let info = device.info();
        let mut rx_offloads = self.scatter(device, &config.pool, device.mtu())?;
        if self.options.hardware_stamps {
            rx_offloads |= dpdk::DPDK_RX_OFFLOAD_TIMESTAMP;
        }
        let setup = Setup {
            rx_queues: config.rx_queues,
            tx_queues: config.tx_queues,
            ring: config.ring,
            rx_offloads,
            tx_offloads: dpdk::DPDK_TX_OFFLOAD_MULTI_SEGS & info.tx_offload_capa,
            mempool: shadows.mempool(),
        };
        device.configure(eal, &setup).map_err(refused)?;
        device.start(eal).map_err(refused)?;
        let filter = &self.options.filter;
        let filtered = device.set_promiscuous(filter.promiscuous);
        if filter.promiscuous {
            filtered.map_err(|why| self.unsupported("promiscuous mode", why))?;
        }
        let grouped = match &filter.multicast {
            Multicast::All => device.receive_all_groups(),
            Multicast::Listed(groups) if groups.is_empty() => Ok(()),
            Multicast::Listed(groups) => device.receive_groups(groups),
        };
        grouped.map_err(|why| self.unsupported("multicast", why))
    }

    fn try_start(&mut self, config: &PortConfig) -> Result<Queues, PortError> {
        let refused = |what| PortError::Device {
            port: self.spec.clone(),
            what,
        };
        let eal = eal::lock();
        let device = match self.device.take() {
            Some(device) => device,
            None => Arc::new(Device::probe(&eal, &self.options.devargs).map_err(refused)?),
        };
        self.device = Some(device.clone());
        let shadows = iova_of(&config.pool, self.options.pci().is_some()).and_then(|iova| {
            if let Some(iova) = &iova {
                device.reach(&eal, config.pool.region(), iova)?;
            }
            Owner::new(&eal, &config.pool, iova.as_ref())
        });
        let shadows = Arc::new(shadows.map_err(refused)?);
        // From here on `stop` releases both together.
        self.shadows = Some(shadows.clone());
        self.set_up(&eal, &device, &shadows, config)?;
        let rules = [&self.options.steer[..], &config.flow_rules].concat();
        steer::install(&device, &rules).map_err(|why| self.unsupported("steering", why))?;
        self.queues(&device, &shadows, config)
    }

    fn queues(
        &self,
        device: &Arc<Device>,
        shadows: &Arc<Owner>,
        config: &PortConfig,
    ) -> Result<Queues, PortError> {
        let stamps = self
            .options
            .hardware_stamps
            .then(|| Stamps::new(device))
            .transpose();
        let stamps = stamps.map_err(|what| self.refused(what))?;
        let info = device.info();
        let most_segments = match info.tx_desc_lim.nb_seg_max {
            _ if info.tx_offload_capa & dpdk::DPDK_TX_OFFLOAD_MULTI_SEGS == 0 => 1,
            0 => usize::from(u8::MAX),
            limit => usize::from(limit),
        };
        let rx = |queue| Rx::new(device.clone(), shadows.clone(), queue, config.ring, stamps);
        let tx = |queue| Tx::new(device.clone(), shadows.clone(), queue, most_segments);
        let tx = (0..config.tx_queues).map(|queue| Ok(Box::new(tx(queue)?) as Box<_>));
        Ok(Queues {
            rx: (0..config.rx_queues)
                .map(|queue| Box::new(rx(queue)) as Box<_>)
                .collect(),
            tx: tx
                .collect::<Result<_, _>>()
                .map_err(|what| self.refused(what))?,
        })
    }
}

impl Driver for Dpdk {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn validate(&self, config: &PortConfig) -> Result<(), PortError> {
        let Some(device) = &self.device else {
            return Ok(());
        };
        let offered = device.info().rx_offload_capa;
        if self.options.hardware_stamps && offered & dpdk::DPDK_RX_OFFLOAD_TIMESTAMP == 0 {
            let offered = format!("none: its driver {} does not stamp frames", device.driver());
            return Err(self.unsupported("timestamps", offered));
        }
        let mtu = self.options.mtu.unwrap_or_else(|| device.mtu());
        self.scatter(device, &config.pool, mtu)?;
        match FlowRule::refusal(&self.options.steer, config.rx_queues) {
            Some((asked, offered)) => Err(self.unsupported(&asked, offered)),
            None => Ok(()),
        }
    }

    fn takes_flow_rules(&self) -> bool {
        true
    }

    fn start(&mut self, config: &PortConfig, _port: u16) -> Result<Queues, PortError> {
        let started = self.try_start(config);
        if started.is_err() {
            // The first error is reported.
            let _ = self.stop();
        }
        started
    }

    fn stop(&mut self) -> Result<(), PortError> {
        self.device = None;
        let held = self.shadows.take().map_or(0, |shadows| {
            shadows.flush();
            shadows.held()
        });
        match held {
            0 => Ok(()),
            held => Err(self.refused(format!("DPDK has kept {held} buffers of the port"))),
        }
    }

    fn link(&self) -> Link {
        self.device
            .as_ref()
            .map_or(Link::DOWN, |device| device.control().link())
    }

    fn statistics(&self) -> Statistics {
        self.device
            .as_ref()
            .map(|device| device.control().statistics())
            .unwrap_or_default()
    }
}
