// DSP blocks that Yosys has no models of, as far as netlists of Sley use them: the multiplier and, on an ECP5, its registers.
// What a netlist uses besides ends the simulation.
// Sources: Lattice FPGA-TN-02205 (sysDSP usage guide), Gowin UG287 (DSP user guide), AMD UG579 (UltraScale DSP slice).

module MULT18X18D (
    input A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15, A16, A17,
    input B0, B1, B2, B3, B4, B5, B6, B7, B8, B9, B10, B11, B12, B13, B14, B15, B16, B17,
    input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, CLK0, CE0, CE1, RST0,
    output P0, P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11, P12, P13, P14, P15, P16, P17,
    output P18, P19, P20, P21, P22, P23, P24, P25, P26, P27, P28, P29, P30, P31, P32, P33, P34, P35
);
  parameter REG_INPUTA_CLK = "NONE", REG_INPUTA_CE = "CE0", REG_INPUTA_RST = "RST0";
  parameter REG_INPUTB_CLK = "NONE", REG_INPUTB_CE = "CE0", REG_INPUTB_RST = "RST0";
  parameter REG_OUTPUT_CLK = "NONE", REG_OUTPUT_CE = "CE0", REG_OUTPUT_RST = "RST0";

  wire [17:0] a = {A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
  wire [17:0] b = {B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
  reg [17:0] a_register, b_register;
  reg [35:0] p_register;
  wire [17:0] a_used = REG_INPUTA_CLK == "NONE" ? a : a_register;
  wire [17:0] b_used = REG_INPUTB_CLK == "NONE" ? b : b_register;
  wire signed [18:0] a_factor = {SIGNEDA & a_used[17], a_used};
  wire signed [18:0] b_factor = {SIGNEDB & b_used[17], b_used};
  wire signed [37:0] product = a_factor * b_factor;
  assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
          P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} =
      REG_OUTPUT_CLK == "NONE" ? product[35:0] : p_register;

  always @(posedge CLK0) begin
    if (REG_INPUTA_CE == "CE1" ? CE1 : CE0) a_register <= a;
    if (REG_INPUTB_CE == "CE1" ? CE1 : CE0) b_register <= b;
    if (REG_OUTPUT_CE == "CE1" ? CE1 : CE0) p_register <= product[35:0];
    if (RST0 !== 0 || SOURCEA !== 0 || SOURCEB !== 0) $fatal(1, "%m: a use that is not modelled");
  end
endmodule

module MULT9X9 (
    input [8:0] A, B, SIA, SIB,
    input ASIGN, BSIGN, ASEL, BSEL, CE, CLK, RESET,
    output [17:0] DOUT
);
  wire signed [9:0] a = {ASIGN & A[8], A};
  wire signed [9:0] b = {BSIGN & B[8], B};
  wire signed [19:0] product = a * b;
  assign DOUT = product[17:0];
  initial #1 if (ASEL !== 0 || BSEL !== 0) $fatal(1, "%m: a use that is not modelled");
endmodule

module DSP48E2 (
    input [29:0] A, ACIN,
    input [17:0] B, BCIN,
    input [47:0] C, PCIN,
    input [26:0] D,
    input [3:0] ALUMODE,
    input CARRYIN,
    input [2:0] CARRYINSEL,
    input [4:0] INMODE,
    input [8:0] OPMODE,
    output [47:0] P
);
  parameter ACASCREG = 1, ADREG = 1, ALUMODEREG = 1, AREG = 1, BCASCREG = 1, BREG = 1, CARRYINREG = 1;
  parameter CARRYINSELREG = 1, CREG = 1, DREG = 1, INMODEREG = 1, MREG = 1, OPMODEREG = 1, PREG = 1;
  parameter AMULTSEL = "A", BMULTSEL = "B", A_INPUT = "DIRECT", B_INPUT = "DIRECT", USE_MULT = "MULTIPLY";
  parameter USE_SIMD = "ONE48";
  wire signed [26:0] a = A[26:0];
  wire signed [17:0] b = B;
  wire signed [47:0] product = a * b;
  assign P = product;
  initial begin
    #1;
    if (OPMODE !== 9'b000000101 || ALUMODE !== 0 || INMODE !== 0 || CARRYINSEL !== 0 || CARRYIN !== 0 || AREG || BREG
        || MREG || PREG || ADREG || CREG || DREG || ALUMODEREG || INMODEREG || OPMODEREG || CARRYINREG || CARRYINSELREG
        || AMULTSEL != "A" || BMULTSEL != "B" || A_INPUT != "DIRECT" || B_INPUT != "DIRECT" || USE_MULT != "MULTIPLY"
        || USE_SIMD != "ONE48")
      $fatal(1, "%m: a use that is not modelled");
  end
endmodule
