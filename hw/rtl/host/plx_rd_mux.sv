// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Merges the read requests of several clients into those of one plx_dma_rd, round robin, and returns the
// data to the client that the upper half of the tag names. Data arrive in the order of the requests,
// so a client that does not accept its own blocks all others: no client requests data that it has no
// space for. Requests wait 1 cycle, data none.

module plx_rd_mux #(
    parameter CLIENTS = 5  // clients
) (
    input  logic                  clk,
    input  logic                  rst,

    // Requests of each, stable until accepted; with the client's own tag.
    input  logic [CLIENTS-1:0]    s_desc_valid,
    output logic [CLIENTS-1:0]    s_desc_ready,
    input  logic [CLIENTS*64-1:0] s_desc_address,
    input  logic [CLIENTS*16-1:0] s_desc_length,
    input  logic [CLIENTS*4-1:0]  s_desc_tag,
    input  logic [CLIENTS*8-1:0]  s_desc_func,

    // All requests, in order.
    output logic                  m_desc_valid,
    input  logic                  m_desc_ready,
    output logic [63:0]           m_desc_address,
    output logic [15:0]           m_desc_length,
    output logic [7:0]            m_desc_tag,
    output logic [7:0]            m_desc_func,

    // Data, with the tag of their request.
    input  logic                  s_data_tvalid,
    output logic                  s_data_tready,
    input  logic [255:0]          s_data_tdata,
    input  logic [31:0]           s_data_tkeep,
    input  logic                  s_data_tlast,
    input  logic                  s_data_tuser,
    input  logic [7:0]            s_status_tag,

    // Data to each client; only `tvalid` selects one.
    output logic [CLIENTS-1:0]    m_data_tvalid,
    input  logic [CLIENTS-1:0]    m_data_tready,
    output logic [255:0]          m_data_tdata,
    output logic [31:0]           m_data_tkeep,
    output logic                  m_data_tlast,
    output logic                  m_data_tuser,
    output logic [3:0]            m_data_tag
);
    generate
        if (CLIENTS < 2 || CLIENTS > 16) CLIENTS_must_be_2_to_16 parameter_error ();
    endgenerate

    logic [CLIENTS-1:0] grant;
    wire                free;

    // Clients request only while there is room, so that a grant is an acceptance.
    plx_arb_rr #(.N(CLIENTS)) arbiter (.clk, .rst, .request(s_desc_valid & {CLIENTS{free}}), .grant, .done(1'b1));

    assign s_desc_ready = grant;

    // The request of the granted client, with the number of the client.
    wire  [CLIENTS*96-1:0] all;
    logic [95:0]           request;

    generate
        for (genvar c = 0; c < CLIENTS; c = c + 1) begin : g_client
            localparam [3:0] CLIENT = c;
            assign all[c*96 +: 96] = {s_desc_address[c*64 +: 64], s_desc_length[c*16 +: 16], CLIENT,
                                      s_desc_tag[c*4 +: 4], s_desc_func[c*8 +: 8]};
        end
    endgenerate

    integer i;
    always_comb begin
        request = '0;
        for (i = 0; i < CLIENTS; i = i + 1) request = request | (all[i*96 +: 96] & {96{grant[i]}});
    end

    plx_skid #(.WIDTH(96)) requests (
        .clk,
        .rst,
        .s_valid(|grant),
        .s_ready(free),
        .s_data(request),
        .m_valid(m_desc_valid),
        .m_ready(m_desc_ready),
        .m_data({m_desc_address, m_desc_length, m_desc_tag, m_desc_func})
    );

    // The client is one that has requested, so that no more bits of the tag matter: data come late.
    localparam CW = $clog2(CLIENTS);
    localparam [(1<<CW)-1:0] ONE = 1;

    wire [(1<<CW)-1:0] one   = ONE << s_status_tag[4 +: CW];
    wire [CLIENTS-1:0] whose = one[CLIENTS-1:0];

    assign m_data_tvalid = whose & {CLIENTS{s_data_tvalid}};
    assign s_data_tready = |(whose & m_data_tready);
    assign m_data_tdata  = s_data_tdata;
    assign m_data_tkeep  = s_data_tkeep;
    assign m_data_tlast  = s_data_tlast;
    assign m_data_tuser  = s_data_tuser;
    assign m_data_tag    = s_status_tag[3:0];

    // Bits that are always clear, and slots of absent clients.
    wire unused = &{1'b0, s_status_tag[7:4], one};
endmodule
