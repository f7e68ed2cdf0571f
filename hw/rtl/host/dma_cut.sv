// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Splits the memory of a descriptor into segments of one request each: at most the limit, and none
// across 4 KiB (PCIe 4.0, 2.2.7). With ALIGN they end at multiples of the limit, so that a segment
// fits a block of memory of that size; else only at 4 KiB. One segment a cycle; latency 1 cycle.

module dma_cut #(
    parameter LENGTH_W = 13,  // bits of a length
    parameter ALIGN    = 0,   // 1: segments end at multiples of the limit
    parameter MOST     = 5,   // limits are at most 128 B << MOST
    parameter USER_W   = 8    // bits that accompany a descriptor
) (
    input  logic                clk,
    input  logic                rst,

    // 128 B << n; 6 and 7 are reserved, and treated as 0 (PCIe 4.0, 7.5.3.4).
    input  logic [2:0]          cfg_limit,

    // Descriptors: bytes, at least one.
    input  logic                s_valid,
    output logic                s_ready,
    input  logic [63:0]         s_address,
    input  logic [LENGTH_W-1:0] s_length,
    input  logic [USER_W-1:0]   s_user,

    // Segments; the last one of a descriptor.
    output logic                m_valid,
    input  logic                m_ready,
    output logic [63:0]         m_address,
    output logic [12:0]         m_length,
    output logic                m_last,
    output logic [USER_W-1:0]   m_user
);
    generate
        if (LENGTH_W < 13) LENGTH_W_must_be_at_least_13 parameter_error ();
        if (MOST < 0 || MOST > 5) MOST_must_be_0_to_5 parameter_error ();
    endgenerate

    localparam [2:0] MOST_CODE = MOST;

    logic [LENGTH_W-1:0] left;
    logic [12:0]         limit;

    // Bytes before the boundary.
    wire [11:0] page   = m_address[11:0];
    wire [12:0] offset = ALIGN != 0 ? {1'b0, page & (limit[11:0] - 12'd1)} : {1'b0, page};
    wire [12:0] border = (ALIGN != 0 ? limit : 13'd4096) - offset;
    wire [12:0] room   = border < limit ? border : limit;
    wire [LENGTH_W-1:0] room_wide = {{(LENGTH_W - 13) {1'b0}}, room};

    assign m_last   = left <= room_wide;
    assign m_length = m_last ? left[12:0] : room;
    assign s_ready  = !m_valid || m_ready && m_last;

    always_ff @(posedge clk) begin
        if (s_ready) m_valid <= s_valid;
        if (rst) m_valid <= 1'b0;
    end

    always_ff @(posedge clk) begin
        limit <= 13'd128 << (cfg_limit > 3'd5 ? 3'd0 : cfg_limit > MOST_CODE ? MOST_CODE : cfg_limit);
        if (s_ready) begin
            m_address <= s_address;
            left      <= s_length;
            m_user    <= s_user;
        end else if (m_ready) begin
            m_address <= m_address + {51'd0, room};
            left      <= left - room_wide;
        end
    end
endmodule
