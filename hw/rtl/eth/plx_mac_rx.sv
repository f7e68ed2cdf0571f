// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Receiving half of a 10 Gb/s MAC (IEEE 802.3, clauses 3, 4 and 46): from XGMII, 8 lanes at single
// data rate, to a stream of frames without preamble and FCS. Cut-through, without back-pressure.
// Every start on the wire ends as exactly one of: good, or one of the causes below. (One ends in each cycle at
// most, and 7 without delimiter wait: with two starts in each word, for longer than that, some are not counted.)
// Latency from the XGMII word with the eighth byte of the frame to the first word out: 3 cycles.

module plx_mac_rx (
    input  logic        clk,
    input  logic        rst,

    // XGMII, lane 0 in the lowest bits.
    input  logic [63:0] xgmii_rxd,
    input  logic [7:0]  xgmii_rxc,

    // Frames, from the destination address on. tuser, with tlast: bad, and counted in this module.
    output logic        m_axis_rx_tvalid,
    output logic [63:0] m_axis_rx_tdata,
    output logic [7:0]  m_axis_rx_tkeep,
    output logic        m_axis_rx_tlast,
    output logic        m_axis_rx_tuser,

    // Time of the frame's start; stable from its first word to its last.
    output logic [31:0] m_axis_rx_cycle_ts,
    output logic [63:0] m_axis_rx_timestamp_ns,
    output logic        m_axis_rx_timestamp_valid,

    // The present time: in cycles, and in nanoseconds.
    input  logic [31:0] now_cycle_ts,
    input  logic [63:0] now_timestamp_ns,
    input  logic        now_timestamp_valid,

    // Settings: whether frames are received, from the next start on; the maximum length, from
    // destination address to FCS, tags included; the port's MAC address, first byte in the highest bits.
    input  logic        cfg_enable,
    input  logic [13:0] cfg_max_frame,
    input  logic [47:0] cfg_mac,

    // A pause frame was received, for so many quanta of 512 bit times (annex 31B).
    output logic        pause_valid,
    output logic [15:0] pause_quanta,

    // Counts: a frame, with its bytes from destination address on, without FCS; the cause of a bad
    // frame, or its consumption here. For an oversize frame, the bytes that were output.
    output logic        inc_frames,
    output logic [13:0] inc_bytes,
    output logic        inc_symbol,
    output logic        inc_oversize,
    output logic        inc_runt,
    output logic        inc_fcs,
    output logic        inc_pause,

    // A frame is inside.
    output logic        busy
);
    // Control characters, table 46-3.
    localparam [7:0] START = 8'hFB, TERMINATE = 8'hFD, ERROR = 8'hFE;
    localparam [7:0] SFD = 8'hD5;  // start frame delimiter, 3.2.2
    // State of the CRC behind any frame with its own FCS, before complement.
    localparam [31:0] RESIDUE = 32'hDEBB20E3;

    // The XGMII word: where a frame cannot continue, and why.
    logic [7:0] raw_end, raw_terminate, raw_error;

    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_lane
            wire [7:0] lane = xgmii_rxd[i*8+:8];
            assign raw_end[i]       = xgmii_rxc[i] && lane != ERROR;
            assign raw_terminate[i] = xgmii_rxc[i] && lane == TERMINATE;
            assign raw_error[i]     = xgmii_rxc[i] && lane == ERROR;
        end
    endgenerate

    // A start has its own column, so it is in lane 0 or 4 (46.3.1.2), and the delimiter is the last
    // byte of the 8 that begin with it. The preamble between them is not checked.
    wire start_low  = xgmii_rxc[0] && xgmii_rxd[7:0] == START;
    wire start_high = xgmii_rxc[4] && xgmii_rxd[39:32] == START;
    wire sfd_low    = xgmii_rxc[3:0] == 4'd0 && xgmii_rxd[31:24] == SFD;
    wire sfd_high   = xgmii_rxc[7:4] == 4'd0 && xgmii_rxd[63:56] == SFD;

    // A start in lane 4, whose second half is in this word.
    logic half;
    wire  begin_low  = start_low && xgmii_rxc[3:1] == 3'd0 && sfd_high && cfg_enable;
    wire  begin_high = half && sfd_low;
    wire  spoilt_low  = start_low && !(xgmii_rxc[3:1] == 3'd0 && sfd_high) && cfg_enable;
    wire  spoilt_high = half && !sfd_low;
    wire  spoilt_half = start_high && xgmii_rxc[7:5] != 3'd0 && cfg_enable;

    // Words of the frame begin in lane 0, or in lane 4 of the word before.
    logic        shift, in_frame, first;
    logic [31:0] high_data;
    logic [3:0]  high_end, high_terminate, high_error;

    wire [63:0] data      = shift ? {xgmii_rxd[31:0], high_data} : xgmii_rxd;
    wire [7:0]  ends      = shift ? {raw_end[3:0], high_end} : raw_end;
    wire [7:0]  terminate = shift ? {raw_terminate[3:0], high_terminate} : raw_terminate;
    wire [7:0]  error     = shift ? {raw_error[3:0], high_error} : raw_error;
    // Lanes before the first control character that ends the frame, and that character's lane.
    wire [7:0]  body      = ~ends & (ends - 8'd1);
    wire [7:0]  last_lane = ends & ~(ends - 8'd1);
    wire [63:0] mask;

    generate
        for (genvar i = 0; i < 8; i = i + 1) begin : g_mask
            assign mask[i*8+:8] = {8{body[i]}};
        end
    endgenerate

    // Each start without delimiter becomes an empty frame, in a free slot of the pipeline: not while the verdict of
    // the frame before needs the next cycle. As many as three begin with a word.
    logic [2:0] spoilt, waiting;
    logic       a_valid, a_first, a_end, a_symbol, fin, short_tail;
    wire        fake  = waiting != 3'd0 && !in_frame && !(fin && !short_tail);
    wire  [1:0] more  = {1'b0, spoilt[0]} + {1'b0, spoilt[1]} + {1'b0, spoilt[2]};
    wire  [3:0] total_waiting = {1'b0, waiting} + {2'd0, more} - {3'd0, fake};

    always_ff @(posedge clk) begin
        half <= start_high && xgmii_rxc[7:5] == 3'd0 && cfg_enable;
        if (begin_low || begin_high) in_frame <= 1'b1;
        else if (|ends) in_frame <= 1'b0;
        spoilt  <= {spoilt_half, spoilt_high, spoilt_low};
        waiting <= total_waiting[3] ? 3'd7 : total_waiting[2:0];
        if (rst) begin
            half     <= 1'b0;
            in_frame <= 1'b0;
            spoilt   <= 3'd0;
            waiting  <= 3'd0;
        end
    end

    always_ff @(posedge clk) begin
        if (begin_low || begin_high) shift <= begin_high;
        first          <= begin_low || begin_high;
        high_data      <= xgmii_rxd[63:32];
        high_end       <= raw_end[7:4];
        high_terminate <= raw_terminate[7:4];
        high_error     <= raw_error[7:4];
    end

    // Stage A: a word of the frame, aligned; bytes behind its end are zero.
    logic [63:0] a_data;
    logic [3:0]  a_bytes;

    always_ff @(posedge clk) begin
        a_valid <= !rst && (in_frame || fake);
    end

    always_ff @(posedge clk) begin
        a_first  <= first || fake;
        a_end    <= |ends || fake;
        a_symbol <= |(error & body) || |(last_lane & ~terminate) || fake;
        a_data   <= data & mask;
        a_bytes  <= fake ? 4'd0 : {3'd0, body[0]} + {3'd0, body[1]} + {3'd0, body[2]} + {3'd0, body[3]}
            + {3'd0, body[4]} + {3'd0, body[5]} + {3'd0, body[6]} + {3'd0, body[7]};
    end

    // Bytes that the frame may still have, words so far, and errors so far.
    logic [13:0] left;
    logic [10:0] words;
    logic        symbol, cut;
    wire [13:0]  left_now   = a_first ? cfg_max_frame : left;
    wire [10:0]  words_now  = a_first ? 11'd0 : words;
    wire         symbol_now = a_symbol || (symbol && !a_first);
    wire         live       = a_valid && (a_first || !cut);
    wire         over       = live && {10'd0, a_bytes} > left_now;
    assign       fin        = live && (a_end || over);
    // The previous word is the frame's last: this word has only bytes of the FCS, or surplus bytes.
    assign       short_tail = fin && (over || a_bytes <= 4'd4);
    // A pause frame so far: addressed to all MACs or to this one, with its type and opcode.
    logic        pause_address, pause_opcode;
    logic [15:0] quanta;
    wire  [47:0] mac = {cfg_mac[7:0], cfg_mac[15:8], cfg_mac[23:16], cfg_mac[31:24], cfg_mac[39:32], cfg_mac[47:40]};

    always_ff @(posedge clk) begin
        if (live) begin
            left   <= left_now - 14'd8;
            words  <= words_now + 11'd1;
            symbol <= symbol_now;
            cut    <= over;
            if (words_now == 0) pause_address <= a_data[47:0] == 48'h0100_00C2_8001 || a_data[47:0] == mac;
            if (words_now == 1) pause_opcode <= a_data[63:32] == 32'h0100_0888;
            if (words_now == 2) quanta <= {a_data[7:0], a_data[15:8]};
        end
    end

    // Stage B: the word before the one in A, and the CRC up to it.
    logic        b_valid, b_end;
    logic [63:0] b_data;
    logic [2:0]  b_bytes;
    logic [31:0] crc, crc_next;
    logic [13:0] b_total;
    logic        b_symbol, b_runt;

    plx_crc32 check (
        .state(a_first ? 32'hFFFFFFFF : crc),
        .data(a_data),
        .next(crc_next)
    );

    always_ff @(posedge clk) begin
        b_valid <= !rst && live && !short_tail;
        b_end   <= !rst && fin && !short_tail;
    end

    always_ff @(posedge clk) begin
        if (live) crc <= crc_next;
        b_data   <= a_data;
        b_bytes  <= a_bytes[2:0];
        b_symbol <= symbol_now;
        b_runt   <= words_now < 11'd8;
        b_total  <= {words_now, 3'd0} + {10'd0, a_bytes};
    end

    // The verdict. The bytes added to the CRC of a whole frame are known: its own FCS, and then the
    // zeros that pad the last word, so the CRC must be one of 8 constants. If the FCS ends in A, its
    // part there (at most 4 bytes) is added here, and the constant is that without zeros after it,
    // seen from a word earlier: as many zeros before the residue as A has bytes.
    wire [8*32-1:0] expected;

    generate
        for (genvar i = 0; i <= 4; i = i + 1) begin : g_short
            plx_crc32_back #(.BYTES(i)) back (.state(RESIDUE), .previous(expected[i*32+:32]));
        end
        for (genvar i = 5; i < 8; i = i + 1) begin : g_long
            // 8 - i zeros forward are a whole word of zeros forward, and i back.
            wire [31:0] word;
            plx_crc32 forward (.state(RESIDUE), .data(64'd0), .next(word));
            plx_crc32_back #(.BYTES(i)) back (.state(word), .previous(expected[i*32+:32]));
        end
    endgenerate

    wire         ending  = b_end || short_tail;
    wire         too_big = !b_end && over;
    wire [2:0]   tail    = b_end ? b_bytes : a_bytes[2:0];
    wire [31:0]  seen    = b_end ? crc : (a_first ? 32'hFFFFFFFF : crc) ^ a_data[31:0];
    wire         is_symbol = b_end ? b_symbol : symbol_now;
    wire         is_runt   = b_end ? b_runt : words_now < 11'd8;
    wire         is_fcs    = seen != expected[tail*32+:32];
    wire         is_pause  = pause_address && pause_opcode;
    wire [13:0]  total   = b_end ? b_total : {words_now, 3'd0} + {10'd0, a_bytes};
    wire [7:0]   keep    = 8'hFF >> (b_end ? 4'd12 - {1'b0, b_bytes} : short_tail && !over ? 4'd4 - a_bytes : 4'd0);

    always_ff @(posedge clk) begin
        m_axis_rx_tvalid <= b_valid;
        inc_frames       <= ending;
        inc_oversize     <= ending && too_big;
        inc_symbol       <= ending && !too_big && is_symbol;
        inc_runt         <= ending && !too_big && !is_symbol && is_runt;
        inc_fcs          <= ending && !too_big && !is_symbol && !is_runt && is_fcs;
        inc_pause        <= ending && !too_big && !is_symbol && !is_runt && !is_fcs && is_pause;
        pause_valid      <= ending && !too_big && !is_symbol && !is_runt && !is_fcs && is_pause;
        if (rst) begin
            m_axis_rx_tvalid <= 1'b0;
            inc_frames       <= 1'b0;
            inc_oversize     <= 1'b0;
            inc_symbol       <= 1'b0;
            inc_runt         <= 1'b0;
            inc_fcs          <= 1'b0;
            inc_pause        <= 1'b0;
            pause_valid      <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        m_axis_rx_tdata <= b_data;
        m_axis_rx_tkeep <= keep;
        m_axis_rx_tlast <= ending;
        m_axis_rx_tuser <= too_big || is_symbol || is_runt || is_fcs || is_pause;
        inc_bytes       <= too_big ? {words_now, 3'd0} : total < 14'd4 ? 14'd0 : total - 14'd4;
        pause_quanta    <= quanta;
    end

    // The time of the start accompanies the frame. A start before the first word of the previous frame
    // is out would make that frame a runt, which is bad.
    logic [96:0] start_time, out_time;
    logic        b_first;

    assign {m_axis_rx_timestamp_valid, m_axis_rx_timestamp_ns, m_axis_rx_cycle_ts} = out_time;

    always_ff @(posedge clk) begin
        if (start_low || start_high) start_time <= {now_timestamp_valid, now_timestamp_ns, now_cycle_ts};
        b_first <= a_first;
        if (b_first) out_time <= start_time;
    end

    assign busy = half || in_frame || |spoilt || waiting != 0 || a_valid || b_valid || m_axis_rx_tvalid;
endmodule
