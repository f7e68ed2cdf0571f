// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// More tags are allowed only from an answer of the block on that has the bit, to a read that began while function 0 was
// not in reset, and until one without it, or a reset; a read stands until it is answered, ends in the next cycle, and
// the next one begins REST cycles behind it: the answer is new for as long as the block takes, and that.
// formal: aiger
// formal: always 10
// formal: cover 16
// mutant: cfg_mgmt_read_write_done && !former) => cfg_mgmt_read_write_done)
// mutant: (former || hold); => former;
// mutant: (former || hold); => hold;
// mutant: if (hold) ext_tag => if (1'b0) ext_tag
// mutant: cfg_mgmt_read_data[8]; => cfg_mgmt_read_data[9];
// mutant: cfg_mgmt_read <= !cfg_mgmt_read_write_done; => cfg_mgmt_read <= !cfg_mgmt_read_write_done && !hold;
// mutant: rests == 0 && !hold; => rests == 0;
// mutant: 10'h070 / 4 + 10'd2; => 10'h070 / 4 + 10'd1;
// mutant: rests         <= W'(REST); => rests         <= '0;

module plx_pcie_ext_tag_formal (
    input logic        clk,
    input logic        rst,
    input logic        hold,
    input logic [31:0] cfg_mgmt_read_data,
    input logic        cfg_mgmt_read_write_done
);
    localparam REST = 3;

    logic [9:0] cfg_mgmt_addr;
    logic [7:0] cfg_mgmt_function_number;
    logic       cfg_mgmt_read, ext_tag;

    plx_pcie_ext_tag #(.REST(REST)) dut (.*);

    logic running = 0;
    always_ff @(posedge clk) running <= 1'b1;
    always_comb if (!running) assume (rst);

    // The last answer that counts; whether the read under way has seen a reset; cycles behind the last answer.
    logic       answer = 0, marred = 0, reads = 0, stood = 0, held = 0;
    logic [2:0] idle = 0;

    always_ff @(posedge clk) begin
        held   <= hold;
        reads  <= !rst && cfg_mgmt_read;
        stood  <= !rst && cfg_mgmt_read && !cfg_mgmt_read_write_done;
        marred <= cfg_mgmt_read && (marred || hold);
        if (cfg_mgmt_read && cfg_mgmt_read_write_done && !marred) answer <= cfg_mgmt_read_data[8];
        if (hold) answer <= 1'b0;
        idle <= cfg_mgmt_read || hold ? 3'd0 : idle + {2'd0, idle != 7};
        if (rst) begin
            answer <= 1'b0;
            marred <= 1'b0;
            idle   <= 3'd0;
        end
    end

    always_comb if (running && !rst) begin
        // Device Control, of function 0: PG213, and the PCI Express capability.
        assert (cfg_mgmt_addr == 10'h1E && cfg_mgmt_function_number == 0);
        assert (ext_tag == answer);
        if (stood) assert (cfg_mgmt_read);
        if (reads && !stood) assert (!cfg_mgmt_read);
        // It does not begin in a reset, nor too early behind the last one; nor too late.
        if (cfg_mgmt_read && !reads) assert (!held);
        assert (idle <= REST + 1);
        cover (ext_tag && stood && idle == 0);
        cover (!ext_tag && marred && cfg_mgmt_read_write_done && cfg_mgmt_read_data[8]);
    end

    // Cycles between two reads, resets or not.
    logic [2:0] apart = 7;
    always_ff @(posedge clk) apart <= rst ? 3'd7 : cfg_mgmt_read ? 3'd0 : apart + {2'd0, apart != 7};
    always_comb if (running && !rst && cfg_mgmt_read && !reads) assert (apart >= REST);
endmodule
