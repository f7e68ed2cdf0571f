//! What every back end of an endpoint does, for each of them.
//!
//! A back end is a [`rig::Fixture`]: two endpoints that are linked, and a way to drive what has no thread of
//! its own. The tests are functions over a fixture; [`suite`] makes them tests of one.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc
)]

mod failures;
mod hot_path;
mod limits;
mod order;
mod process;
mod random;
mod refusals;
mod rig;
mod roce;
mod shm;
mod transfers;
mod waiting;

/// The tests of a fixture.
macro_rules! suite {
    ($fixture:ty) => {
        $crate::suite!($fixture:
            transfers: {
                puts_and_gets_of_all_sizes
                messages_of_all_sizes
                immediate_payloads
                immediates
                both_sides_get_at_once
                an_unreliable_connection_has_put_and_send
            }
            order: {
                requests_are_done_in_order
                a_get_has_nothing_of_a_later_put
                a_put_sends_what_the_get_before_it_has_read
                a_message_behind_a_get_comes_after_it
                a_put_between_gets_is_executed_between_them
                the_32nd_request_is_the_last
                one_doorbell_for_several
                nothing_before_the_doorbell
                data_are_there_before_their_event
                events_that_are_not_taken_stop_and_lose_nothing
                a_message_waits_for_its_receive
            }
            random: {
                requests_of_all_kinds_both_ways
            }
            refusals: {
                a_wrong_key
                a_range_that_ends_one_byte_late
                an_address_that_wraps
                rights_are_needed
                no_byte_needs_no_key
                own_memory_that_is_not_registered
                a_message_longer_than_its_receive
                what_cannot_be_posted
                what_cannot_be_registered
            }
            limits: {
                an_old_key_opens_nothing_new
                a_key_of_the_other_end_is_no_local_one
                ranges_of_nothing_and_of_too_much
                a_request_beyond_its_memory_moves_nothing
                buffers_are_dropped_at_any_moment
                queue_pairs_are_dropped_at_any_moment
            }
            failures: {
                a_range_is_taken_away_while_it_is_used
                a_failed_queue_pair_flushes_and_its_neighbour_goes_on
                a_destroyed_queue_pair_ends_its_partner_alone
                a_message_that_was_taken_is_done
                a_second_connection_is_refused
            }
            waiting: {
                a_wait_polls_until_its_end
                a_wait_sleeps_until_its_end
                an_event_ends_a_sleep
            }
        );
    };
    ($fixture:ty: $($group:ident: { $($test:ident)* })*) => {
        $(mod $group {
            $(#[test]
            fn $test() {
                $crate::$group::$test::<$fixture>();
            })*
        })*
    };
}
pub(crate) use suite;
