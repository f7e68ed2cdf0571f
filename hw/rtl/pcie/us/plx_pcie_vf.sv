// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// What the block tells of each function (PG213, "Configuration Status Interface", "Configuration Interrupt
// Controller Interface"), as a bit for each of the card's; and resets of the virtual ones. A function level
// reset (PCIe 4.0, 6.6.2) is passed on to the card, which does one after the other, and the block is notified when
// it is done. A function that the host takes away, by its VF Enable, is reset likewise, since it has to be new
// when it comes back (SR-IOV 1.1, 3.3.3.1); the block is not notified of that.

module plx_pcie_vf #(
    parameter FIRST_VF = 4  // number of the first virtual function at the block
) (
    input  logic        clk,
    input  logic        rst,

    // The card is in reset: there is nothing else to reset.
    input  logic        flush,

    // The block: status of function 0 (bit 2: bus mastering), of each virtual one (exists, bus mastering).
    input  logic [3:0]  cfg_function_status,
    input  logic [13:0] cfg_vf_status,
    input  logic        cfg_interrupt_msix_enable,
    input  logic        cfg_interrupt_msix_mask,
    input  logic [6:0]  cfg_interrupt_msix_vf_enable,
    input  logic [6:0]  cfg_interrupt_msix_vf_mask,

    // The block: resets requested, until done.
    input  logic [6:0]  cfg_vf_flr_in_process,
    output logic [7:0]  cfg_vf_flr_func_num,
    output logic        cfg_vf_flr_done,

    // The card.
    output logic [7:0]  card_bus_master,
    output logic [7:0]  card_msix_enable,
    output logic [7:0]  card_msix_mask,
    output logic [7:0]  card_flr,
    input  logic [7:0]  card_flr_done
);
    localparam [7:0] FIRST = FIRST_VF;

    wire [6:0] exists, masters;
    generate
        for (genvar v = 0; v < 7; v = v + 1) begin : g_vf
            assign exists[v]  = cfg_vf_status[2*v];
            assign masters[v] = cfg_vf_status[2*v+1] && cfg_vf_status[2*v];
        end
    endgenerate

    always_ff @(posedge clk) begin
        card_bus_master  <= {masters, cfg_function_status[2]};
        card_msix_enable <= {cfg_interrupt_msix_vf_enable & exists, cfg_interrupt_msix_enable};
        card_msix_mask   <= {cfg_interrupt_msix_vf_mask, cfg_interrupt_msix_mask};
        if (rst) begin
            card_bus_master  <= 8'd0;
            card_msix_enable <= 8'd0;
        end
    end

    // Resets that are to begin, that the card does, that the block waits for, and of which it is to be told.
    logic [6:0] waits, does, owed, notifies;
    logic [6:0] requested, existed, was_requested;

    wire [6:0] asked  = requested & ~was_requested;
    wire [6:0] gone   = existed & ~exists;
    wire [6:0] done   = card_flr_done[7:1];
    wire [6:0] begins = waits & ~does & ~done;
    // A reset that began before the block asked does not count.
    wire [6:0] over   = flush ? owed : owed & done & ~waits;

    // The lowest of those to tell.
    logic [6:0] told;
    logic [2:0] number;
    always_comb begin
        told   = 7'd0;
        number = 3'd0;
        for (int v = 6; v >= 0; v = v - 1) begin
            if (notifies[v]) begin
                told   = 7'd1 << v;
                number = 3'(v);
            end
        end
    end

    assign card_flr = {does, 1'b0};

    always_ff @(posedge clk) begin
        requested           <= cfg_vf_flr_in_process;
        was_requested       <= requested;
        existed             <= exists;
        waits               <= (flush ? 7'd0 : waits & ~begins) | asked | gone;
        does                <= flush ? 7'd0 : (does | begins) & ~done;
        owed                <= owed & ~over | asked;
        notifies            <= notifies & ~told | over;
        cfg_vf_flr_done     <= told != 0;
        cfg_vf_flr_func_num <= FIRST + {5'd0, number};
        if (rst) begin
            requested       <= 7'd0;
            was_requested   <= 7'd0;
            existed         <= 7'd0;
            waits           <= 7'd0;
            does            <= 7'd0;
            owed            <= 7'd0;
            notifies        <= 7'd0;
            cfg_vf_flr_done <= 1'b0;
        end
    end

    wire unused = &{1'b0, cfg_function_status, card_flr_done[0]};
endmodule
