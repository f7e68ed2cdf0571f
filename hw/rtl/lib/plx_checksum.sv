// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// One step of the ones' complement sum of the Internet protocols (RFC 1071): adds the selected bytes
// of a word. The sum so far is two addends of 16 bits, so that no step waits for a carry from bit to
// bit: plx_checksum_fold adds them at the end. Their sum is correct, all ones, if they are each other's
// complement, or both all ones. All zeros is the sum of zeros only.

module plx_checksum #(
    parameter BYTES = 8  // of a word, an even number; byte 0, the first of its 16 bits, in bits 7:0
) (
    // The sum so far, initially 0.
    input  logic [31:0]        state,

    // The word to add: bytes whose keep bit is set; others count as zeros.
    input  logic [8*BYTES-1:0] data,
    input  logic [BYTES-1:0]   keep,

    // The sum including the word.
    output logic [31:0]        next
);
    localparam LANES = BYTES / 2;
    localparam ALL   = 3 * LANES + 2;  // addends: the lanes, the state, and two of each step

    generate
        if (BYTES < 2 || BYTES > 64 || BYTES % 2 != 0) BYTES_must_be_even_from_2_to_64 parameter_error ();
    endgenerate

    wire [16*LANES-1:0] lanes;

    generate
        for (genvar i = 0; i < LANES; i = i + 1) begin : g_lane
            assign lanes[16*i+:16] = {data[16*i+:8] & {8{keep[2*i]}}, data[16*i+8+:8] & {8{keep[2*i+1]}}};
        end
    endgenerate

    // A queue of addends: a step takes the first three, and its two are the last ones, so that the steps
    // are a tree. The carry of the highest bit adds to the lowest.
    logic [16*ALL-1:0] addends;
    logic [15:0]       a, b, c, carries;

    always_comb begin
        addends = {{16*(ALL - LANES - 2){1'b0}}, state, lanes};
        for (int i = 0; i < LANES; i = i + 1) begin
            a       = addends[48*i+:16];
            b       = addends[48*i+16+:16];
            c       = addends[48*i+32+:16];
            carries = (a & b) | (a & c) | (b & c);
            addends[16*(LANES+2+2*i)+:32] = {carries << 1 | carries >> 15, a ^ b ^ c};
        end
    end

    assign next = addends[16*ALL-1-:32];
endmodule
