// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Half of a register stage of a stream: ready does not pass through without a register, valid and data
// do, so that a word takes no cycle. A word that the reader does not accept is kept; the next one is
// accepted in the cycle after it has left.

module plx_skid_through #(
    parameter WIDTH = 64  // bits of a word: data and sideband
) (
    input  logic             clk,
    input  logic             rst,

    // Words in.
    input  logic             s_valid,
    output logic             s_ready,
    input  logic [WIDTH-1:0] s_data,

    // Words out, in the same order.
    output logic             m_valid,
    input  logic             m_ready,
    output logic [WIDTH-1:0] m_data
);
    generate
        if (WIDTH < 1) WIDTH_must_be_at_least_1 parameter_error ();
    endgenerate

    // The word that came when the reader stalled.
    logic             kept_valid;
    logic [WIDTH-1:0] kept;

    assign s_ready = !kept_valid;
    assign m_valid = s_valid || kept_valid;
    assign m_data  = kept_valid ? kept : s_data;

    always_ff @(posedge clk) kept_valid <= !rst && m_valid && !m_ready;

    always_ff @(posedge clk) if (s_ready) kept <= s_data;
endmodule
