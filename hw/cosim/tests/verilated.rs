//! The card from its RTL passes the suite: with a host that is always the same, and with one that
//! does its worst.

#[cfg(not(has_verilator))]
#[test]
fn card_from_its_rtl() {
    println!("skipped: no simulated card: built without the feature `verilated`, or no Verilator");
}

/// The suite, with a host that behaves so.
#[cfg(has_verilator)]
macro_rules! suite {
    ($name:ident, $seed:literal) => {
        mod $name {
            use pollux_cosim::pcie::Behaviour;
            use pollux_cosim::verilated::VerilatedCard;

            pollux_cosim::conformance!(@each VerilatedCard::new($seed, Behaviour::$name()),
                registers_hold_what_the_map_says,
                a_reset_forgets_what_was_written,
                halves_and_bytes_of_registers_are_honoured,
                each_stream_has_its_own_list,
                whole_frames_go_to_the_catch_all,
                each_lost_frame_has_one_cause,
                containers_are_expanded,
                a_full_buffer_is_announced,
                a_timeout_and_a_flush_announce_what_is_there,
                a_list_without_a_buffer_refuses_and_goes_on,
                a_payload_that_no_buffer_holds_is_refused,
                a_fault_writes_nothing_and_is_told,
                an_entry_may_be_taken_away_at_any_time,
                a_full_event_queue_loses_no_event,
                several_descriptors_need_one_doorbell,
                checksums_are_none_given_or_the_cards,
                bad_descriptors_cost_their_packet,
                reads_that_fail_cost_their_packet,
                a_ring_whose_descriptors_cannot_be_read_stops,
                pings_and_arp_are_answered,
                a_station_is_asked_for,
                a_port_passes_frames_each_way,
                a_port_starts_twenty_times,
                a_port_stops_under_traffic,
                a_port_outlives_failed_reads,
                streams_come_without_a_copy,
                a_soak_balances,
            );
        }
    };
}

#[cfg(has_verilator)]
suite!(prompt, 1);
#[cfg(has_verilator)]
suite!(adversarial, 2);
