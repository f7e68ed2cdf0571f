// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Pointers of a transmit ring: posted, requested and done descriptors, each counted since the ring was
// enabled, wrapping. Descriptors are requested as soon as they are posted, up to 8 at once, none
// across a multiple of 8, and only as many as there are slots for. A ring stops, until it is enabled
// again, when descriptors cannot be read, or when the producer index is impossible, as it is for a
// ring at an impossible place or of an impossible size.

module plx_tx_ring_fetch #(
    parameter DESCRIPTORS = 32  // slots for descriptors that are requested and not done, a power of two
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [31:0] now_cycle_ts,

    // Registers of the ring.
    input  logic [63:0] cfg_base,
    input  logic        cfg_enable,
    input  logic [4:0]  cfg_log2_size,
    input  logic [31:0] cfg_producer,
    input  logic        wr_producer,

    // Descriptor requests.
    output logic        m_fetch_valid,
    input  logic        m_fetch_ready,
    output logic [63:0] m_fetch_address,
    output logic [3:0]  m_fetch_count,

    // Their data, a word each; `accept`: a word is a descriptor, and the time of its doorbell.
    input  logic        s_word_valid,
    input  logic        s_word_last,
    input  logic        s_word_bad,
    output logic        accept,
    output logic [31:0] doorbell_ts,

    // One of them is done; all accepted ones are.
    input  logic        s_done,
    input  logic        s_quiet,

    // Done so far; the ring restarts; runs; has stopped; requested data are outstanding.
    output logic [31:0] consumer,
    output logic        begins,
    output logic        running,
    output logic        error,
    output logic        fetching
);
    localparam DW = $clog2(DESCRIPTORS);
    localparam [31:0] PLACES = DESCRIPTORS;

    generate
        if (DESCRIPTORS < 8 || DESCRIPTORS != 1 << DW) DESCRIPTORS_must_be_a_power_of_two_at_least_8 parameter_error ();
    endgenerate

    logic [31:0] posted, asked, doorbell_ts_last;
    logic        rung, lost;
    wire         doorbell_times_free, doorbell_time_valid;
    // Requests whose data have not all come.
    logic        some_open;
    wire  [DW:0] open;

    // A producer index is at least the previous one, and at most what the ring holds.
    // The size is constant while the ring is enabled, so that it may be known a cycle late.
    logic [31:0] size, mask;
    wire [31:0] ahead   = cfg_producer - consumer;
    wire [31:0] known   = posted - consumer;
    logic       unfit;
    wire        refuses = ahead > size || ahead < known || unfit;

    // As many as are posted, and to the next multiple of 8.
    wire [31:0] left   = posted - asked;
    wire [3:0]  aligned = 4'd8 - {1'b0, asked[2:0]};
    wire [3:0]  count  = left < {28'd0, aligned} ? left[3:0] : aligned;
    // They are known a cycle later, and stay true: only a request lets them be fewer.
    logic        looked, some;
    logic [3:0]  found;
    logic [31:0] in_use;
    wire         places = in_use + {28'd0, found} <= PLACES;
    wire [31:0] index  = asked & mask;
    wire        fire   = m_fetch_valid && m_fetch_ready;

    assign begins   = cfg_enable && !running && !fetching && s_quiet;
    assign accept   = s_word_valid && !s_word_bad && !lost;
    assign fetching = m_fetch_valid || some_open;

    always_ff @(posedge clk) begin
        running <= cfg_enable && (running || begins);
        if (wr_producer) doorbell_ts_last <= now_cycle_ts;
        // The doorbell waits until a ring that was enabled too early has restarted.
        rung <= cfg_enable && (wr_producer || rung && !running);
        if (running && rung && !error) begin
            if (refuses) error <= 1'b1;
            else posted <= cfg_producer;
        end
        looked <= !m_fetch_valid;
        if (!m_fetch_valid) m_fetch_valid <= cfg_enable && running && !error && looked && some && places;
        else if (m_fetch_ready) m_fetch_valid <= 1'b0;
        if (fire) asked <= asked + {28'd0, m_fetch_count};
        if (s_done) consumer <= consumer + 32'd1;
        if (s_word_valid && s_word_bad) begin
            error <= 1'b1;
            lost  <= 1'b1;
        end
        if (rst || begins) begin
            posted   <= '0;
            asked    <= '0;
            consumer <= '0;
            error    <= 1'b0;
            lost     <= 1'b0;
        end
        some_open <= fire || (s_word_valid && s_word_last ? open > 1 : some_open);
        if (rst || begins) looked <= 1'b0;
        if (rst) begin
            running       <= 1'b0;
            rung          <= 1'b0;
            some_open     <= 1'b0;
            m_fetch_valid <= 1'b0;
        end
    end

    always_ff @(posedge clk) begin
        if (!m_fetch_valid) begin
            m_fetch_address <= cfg_base + {27'd0, index, 5'd0};
            m_fetch_count   <= found;
        end
        size   <= 32'd1 << cfg_log2_size;
        mask   <= ~(32'hFFFFFFFF << cfg_log2_size);
        unfit  <= |cfg_base[5:0] || cfg_log2_size < 5'd3 || cfg_log2_size > 5'd16;
        some   <= left != 0;
        found  <= count;
        in_use <= asked - consumer;
    end

    // Time of the last doorbell before each request.
    plx_fifo_sync #(.WIDTH(32), .DEPTH(DESCRIPTORS)) doorbell_times (
        .clk,
        .rst,
        .s_valid(fire),
        .s_ready(doorbell_times_free),
        .s_data(doorbell_ts_last),
        .m_valid(doorbell_time_valid),
        .m_ready(s_word_valid && s_word_last),
        .m_data(doorbell_ts),
        .level(open)
    );

    wire unused = &{1'b0, doorbell_times_free, doorbell_time_valid};

`ifdef FORMAL
    // Done, requested, being requested, posted, and the ring's capacity, in this order.
    wire [31:0] f_asked  = asked - consumer;
    wire [31:0] f_posted = posted - consumer;
    always_ff @(posedge clk) if (!rst) begin
        assert (some_open == (open != 0));
        assert (f_asked + (m_fetch_valid ? {28'd0, m_fetch_count} : 32'd0) <= f_posted && f_posted <= size);
    end
`endif
endmodule
