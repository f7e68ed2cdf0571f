//! Required behaviour of every simulated card: one suite for the software card and for the RTL.
//!
//! [`conformance!`](crate::conformance) makes a test of each function here, for the cards that an
//! expression makes. A function gets a maker of cards, in power-on state; it panics where a card
//! differs. Nothing here depends on how long a card takes, except for time-outs.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "tests"
)]

mod addresses;
mod answers;
mod driver;
mod faults;
mod functions;
mod generator;
mod interrupts;
mod lists;
mod losses;
mod offload;
mod pages;
mod receive;
mod registers;
mod short;
mod streams;
mod support;
mod tells;
mod timing;
mod transmit;

pub use addresses::*;
pub use answers::*;
pub use driver::*;
pub use faults::*;
pub use functions::*;
pub use generator::*;
pub use interrupts::*;
pub use lists::*;
pub use losses::*;
pub use offload::*;
pub use pages::*;
pub use receive::*;
pub use registers::*;
pub use short::*;
pub use streams::*;
pub use support::Make;
pub use tells::*;
pub use timing::*;
pub use transmit::*;

/// Makes a module of tests, one for each function of the suite, with the cards that `$make` makes.
#[macro_export]
macro_rules! conformance {
    ($make:expr) => {
        $crate::conformance!(@each $make,
            registers_hold_what_the_map_says,
            a_reset_forgets_what_was_written,
            halves_and_bytes_of_registers_are_honoured,
            bytes_of_flags_and_commands_are_honoured,
            a_neighbour_is_written_as_a_whole,
            accesses_outside_the_blocks_are_counted,
            a_card_tells_what_it_is,
            what_was_done_is_counted,
            each_stream_has_its_own_list,
            whole_frames_go_to_the_default_list,
            each_lost_frame_has_one_cause,
            containers_are_expanded,
            containers_that_contradict_themselves_are_refused,
            a_full_buffer_is_announced,
            a_timeout_and_a_flush_announce_what_is_there,
            a_list_without_a_buffer_refuses_and_goes_on,
            a_payload_that_no_buffer_holds_is_refused,
            a_fault_writes_nothing_and_is_told,
            a_list_that_the_card_cannot_honour_is_off,
            a_list_lies_in_pages_that_do_not_follow_each_other,
            a_missing_page_holds_its_payload,
            a_page_that_never_comes_costs_its_payload,
            a_page_is_unmapped_under_traffic,
            a_list_of_the_driver_lies_in_pages_apart,
            a_misaligned_page_translates_nothing,
            a_page_ends_where_its_address_is_written,
            an_entry_may_be_taken_away_at_any_time,
            a_full_event_queue_loses_no_event,
            a_queue_at_a_misaligned_address_takes_no_record,
            bare_payloads_lie_at_a_fixed_stride,
            a_page_is_for_whom_it_is_and_ends_where_it_ends,
            interrupts_come_by_count_or_by_time,
            a_masked_vector_keeps_its_interrupt,
            a_full_receive_fifo_drops_whole_frames,
            answers_without_room_are_counted,
            what_is_sent_into_a_fault_is_thrown_away,
            pause_frames_hold_frames_back,
            writes_without_bus_mastering_are_thrown_away,
            bus_mastering_comes_and_goes_under_traffic,
            unexpected_completions_are_counted,
            a_read_without_an_answer_ends_by_its_timeout,
            bursts_and_triggers_are_latched_and_told,
            external_clocks_too_many_or_too_few_are_told,
            edges_without_room_are_counted,
            an_event_whose_room_is_taken_back_is_counted,
            the_generator_sends_what_it_is_told,
            ports_of_a_pair_hear_each_other,
            several_descriptors_need_one_doorbell,
            short_packets_are_in_the_ring,
            a_ring_at_an_impossible_place_stops,
            one_queue_tells_of_lists_and_rings,
            checksums_are_none_given_or_the_cards,
            bad_descriptors_cost_their_packet,
            reads_that_fail_cost_their_packet,
            a_ring_whose_descriptors_cannot_be_read_stops,
            a_ring_waits_for_room_in_its_queue,
            pings_and_arp_are_answered,
            a_neighbour_is_asked_for,
            a_port_passes_frames_each_way,
            a_port_starts_twenty_times,
            a_port_stops_under_traffic,
            a_port_outlives_failed_reads,
            a_port_outlives_overflows,
            streams_come_without_a_copy,
            datagrams_get_their_headers_from_the_card,
            datagrams_without_a_neighbour_are_counted,
            a_missing_page_is_entered_again,
            a_reader_sleeps_until_enough_has_come,
            the_driver_tells_the_time,
            the_driver_generates_and_receives_it,
            a_soak_balances,
            a_list_of_a_virtual_function_lies_in_pages_apart,
            missing_pages_are_told_to_their_function,
            functions_reach_their_own_registers_and_no_others,
            functions_have_their_own_frames_memory_and_interrupts,
            a_list_tells_no_queue_of_another_function,
            a_page_is_of_the_function_that_enters_it,
            addresses_of_anothers_memory_reach_nothing,
            a_reset_of_one_function_leaves_the_others,
            what_a_function_had_to_send_is_gone_after_its_reset,
            a_function_that_is_reset_by_register_begins_anew,
            ports_of_two_functions_do_not_hear_each_other,
        );
    };
    (@each $make:expr, $($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                $crate::suite::$name(&|| $make);
            }
        )*
    };
}
