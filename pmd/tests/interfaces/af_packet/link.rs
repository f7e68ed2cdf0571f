//! Links that go down, come back, or are removed.

use pollux_pmd::RxState;
use pollux_pmd_testkit::netns::Cable;

use crate::common::Port;
use crate::interface;

#[test]
fn traffic_resumes_when_the_link_is_back() {
    interface::traffic_resumes_when_the_link_is_back("af_packet:va,ring=4");
}

#[test]
fn an_interface_that_is_deleted_is_gone() {
    interface::an_interface_that_is_deleted_is_gone("af_packet:va,ring=4");
}

#[test]
fn a_loop_that_sleeps_is_woken_by_a_frame() {
    let Some(net) = Cable::new(1500) else { return };
    let port = Port::open(&net, "af_packet:va");
    interface::a_loop_that_sleeps_is_woken_by_a_frame(port, &net.peer(7000));
}

#[test]
fn a_far_end_that_goes_down_is_a_link_that_is_down() {
    let Some(net) = Cable::new(1500) else { return };
    let mut port = Port::open(&net, "af_packet:va");
    net.b.ip("link set vb down");
    port.wait_for(RxState::Down);
    net.b.ip("link set vb up");
    port.wait_for(RxState::Live);
    port.stop();
}

#[test]
fn a_port_starts_on_a_link_that_is_down() {
    let Some(net) = Cable::new(1500) else { return };
    net.a.ip("link set va down");
    let mut port = Port::open(&net, "af_packet:va");
    assert_eq!(port.started.rx[0].state(), RxState::Down);
    net.a.ip("link set va up");
    port.wait_for(RxState::Live);
    net.peer(7000).send(b"x").unwrap();
    assert_eq!(port.receive(1).len(), 1);
    port.stop();
}

#[test]
fn housekeeping_sees_speed_and_each_change_of_the_link() {
    let Some(net) = Cable::new(1500) else { return };
    let port = Port::open(&net, "af_packet:va");
    let link = || port.started.port.link();
    let before = link();
    // as a veth pair reports it
    assert_eq!(before.to_string(), "up, 10 Gb/s");
    net.b.ip("link set vb down");
    assert!(!link().up);
    net.b.ip("link set vb up");
    let after = link();
    assert!(after.up, "the kernel sets a veth pair's carrier at once");
    assert_eq!(after.changes, before.changes + 2);
    net.a.ip("link delete va");
    assert!(!link().up && link().gone && port.started.port.statistics().len() == 2);
    port.stop();
}
