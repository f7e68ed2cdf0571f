// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A queue of whole frames for a writer that cannot wait. A frame is offered once its last word is
// in and is good; a frame that is bad at its end, or that did not fit, is withdrawn without a
// trace, and reported by a pulse for the owner's counter. A frame of more than DEPTH words
// never fits. Block RAM; latency 3 cycles from the last word in to the first word out.

module plx_fifo_frame #(
    parameter WIDTH = 72,   // bits of a word, without its last flag
    parameter DEPTH = 2048  // words, a power of two
) (
    input  logic             clk,
    input  logic             rst,

    // Words in, accepted in every cycle with s_valid; s_bad is sampled with s_last.
    input  logic             s_valid,
    input  logic             s_last,
    input  logic             s_bad,
    input  logic [WIDTH-1:0] s_data,

    // Words out: only of whole, good frames, and without a gap within a frame.
    output logic             m_valid,
    input  logic             m_ready,
    output logic             m_last,
    output logic [WIDTH-1:0] m_data,

    // Pulses, after the last word of a withdrawn frame: for lack of space, or as bad.
    output logic             event_full,
    output logic             event_bad
);
    localparam AW = $clog2(DEPTH);

    generate
        if (WIDTH < 1) WIDTH_must_be_at_least_1 parameter_error ();
        if (DEPTH < 2 || DEPTH != 1 << AW) DEPTH_must_be_a_power_of_two_at_least_2 parameter_error ();
    endgenerate

    // Frames end before `committed`; the frame that is being written continues at `tail`.
    logic [AW:0] head, tail, committed;
    // A word of this frame did not fit: the rest of it is not written.
    logic        lost;

    wire [AW:0] held  = tail - head;
    wire        room  = !held[AW];
    wire        write = s_valid && room && !lost;
    wire        good  = write && s_last && !s_bad;

    always_ff @(posedge clk) begin
        event_full <= s_valid && s_last && (lost || !room);
        event_bad  <= write && s_last && s_bad;
        if (write) tail <= tail + 1'b1;
        if (s_valid && !room) lost <= 1'b1;
        if (s_valid && s_last) begin
            lost <= 1'b0;
            if (good) committed <= tail + 1'b1;
            else tail <= committed;
        end
        if (rst) begin
            tail       <= '0;
            committed  <= '0;
            lost       <= 1'b0;
            event_full <= 1'b0;
            event_bad  <= 1'b0;
        end
    end

    // The memory responds one cycle after the request; the data stay in it until accepted.
    wire  ahead = head != committed;
    logic fetched;
    logic [WIDTH:0] ram_data;
    wire  fetch = ahead && (!fetched || m_ready || !m_valid);

    plx_ram_sdp #(
        .WIDTH(WIDTH + 1),
        .DEPTH(DEPTH)
    ) ram (
        .clk,
        .w_enable(write),
        .w_address(tail[AW-1:0]),
        .w_data({s_last, s_data}),
        .r_enable(fetch),
        .r_address(head[AW-1:0]),
        .r_data(ram_data)
    );

    always_ff @(posedge clk) begin
        if (fetch) head <= head + 1'b1;
        if (fetch) fetched <= 1'b1;
        else if (m_ready || !m_valid) fetched <= 1'b0;
        if (m_ready || !m_valid) m_valid <= fetched;
        if (rst) begin
            head    <= '0;
            fetched <= 1'b0;
            m_valid <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (m_ready || !m_valid) {m_last, m_data} <= ram_data;
    end
endmodule
