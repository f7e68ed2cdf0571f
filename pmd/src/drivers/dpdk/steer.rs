//! Steering: rules of `rte_flow` that bring UDP datagrams to queues by their destination port.

use std::ffi::{CStr, c_void};
use std::ptr;

use pollux_dpdk_sys as dpdk;

use super::device::Device;
use crate::driver::steer::Steer;

/// Has a started device follow the rules, for IPv4 and, where it can, for IPv6. They go when it is
/// closed.
///
/// # Errors
/// What the device says about the first rule that it cannot follow.
pub(super) fn install(device: &Device, rules: &[Steer]) -> Result<(), String> {
    let (v4, v6) = (
        dpdk::rte_flow_item_type_RTE_FLOW_ITEM_TYPE_IPV4,
        dpdk::rte_flow_item_type_RTE_FLOW_ITEM_TYPE_IPV6,
    );
    let says = |why| format!("its driver {} says: {why}", device.driver());
    for &rule in rules {
        create(device, rule, v4).map_err(says)?;
        if let Err(why) = create(device, rule, v6) {
            tracing::warn!(
                "UDP port {} goes to queue {} over IPv4 only: {}",
                rule.port,
                rule.queue,
                says(why)
            );
        }
    }
    Ok(())
}

/// Makes the rule for datagrams over one version of IP.
fn create(device: &Device, rule: Steer, ip: dpdk::rte_flow_item_type) -> Result<(), String> {
    let udp = |port: u16| dpdk::rte_flow_item_udp {
        hdr: dpdk::rte_udp_hdr {
            dst_port: port.to_be(),
            ..dpdk::rte_udp_hdr::default()
        },
    };
    let (spec, mask) = (udp(rule.port), udp(u16::MAX));
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
    // SAFETY: a device of ours; pattern and actions have their ends, and live until the calls have
    // returned.
    let followed = unsafe {
        let (pattern, actions) = (pattern.as_ptr(), actions.as_ptr());
        dpdk::rte_flow_validate(id, attributes, pattern, actions, &raw mut error) == 0
            && !dpdk::rte_flow_create(id, attributes, pattern, actions, &raw mut error).is_null()
    };
    if followed {
        return Ok(());
    }
    // SAFETY: a static text of the driver, or none.
    let why = unsafe { error.message.as_ref().map(|text| CStr::from_ptr(text)) };
    Err(why.map_or("no reason given".into(), |text| {
        text.to_string_lossy().into_owned()
    }))
}
