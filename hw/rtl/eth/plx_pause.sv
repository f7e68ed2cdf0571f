// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Received pause frames to "do not begin a frame" (IEEE 802.3, annex 31B): a number of quanta of
// 512 bit times (8 cycles each) from the last pause frame on; 0 quanta end a pause.

module plx_pause (
    input  logic        clk,
    input  logic        rst,

    // Pause frames, from plx_mac_rx; whether they take effect.
    input  logic        pause_valid,
    input  logic [15:0] pause_quanta,
    input  logic        cfg_pause,

    // No frame may begin.
    output logic        paused
);
    logic [18:0] left;  // cycles

    assign paused = left != 0;

    always_ff @(posedge clk) begin
        if (pause_valid) left <= {pause_quanta, 3'd0};
        else if (paused) left <= left - 19'd1;
        if (rst || !cfg_pause) left <= 19'd0;
    end
endmodule
