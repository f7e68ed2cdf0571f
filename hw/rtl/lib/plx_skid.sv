// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// One register stage of a stream, for both directions: neither valid nor ready passes through
// without a register, and a word moves in every cycle. Latency 1 cycle.

module plx_skid #(
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

    // The word in flight when the reader stalled.
    logic             kept_valid;
    logic [WIDTH-1:0] kept;

    assign s_ready = !kept_valid;

    always_ff @(posedge clk) begin
        if (m_ready || !m_valid) begin
            m_valid    <= s_valid || kept_valid;
            kept_valid <= 1'b0;
        end else if (s_valid && s_ready) begin
            kept_valid <= 1'b1;
        end
        if (rst) begin
            m_valid    <= 1'b0;
            kept_valid <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (m_ready || !m_valid) m_data <= kept_valid ? kept : s_data;
        if (s_ready) kept <= s_data;
    end

`ifdef FORMAL
    // The contents of a queue of two words.
    logic [WIDTH-1:0] f_first, f_second;
    logic [1:0]       f_count = 0;

    wire f_in  = s_valid && s_ready;
    wire f_out = m_valid && m_ready;

    always_ff @(posedge clk) begin
        f_count <= rst ? 2'd0 : f_count + {1'b0, f_in} - {1'b0, f_out};
        if (f_out) f_first <= f_second;
        if (f_in) begin
            if (f_count - {1'b0, f_out} == 0) f_first <= s_data;
            else f_second <= s_data;
        end
    end

    always_ff @(posedge clk) if (!rst) begin
        assert (f_count == {1'b0, m_valid} + {1'b0, kept_valid});
        assert (m_valid || !kept_valid);
        if (m_valid) assert (m_data == f_first);
        if (kept_valid) assert (kept == f_second);
    end
`endif
endmodule
