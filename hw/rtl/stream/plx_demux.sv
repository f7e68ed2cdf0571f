// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The stream of a frame: the lowest enabled one with its UDP destination port, else the default
// list, if that accepts its kind. The response follows the lookup by one cycle.

module plx_demux #(
    parameter STREAMS = 16  // besides the default list, whose number this is
) (
    input  logic                    clk,

    // The lookup: UDP and its destination port, or any other frame.
    input  logic                    s_lookup_valid,
    input  logic                    s_lookup_udp,
    input  logic [15:0]             s_lookup_port,

    // The response, stable until the next one: whether there is a destination, and which.
    output logic                    m_lookup_hit,
    output logic [4:0]              m_lookup_stream,
    output logic [1:0]              m_lookup_delivery_mode,

    // Settings: of each stream; the kinds that the default list accepts.
    input  logic [16*STREAMS-1:0]   cfg_stream_port,
    input  logic [2*STREAMS-1:0]    cfg_stream_form,
    input  logic [STREAMS-1:0]      cfg_stream_enable,
    input  logic                    cfg_catch_udp,
    input  logic                    cfg_catch_other
);
    localparam [4:0] CATCH_ALL = STREAMS;
    localparam [1:0] WHOLE     = 2'd1;  // its form

    generate
        if (STREAMS < 1 || STREAMS > 16) STREAMS_must_be_1_to_16 parameter_error ();
    endgenerate

    // Streams with that port; of these, the lowest.
    logic [STREAMS-1:0]   match;
    logic [7*STREAMS-1:0] choices;
    logic [6:0]           choice;

    generate
        for (genvar i = 0; i < STREAMS; i = i + 1) begin : g_stream
            localparam [4:0] NUMBER = i;
            assign match[i] = s_lookup_udp && cfg_stream_enable[i] && cfg_stream_port[16*i+:16] == s_lookup_port;
            wire lowest = i == 0 ? match[0] : match[i] && (match & ((1 << i) - 1)) == 0;
            assign choices[7*i+:7] = {7{lowest}} & {NUMBER, cfg_stream_form[2*i+:2]};
        end
    endgenerate

    always_comb begin
        choice = |match ? 7'd0 : {CATCH_ALL, WHOLE};
        for (int i = 0; i < STREAMS; i = i + 1) choice = choice | choices[7*i+:7];
    end

    always_ff @(posedge clk) begin
        if (s_lookup_valid) begin
            m_lookup_hit    <= |match || (s_lookup_udp ? cfg_catch_udp : cfg_catch_other);
            {m_lookup_stream, m_lookup_delivery_mode} <= choice;
        end
    end
endmodule
