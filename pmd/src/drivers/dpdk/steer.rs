//! Flow steering: `rte_flow` rules that direct UDP datagrams to queues by their destination port.

use std::ffi::{CStr, c_void};
use std::ptr;

use pollux_dpdk_sys as dpdk;

use super::device::Device;
use crate::driver::flow::{FlowMatch, FlowRule};

/// Installs the rules in a started device, for IPv4 and, if it supports that, for IPv6. They are
/// removed when it is closed.
///
/// # Errors
/// The device's error for the first rule that it refuses.
pub(super) fn install(device: &Device, rules: &[FlowRule]) -> Result<(), String> {
    let (v4, v6) = (
        dpdk::rte_flow_item_type_RTE_FLOW_ITEM_TYPE_IPV4,
        dpdk::rte_flow_item_type_RTE_FLOW_ITEM_TYPE_IPV6,
    );
    let says = |why| format!("its driver {} says: {why}", device.driver());
    for &rule in rules {
        let FlowMatch::UdpPort(port) = rule.matches;
        create(device, rule, v4).map_err(says)?;
        if let Err(why) = create(device, rule, v6) {
            tracing::warn!(
                "UDP port {} goes to queue {} over IPv4 only: {}",
                port,
                rule.queue,
                says(why)
            );
        }
    }
    Ok(())
}

/// Creates the rule for datagrams over one version of IP.
fn create(device: &Device, rule: FlowRule, ip: dpdk::rte_flow_item_type) -> Result<(), String> {
    let udp = |port: u16| dpdk::rte_flow_item_udp {
        hdr: dpdk::rte_udp_hdr {
            dst_port: port.to_be(),
            ..dpdk::rte_udp_hdr::default()
        },
    };
    let FlowMatch::UdpPort(port) = rule.matches;
    let (spec, mask) = (udp(port), udp(u16::MAX));
    let item = |type_| dpdk::rte_flow_item {
        type_,
        ..dpdk::rte_flow_item::default()
    };
    let pattern = [
        item(dpdk::rte_flow_item_type_RTE_FLOW_ITEM_TYPE_ETH),
        item(ip),
        dpdk::rte_flow_item {
            spec: (&raw const spec).cast(),
            mask: (&raw const mask).cast(),
            ..item(dpdk::rte_flow_item_type_RTE_FLOW_ITEM_TYPE_UDP)
        },
        item(dpdk::rte_flow_item_type_RTE_FLOW_ITEM_TYPE_END),
    ];
    let queue = dpdk::rte_flow_action_queue { index: rule.queue };
    let action = |type_, conf: *const c_void| dpdk::rte_flow_action { type_, conf };
    let actions = [
        action(
            dpdk::rte_flow_action_type_RTE_FLOW_ACTION_TYPE_QUEUE,
            (&raw const queue).cast(),
        ),
        action(
            dpdk::rte_flow_action_type_RTE_FLOW_ACTION_TYPE_END,
            ptr::null(),
        ),
    ];
    let mut attributes = dpdk::rte_flow_attr::default();
    attributes.set_ingress(1);
    let mut error = dpdk::rte_flow_error::default();
    let (attributes, id) = (&raw const attributes, device.id());
    // SAFETY: a device that this process owns; pattern and actions are terminated, and live until
    // the calls have returned.
    let followed = unsafe {
        let (pattern, actions) = (pattern.as_ptr(), actions.as_ptr());
        dpdk::rte_flow_validate(id, attributes, pattern, actions, &raw mut error) == 0
            && !dpdk::rte_flow_create(id, attributes, pattern, actions, &raw mut error).is_null()
    };
    if followed {
        return Ok(());
    }
    // SAFETY: a static text of the driver, or null.
    let why = unsafe { error.message.as_ref().map(|text| CStr::from_ptr(text)) };
    Err(why.map_or("no reason given".into(), |text| {
        text.to_string_lossy().into_owned()
    }))
}
