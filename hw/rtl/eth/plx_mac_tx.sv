// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Sending half of a 10 Gb/s MAC (IEEE 802.3, clauses 3, 4 and 46): from a stream of frames to XGMII,
// 8 lanes at single data rate. Adds preamble, padding to 64 bytes and FCS, and keeps an interpacket
// gap of 12 bytes on average by deficit idle count, so that minimum frames go at line rate. Latency
// from the first word taken to the XGMII word with the frame's first byte: 3 cycles.

module plx_mac_tx (
    input  logic        clk,
    input  logic        rst,

    // Frames, from the destination address on, without FCS. Once one has begun it must have a word
    // in every cycle. tuser, with tlast: the frame ends with an error.
    input  logic        s_axis_tx_tvalid,
    output logic        s_axis_tx_tready,
    input  logic [63:0] s_axis_tx_tdata,
    input  logic [7:0]  s_axis_tx_tkeep,
    input  logic        s_axis_tx_tlast,
    input  logic        s_axis_tx_tuser,

    // XGMII, lane 0 in the lowest bits.
    output logic [63:0] xgmii_txd,
    output logic [7:0]  xgmii_txc,

    // Whether a frame may begin: by register, and by the link partner's pause state (annex 31B).
    input  logic        cfg_enable,
    input  logic        pause,

    // State of plx_link_fault. With either fault frames are discarded; a local fault is signalled to the
    // link partner (46.3.4.2).
    input  logic        local_fault,
    input  logic        remote_fault,

    // Counts: a frame sent, with its bytes from destination address on, with padding, without FCS;
    // a frame aborted by its source, or for lack of a word; a frame discarded for a fault; a cycle in
    // which a pause delayed a frame.
    output logic        inc_frames,
    output logic [13:0] inc_bytes,
    output logic        inc_aborted,
    output logic        inc_fault,
    output logic        inc_paused,

    // A frame is inside.
    output logic        busy
);
    // Control characters, table 46-3, and words of them.
    localparam [7:0] IDLE = 8'h07, START = 8'hFB, TERMINATE = 8'hFD, ERROR = 8'hFE;
    localparam [63:0] PREAMBLE = {8'hD5, {6{8'h55}}, START};
    // End of an aborted frame: errors, and the end where a FCS after 3 bytes would end it.
    localparam [63:0] SPOILT = {TERMINATE, {7{ERROR}}};
    localparam [3:0]  SPOILT_BYTES = 4'd3;
    // The remote fault ordered set, table 46-5, as a column.
    localparam [31:0] REMOTE_FAULT = 32'h0200009C;

    localparam [1:0] WAIT = 2'd0, DATA = 2'd1, PAD = 2'd2, DROP = 2'd3;
    logic [1:0] state;

    // Words of this frame, and whether it has 7 or more: 60 bytes need half of the eighth.
    logic [10:0] words;
    wire         seven   = |words[10:3] || words[2:0] == 3'd7;
    wire         beyond  = |words[10:3];

    // Cycles until the next frame may begin, in which lane, and the deficit of idles.
    logic [2:0] gap;
    logic       lane4;
    logic [1:0] deficit;

    wire fault = local_fault || remote_fault;
    wire ready = state == WAIT && gap == 0 && !fault && cfg_enable && !pause;
    wire start = ready && s_axis_tx_tvalid;

    assign s_axis_tx_tready = ready || state == DATA || state == DROP;

    // The next word: from the stream, or padding, or one that aborts the frame.
    // Its bytes are contiguous.
    wire [7:0] tops  = s_axis_tx_tkeep & ~{1'b0, s_axis_tx_tkeep[7:1]};
    wire [3:0] bytes = {tops[7], |tops[6:3], |tops[6:5] || |tops[2:1], tops[6] || tops[4] || tops[2] || tops[0]};
    wire       step   = start || state == DATA || state == PAD;
    wire [10:0] index = start ? 11'd0 : words;
    wire       at7    = !start && seven;
    wire       spoil  = state == DATA && !s_axis_tx_tvalid || (start || state == DATA) && s_axis_tx_tlast && s_axis_tx_tuser;
    wire       ends   = step && (spoil || at7 && (state == PAD || s_axis_tx_tlast));
    // Of the last word: at least 4 in the eighth.
    wire [3:0] given  = state == PAD ? 4'd0 : bytes;
    wire [3:0] count  = spoil ? SPOILT_BYTES : !beyond && given < 4'd4 ? 4'd4 : given;

    // The gap after this word, in columns of 4 bytes. The frame ends, with FCS, p = count mod 4
    // bytes after a column. A gap of 12 - p begins the next frame in a column, with a deficit of p
    // idles. If the deficit would exceed 3, the gap is a column longer (46.3.1.4).
    wire [2:0] owed    = {1'b0, deficit} + {1'b0, count[1:0]};
    // From the beginning of this word, in its lane: word, FCS and gap.
    wire [3:0] columns = 4'd4 + {2'd0, count[3:2]} + {3'd0, owed[2]} + {3'd0, lane4};

    always_ff @(posedge clk) begin
        if (gap != 0) begin
            gap <= gap - 3'd1;
        end else if (state == WAIT && !start) begin
            // A longer gap leaves no deficit.
            lane4   <= 1'b0;
            deficit <= 2'd0;
        end
        if (step) words <= index + 11'd1;
        if (ends) begin
            gap     <= columns[3:1];
            lane4   <= columns[0];
            deficit <= owed[1:0];
        end
        case (state)
            WAIT: begin
                if (start && !ends) state <= s_axis_tx_tlast ? PAD : DATA;
                if (gap == 0 && fault && s_axis_tx_tvalid) state <= DROP;
            end
            DATA: begin
                if (!s_axis_tx_tvalid) state <= DROP;
                else if (ends) state <= WAIT;
                else if (s_axis_tx_tlast) state <= PAD;
            end
            PAD: if (ends) state <= WAIT;
            default: if (s_axis_tx_tvalid && s_axis_tx_tlast) state <= WAIT;
        endcase
        if (rst) begin
            state   <= WAIT;
            gap     <= 3'd0;
            lane4   <= 1'b0;
            deficit <= 2'd0;
        end
    end

    always_ff @(posedge clk) begin
        inc_frames  <= !rst && ends && !spoil;
        inc_aborted <= !rst && ends && spoil;
        inc_fault   <= !rst && state == WAIT && gap == 0 && fault && s_axis_tx_tvalid;
        inc_paused  <= !rst && state == WAIT && gap == 0 && pause && s_axis_tx_tvalid;
        inc_bytes   <= {index, 3'd0} + {10'd0, count};
    end

    // Stage 1: the word; absent bytes are zero, as padding is. The CRC includes the word, with its
    // zeros.
    wire [63:0] masked;
    wire [63:0] word_in = state == PAD ? 64'd0 : masked;
    logic        w_valid, w_last, w_spoilt;
    logic [63:0] w_data;
    logic [3:0]  w_count;
    logic [31:0] crc, crc_next;

    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_mask
            assign masked[i*8+:8] = s_axis_tx_tdata[i*8+:8] & {8{s_axis_tx_tkeep[i]}};
        end
    endgenerate

    plx_crc32 check (
        .state(start ? 32'hFFFFFFFF : crc),
        .data(word_in),
        .next(crc_next)
    );

    always_ff @(posedge clk) w_valid <= !rst && step;

    always_ff @(posedge clk) begin
        crc      <= crc_next;
        w_data   <= word_in;
        w_last   <= ends;
        w_count  <= count;
        w_spoilt <= spoil;
    end

    // Stage 2: the word and, with the last one, the FCS: the CRC without the zeros that padded the
    // word. The preamble of a frame is the first word here. `shift`: the frame began in lane 4.
    wire [8*32-1:0] without;
    wire  [2:0]     zeros = 3'd0 - w_count[2:0];
    logic           x_preamble, x_valid, x_last, x_spoilt, x_shift;
    logic [63:0]    x_data;
    logic [3:0]     x_count;
    logic [31:0]    x_fcs;

    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_back
            plx_crc32_back #(.BYTES(i)) back (.state(crc), .previous(without[i*32+:32]));
        end
    endgenerate

    always_ff @(posedge clk) begin
        x_preamble <= !rst && start;
        x_valid    <= !rst && w_valid;
        if (start) x_shift <= lane4;
        if (rst) x_shift <= 1'b0;
    end

    always_ff @(posedge clk) begin
        x_data   <= w_data;
        x_last   <= w_last;
        x_count  <= w_count;
        x_spoilt <= w_spoilt;
        x_fcs    <= ~without[zeros*32+:32];
    end

    // The last word with FCS, end and idles after its bytes; its second half is the next word.
    wire [127:0] end_data    = {64'd0, x_data} | ({{11{IDLE}}, TERMINATE, x_fcs} << {x_count, 3'd0});
    wire [15:0]  end_control = 16'hFFF0 << x_count;
    logic [63:0] rest_data;
    logic [7:0]  rest_control;
    wire  [63:0] end_low      = end_data[63:0];
    wire  [63:0] end_high     = end_data[127:64];
    wire  [7:0]  control_low  = end_control[7:0];
    wire  [7:0]  control_high = end_control[15:8];

    // The XGMII word, if the frame begins in lane 0.
    wire [31:0]  idle_data    = local_fault ? REMOTE_FAULT : {4{IDLE}};
    wire [3:0]   idle_control = local_fault ? 4'h1 : 4'hF;
    logic [63:0] y_data;
    logic [7:0]  y_control;
    logic        rest;

    always_comb begin
        y_data    = {2{idle_data}};
        y_control = {2{idle_control}};
        if (x_preamble) begin
            y_data    = PREAMBLE;
            y_control = 8'h01;
        end else if (x_valid && x_last && x_spoilt) begin
            y_data    = SPOILT;
            y_control = 8'hFF;
        end else if (x_valid && x_last) begin
            y_data    = end_low;
            y_control = control_low;
        end else if (x_valid) begin
            y_data    = x_data;
            y_control = 8'h00;
        end else if (rest) begin
            y_data    = rest_data;
            y_control = rest_control;
        end
    end

    always_ff @(posedge clk) begin
        rest         <= !rst && x_valid && x_last;
        rest_data    <= end_high;
        rest_control <= control_high;
    end

    // Half a word later, if the frame begins in lane 4. When the lane changes, the held half is idle,
    // since a gap has at least 9 bytes, so it makes no difference whether it was sent.
    logic [31:0] held_data;
    logic [3:0]  held_control;
    wire  [31:0] y_data_low     = y_data[31:0];
    wire  [31:0] y_data_high    = y_data[63:32];
    wire  [3:0]  y_control_low  = y_control[3:0];
    wire  [3:0]  y_control_high = y_control[7:4];

    always_ff @(posedge clk) begin
        xgmii_txd    <= x_shift ? {y_data_low, held_data} : y_data;
        xgmii_txc    <= x_shift ? {y_control_low, held_control} : y_control;
        held_data    <= y_data_high;
        held_control <= y_control_high;
        if (rst) begin
            xgmii_txd    <= {8{IDLE}};
            xgmii_txc    <= 8'hFF;
            held_data    <= {4{IDLE}};
            held_control <= 4'hF;
        end
    end

    assign busy = state != WAIT || w_valid || x_preamble || x_valid || rest;
endmodule
