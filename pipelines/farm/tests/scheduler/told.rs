//! What the feeders are told of decisions by messages without events.

use pollux_farm::message::Flow;
use pollux_farm::role::Role;

use super::overdue::{Farm, TIMEOUT};

/// What was sent, in one message that has no event.
fn told(farm: &mut Farm) -> Option<Flow> {
    farm.scheduler.poll(farm.now, &mut farm.out);
    let flow = farm.out.0.pop();
    assert!(farm.out.0.is_empty());
    flow.inspect(|flow| assert_eq!(flow.count, 0))
}

/// A message that has returned is not waited for, though more was decided while it was in the ring.
#[test]
fn the_next_message_need_not_wait_for_one_that_returned() {
    let mut farm = Farm::new();
    let flow = farm.trigger();
    farm.finish(&flow);
    farm.now = farm.now + TIMEOUT;
    let first = told(&mut farm).expect("a message after the time-out");
    assert_eq!(first.decided, 1);
    let flow = farm.trigger();
    farm.finish(&flow);
    // While it is in the ring there is no other.
    farm.scheduler.tell_decided(farm.now);
    assert_eq!(told(&mut farm), None);
    farm.returned(&first);
    farm.scheduler.tell_decided(farm.now);
    let second = told(&mut farm).expect("a message at once");
    assert_eq!((second.mep, second.decided), (first.mep + 1, 2));
    farm.returned(&second);
    farm.scheduler.tell_decided(farm.now + TIMEOUT);
    assert_eq!(told(&mut farm), None);
}
