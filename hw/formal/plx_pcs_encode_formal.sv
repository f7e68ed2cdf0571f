// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// For any word of XGMII: the decoder gives back a legal word as it was, with the kind that it has in the
// encoder, and any other becomes a block of errors, of which it makes errors. What is legal is stated here
// once more, from 49.2.13.2.3, lane by lane.
// formal: aiger
// formal: always 2
// mutant: high_data, o_4, low_codes => high_data, o_0, low_codes
// mutant: 64'hFFFF_FFFF_FFFF_8000 << 7 * i => 64'hFFFF_FFFF_FFFF_8000 << 7
// mutant: low_c && high_c && error == 8'd0 => low_c && high_c
// mutant: xgmii_txc[7:4] == 4'h1 && lane_4 == pcs_pkg::START => lane_4 == pcs_pkg::START

module plx_pcs_encode_formal (
    input logic        clk,
    input logic [63:0] xgmii_txd,
    input logic [7:0]  xgmii_txc
);
    logic [2:0]  kind, kind_back;
    logic [1:0]  header;
    logic [63:0] data, xgmii_rxd;
    logic [7:0]  xgmii_rxc;

    plx_pcs_encode dut (.*);
    plx_pcs_decode back (.header, .data, .kind(kind_back), .xgmii_rxd, .xgmii_rxc);

    // Lanes: data, an end, a start, the beginning of an ordered set, any other character, an error.
    logic [7:0] d, t, s, o, c, e;

    always_comb begin
        for (int i = 0; i < 8; i = i + 1) begin
            d[i] = !xgmii_txc[i];
            t[i] = xgmii_txc[i] && xgmii_txd[i*8+:8] == 8'hFD;
            s[i] = xgmii_txc[i] && xgmii_txd[i*8+:8] == 8'hFB;
            o[i] = xgmii_txc[i] && (xgmii_txd[i*8+:8] == 8'h9C || xgmii_txd[i*8+:8] == 8'h5C);
            e[i] = xgmii_txc[i] && xgmii_txd[i*8+:8] == 8'hFE;
            c[i] = e[i] || xgmii_txc[i] && (xgmii_txd[i*8+:8] == 8'h07 || xgmii_txd[i*8+:8] == 8'h1C
                || xgmii_txd[i*8+:8] == 8'h3C || xgmii_txd[i*8+:8] == 8'h7C || xgmii_txd[i*8+:8] == 8'hBC
                || xgmii_txd[i*8+:8] == 8'hDC || xgmii_txd[i*8+:8] == 8'hF7);
        end
    end

    logic ends, low, high, set_0, set_4, is_c, is_s;

    always_comb begin
        ends = 1'b0;
        for (int i = 0; i < 8; i = i + 1) begin
            if (t[i] && (d | 8'hFF << i) == 8'hFF && (c | 8'hFF >> (7 - i)) == 8'hFF) ends = 1'b1;
        end
        low   = c[0] && c[1] && c[2] && c[3];
        high  = c[4] && c[5] && c[6] && c[7];
        set_0 = o[0] && d[1] && d[2] && d[3];
        set_4 = o[4] && d[5] && d[6] && d[7];
        is_c  = low && high && e == 0 || low && set_4 || set_0 && high || set_0 && set_4;
        is_s  = s[0] && (d | 8'h01) == 8'hFF || s[4] && d[5] && d[6] && d[7] && (low || set_0);
    end

    always_ff @(posedge clk) begin
        assert (kind == (is_c ? 3'd0 : is_s ? 3'd1 : ends ? 3'd2 : d == 8'hFF ? 3'd3 : 3'd4));
        assert (kind_back == kind);
        assert (header == (d == 8'hFF ? 2'b10 : 2'b01));
        if (kind == 3'd4) assert (data == {{8{7'h1E}}, 8'h1E} && xgmii_rxc == 8'hFF && xgmii_rxd == {8{8'hFE}});
        else assert (xgmii_rxc == xgmii_txc && xgmii_rxd == xgmii_txd);
    end
endmodule
