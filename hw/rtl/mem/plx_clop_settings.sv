// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Settings of each of 128 lists: registers in memories that are read together, one cycle after the
// request; and the lists that are enabled, or to be flushed.

module plx_clop_settings (
    input  logic        clk,
    input  logic        rst,

    // The list to read.
    input  logic        read,
    input  logic [6:0]  read_list,

    // Its settings.
    output logic [63:0] base,
    output logic [31:0] size,
    output logic [31:0] count,
    output logic        bare,
    output logic [7:0]  to_queue,
    output logic [2:0]  func,
    output logic [15:0] stride,
    output logic [31:0] timeout,
    output logic [31:0] released,
    output logic        enable,
    output logic        flush,
    // What the card cannot honour: an address or a size between multiples of 64, a size of more than 1 GiB, more than
    // 65536 buffers, a wait of 2^31 or more.
    output logic        unfit,

    // Bytes of a word of that list are written; the write enables the list.
    input  logic        write,
    input  logic [3:0]  write_word,
    input  logic [31:0] write_data,
    input  logic [3:0]  write_strobe,
    output logic        begins,

    // The flush of a list is done, which is another one.
    input  logic        flushed,
    input  logic [6:0]  flushed_list
);
    localparam SIZE = 2, MODE = 4, TIMEOUT = 5, CTRL = 6, RELEASED = 7;

    logic [6:0]   list;
    logic [127:0] enabled, to_flush;

    wire control = write && write_word == CTRL && write_strobe[0];

    assign enable = enabled[list];
    assign flush  = to_flush[list];
    assign begins = control && write_data[0] && !enable;

    // What ends a flush counts a cycle late; the list is not read before.
    logic       ended, anew;
    logic [6:0] ended_list, anew_list;

    always_ff @(posedge clk) begin
        if (read) list <= read_list;
        ended <= flushed;
        anew  <= begins && !write_data[1];
        if (rst) begin
            ended <= 1'b0;
            anew  <= 1'b0;
        end
    end

    // Bit by bit: a bit that is chosen by a register in an assignment becomes a shift of all of them.
    generate
        for (genvar i = 0; i < 128; i = i + 1) begin : g_list
            wire ends = (ended && ended_list == i) || (anew && anew_list == i);

            always_ff @(posedge clk) begin
                if (control && list == i) enabled[i] <= write_data[0];
                if (ends) to_flush[i] <= 1'b0;
                if (control && write_data[1] && list == i) to_flush[i] <= 1'b1;
                if (rst) begin
                    enabled[i]  <= 1'b0;
                    to_flush[i] <= 1'b0;
                end
            end
        end
    endgenerate

    always_ff @(posedge clk) begin
        ended_list <= flushed_list;
        anew_list  <= list;
    end

    // One memory for each word; a restarted list has released no buffers.
    localparam WORDS = 7;
    logic [WORDS*32-1:0] words;

    genvar w;
    generate
        for (w = 0; w < WORDS; w = w + 1) begin : store
            localparam NUMBER = w == WORDS - 1 ? RELEASED : w;
            wire clear = NUMBER == RELEASED && begins;

            // Bytes that are not written keep the value read.
            wire [31:0] written;
            for (genvar b = 0; b < 4; b = b + 1) begin : bytes
                assign written[b*8 +: 8] = write_strobe[b] ? write_data[b*8 +: 8] : words[w*32 + b*8 +: 8];
            end

            plx_ram_sdp #(
                .WIDTH(32),
                .DEPTH(128)
            ) register (
                .clk,
                .w_enable((write && write_word == NUMBER) || clear),
                .w_address(list),
                .w_data(clear ? 32'd0 : written),
                .r_enable(read),
                .r_address(read_list),
                .r_data(words[w*32 +: 32])
            );
        end
    endgenerate

    wire [31:0] mode = words[MODE*32 +: 32];

    assign base     = words[63:0];
    assign size     = words[SIZE*32 +: 32];
    assign count    = words[(SIZE + 1)*32 +: 32];
    assign bare     = mode[0];
    assign to_queue = mode[15:8];
    assign func     = mode[6:4];
    assign stride   = mode[31:16];
    assign timeout  = words[TIMEOUT*32 +: 32];
    assign released = words[(WORDS - 1)*32 +: 32];

    assign unfit    = |base[5:0] || |size[5:0] || size[31] || size[30] && |size[29:6]
                      || |count[31:17] || count[16] && |count[15:0] || timeout[31];

    wire unused = &{1'b0, mode[3:1], mode[7]};
endmodule
