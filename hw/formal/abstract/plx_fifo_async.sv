// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// A queue between two clocks that has room, and shows its words, when it likes: what plx_fifo_async may do and more.
// The writer's reset is within the reader's, which has been sampled before and lasts until the writer's has been;
// the users' proofs assume it of their neighbours.

module plx_fifo_async #(
    parameter WIDTH  = 64,
    parameter DEPTH  = 16,
    parameter STAGES = 2
) (
    input  logic             w_clk,
    input  logic             w_rst,
    input  logic             s_valid,
    output logic             s_ready,
    input  logic [WIDTH-1:0] s_data,
    input  logic             r_clk,
    input  logic             r_rst,
    output logic             m_valid,
    input  logic             m_ready,
    output logic [WIDTH-1:0] m_data
);
    localparam AW = $clog2(DEPTH);

    (* gclk *) wire step;
    (* anyseq *) wire room, seen;
    logic [AW:0]            level = 0;
    logic [DEPTH*WIDTH-1:0] words;
    // The reader's registers are in reset.
    logic                   r_in = 0;

    assign s_ready = room && level < DEPTH;
    assign m_valid = seen && level != 0 && !r_in;
    assign m_data  = words[WIDTH-1:0];

    wire        write = w_clk && s_valid && s_ready, take = r_clk && m_valid && m_ready && !r_rst;
    wire [AW:0] place = level - {{AW{1'b0}}, take};

    generate
        for (genvar i = 0; i < DEPTH; i = i + 1) begin : g_word
            localparam [AW:0] HERE = i;
            localparam NEXT = i + 1 < DEPTH ? i + 1 : i;
            always_ff @(posedge step) begin
                if (write && place == HERE) words[i*WIDTH +: WIDTH] <= s_data;
                else if (take) words[i*WIDTH +: WIDTH] <= words[NEXT*WIDTH +: WIDTH];
            end
        end
    endgenerate

    always_ff @(posedge r_clk) r_in <= r_rst;
    always_ff @(posedge step) level <= w_clk && w_rst ? '0 : place + {{AW{1'b0}}, write};
endmodule
