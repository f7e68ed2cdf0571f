// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Exactly the words of the good frames that fit leave, in order; an offer is stable until
// accepted; every frame has left, has been reported as full or bad, or is held.
// formal: aiger
// formal: always 12
// formal: cover 12
// mutant: else tail <= committed; => else tail <= committed + 1'b1;

module plx_fifo_frame_formal (
    input logic       clk,
    input logic       rst,
    input logic       s_valid,
    input logic       s_last,
    input logic       s_bad,
    input logic       s_data,
    input logic       m_ready
);
    logic       m_valid, m_last, event_full, event_bad, m_data;

    plx_fifo_frame #(.WIDTH(1), .DEPTH(4)) dut (.*);

    // Yosys merges wires of these names with those inside.
    (* hierconn *) wire       \dut.lost , \dut.fetched ;
    (* hierconn *) wire [2:0] \dut.head , \dut.tail , \dut.committed ;
    wire       lost = \dut.lost , fetched = \dut.fetched ;
    wire [2:0] head = \dut.head , tail = \dut.tail , whole_inside = \dut.committed ;

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb assume (rst == !running);

    // Words of good frames and of the incoming one are counted, modulo 8: at most 6 are inside.
    // Any one slot is observed.
    (* anyconst *) logic [2:0] place;
    logic [2:0] written = 0, committed = 0, read = 0;
    logic [1:0] word;

    // The status of a frame is reported in the cycle after its last word.
    logic       ended = 0, ended_bad = 0, crowded = 0, frame_crowded = 0;
    wire        kept   = ended && !event_full && !event_bad;
    wire  [2:0] base   = ended && !kept ? committed : written;
    wire  [2:0] whole  = kept ? written : committed;
    // Words inside, before the incoming one, are at most this. Words beyond 7 are lost.
    wire  [2:0] inside = base - read;
    wire        counts = s_valid && inside < 7;

    // The observed word has arrived, in a good frame, and has not left.
    wire  [2:0] held  = committed - read;
    wire  [2:0] ahead = place - read;
    wire        is_in = ahead < held;
    logic [1:0] known = 0;
    always_ff @(posedge clk) known <= {known[0] && is_in, is_in && !(m_valid && m_ready && ahead == 0)};

    always_ff @(posedge clk) if (running) begin
        ended     <= s_valid && s_last;
        ended_bad <= s_bad;
        committed <= whole;
        written   <= base + {2'b0, counts};
        if (counts && base == place) word <= {s_last, s_data};
        if (m_valid && m_ready) read <= read + 1'b1;
        // A frame may be refused only if one of its words met four others.
        if (s_valid) begin
            crowded       <= !s_last && (crowded || inside >= 4);
            frame_crowded <= crowded || inside >= 4;
        end
    end

    always_ff @(posedge clk) if (running) begin
        assert (!(event_full && event_bad));
        if (event_full) assert (ended && frame_crowded);
        if (event_bad) assert (ended && ended_bad);
        if (kept) assert (!ended_bad);
        // Relation of pointers and counts: the solver need not find it.
        assert (head == 3'(read + fetched + m_valid) && whole_inside == whole && (lost || tail == base));
        assert (held <= 6);
        if (m_valid) assert (held != 0);
        if (m_valid && read == place) assert ({m_last, m_data} == word);
        if ($past(running && m_valid && !m_ready)) assert (m_valid && $stable(m_data) && $stable(m_last));
        // A word known to be good for two cycles is offered as soon as it is the next.
        if (known[1] && read == place) assert (m_valid);
        cover (event_full && committed >= 3);
        cover (read == 5 && held == 0);
    end
endmodule
