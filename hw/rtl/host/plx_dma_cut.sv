// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Splits the memory of a descriptor into segments of one request each: at most the limit, and none
// across 4 KiB (PCIe 4.0, 2.2.7). With ALIGN they end at multiples of the limit, so that a segment
// fits a block of memory of that size; else only at 4 KiB. One segment a cycle, with a cycle between
// two descriptors; latency 2 cycles.

module plx_dma_cut #(
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
    output logic [USER_W-1:0]   m_user,
    output logic                idle
);
    generate
        if (LENGTH_W < 13) LENGTH_W_must_be_at_least_13 parameter_error ();
        if (MOST < 0 || MOST > 5) MOST_must_be_0_to_5 parameter_error ();
    endgenerate

    localparam [2:0] MOST_CODE = MOST;

    // The rest of a descriptor; less by one: its bytes after the first, the limit.
    logic                busy;
    logic [63:0]         address;
    logic [LENGTH_W-1:0] left, behind;
    logic [USER_W-1:0]   user;
    logic [11:0]         below;

    // Bytes of a segment after its first: up to the next multiple of the limit, where that ends the segment.
    wire        near  = ALIGN != 0 || &(address[11:0] | below);
    wire [11:0] most  = below & ~(address[11:0] & {12{near}});
    wire        last  = behind <= {{(LENGTH_W - 12) {1'b0}}, most};
    wire        moves = busy && (!m_valid || m_ready);

    // A page ends where its last bytes are in the segment.
    wire [12:0] offset = {1'b0, address[11:0]} + {1'b0, most} + 13'd1;
    wire [51:0] page   = address[63:12] + 52'd1;

    assign s_ready = !busy;
    assign idle    = !busy && !m_valid;

    always_ff @(posedge clk) begin
        if (m_ready) m_valid <= 1'b0;
        if (moves) m_valid <= 1'b1;
        busy <= busy ? !(moves && last) : s_valid;
        if (rst) begin
            m_valid <= 1'b0;
            busy    <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        below <= ~(12'hF80 << (cfg_limit > 3'd5 ? 3'd0 : cfg_limit > MOST_CODE ? MOST_CODE : cfg_limit));
        if (!busy) begin
            address <= s_address;
            left    <= s_length;
            behind  <= s_length - 1'b1;
            user    <= s_user;
        end else if (moves) begin
            address <= {offset[12] ? page : address[63:12], offset[11:0]};
            left    <= left + ~{{(LENGTH_W - 12) {1'b0}}, most};
            behind  <= behind + ~{{(LENGTH_W - 12) {1'b0}}, most};
        end
        if (moves) begin
            m_address <= address;
            m_length  <= last ? left[12:0] : {1'b0, most} + 13'd1;
            m_last    <= last;
            m_user    <= user;
        end
    end
endmodule
