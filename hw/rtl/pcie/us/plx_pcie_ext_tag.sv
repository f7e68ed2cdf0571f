// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Whether the host allows tags of 8 bits: Extended Tag Field Enable, bit 8 of Device Control of function 0 (PCIe 4.0,
// 7.5.3.4), for which the block has no signal. It is read over and over by the block's management interface (PG213,
// "Configuration Management Interface"). REST cycles and the block's own time lie between two answers, less than a
// round trip of the host: so it cannot clear the bit, and then make the card read, before that is known here. Virtual
// functions follow function 0, as theirs is reserved (PCIe 7.0, table 7-21: RsvdP for VFs). Until the block has
// answered, and while function 0 is reset, the bit counts as clear.

module plx_pcie_ext_tag #(
    parameter REST = 64  // cycles between two reads
) (
    input  logic        clk,
    input  logic        rst,

    // Function 0 is reset: a read that began before does not count, and none begins.
    input  logic        hold,

    // The block: reads of a DW of its configuration space, stable until done.
    output logic [9:0]  cfg_mgmt_addr,
    output logic [7:0]  cfg_mgmt_function_number,
    output logic        cfg_mgmt_read,
    input  logic [31:0] cfg_mgmt_read_data,
    input  logic        cfg_mgmt_read_write_done,

    // More than 32 tags are allowed.
    output logic        ext_tag
);
    // The capability is at byte 70h of the block's configuration space, and Device Control 8 bytes into it.
    localparam [9:0] DEVICE_CONTROL = 10'h070 / 4 + 10'd2;
    localparam W = $clog2(REST + 1);

    assign cfg_mgmt_addr            = DEVICE_CONTROL;
    assign cfg_mgmt_function_number = 8'd0;

    generate
        if (REST < 1) REST_must_be_at_least_1 parameter_error ();
    endgenerate

    // Cycles until the next read; the one under way is of before a reset.
    logic [W-1:0] rests;
    logic         former;

    always_ff @(posedge clk) begin
        if (cfg_mgmt_read) begin
            rests         <= W'(REST);
            // It ends in the cycle behind the answer.
            cfg_mgmt_read <= !cfg_mgmt_read_write_done;
            if (cfg_mgmt_read_write_done && !former) ext_tag <= cfg_mgmt_read_data[8];
        end else begin
            if (rests != 0) rests <= rests - 1'b1;
            cfg_mgmt_read <= rests == 0 && !hold;
        end
        former <= cfg_mgmt_read && !cfg_mgmt_read_write_done && (former || hold);
        if (hold) ext_tag <= 1'b0;
        if (rst) begin
            rests         <= '0;
            cfg_mgmt_read <= 1'b0;
            former        <= 1'b0;
            ext_tag       <= 1'b0;
        end
    end

    wire unused = &{1'b0, cfg_mgmt_read_data[31:9], cfg_mgmt_read_data[7:0]};
endmodule
