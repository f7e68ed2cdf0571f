// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Whether the writes that plx_wr_mux accepted before a moment have left the card. Others may follow
// meanwhile: it waits for as many as were on the way then.

module plx_wr_fence #(
    parameter COUNT_W = 5  // bits of the number of writes between plx_wr_mux and the host bus
) (
    input  logic clk,
    input  logic rst,

    // A write has been accepted; one has been accepted by the host bus, or was discarded.
    input  logic accepted,
    input  logic ended,

    // Held until `done`, one cycle.
    input  logic s_fence,
    output logic m_done
);
    logic [COUNT_W-1:0] pending, left;
    logic               begun;

    // Those of this cycle are before the fence.
    wire [COUNT_W-1:0] now = pending + {{(COUNT_W-1){1'b0}}, accepted} - {{(COUNT_W-1){1'b0}}, ended};

    always_ff @(posedge clk) begin
        pending <= now;
        m_done  <= begun && left == 0;
        begun   <= begun ? left != 0 : s_fence && !m_done;
        left    <= begun ? left - {{(COUNT_W-1){1'b0}}, ended} : now;
        if (rst) begin
            pending <= '0;
            m_done  <= 1'b0;
            begun   <= 1'b0;
        end
    end
endmodule
