"""What becomes of Verilog as Yosys writes it: each rewriting where it applies, none where it would change something."""

import pytest

from sley.hw.ip.module_text import TextError, parse_module
from sley.hw.ip.readable import readable_modules

HEADER = """module sley(clk, rst, a, b, c, o);
  input clk;
  wire clk;
  input rst;
  wire rst;
  input a;
  wire a;
  input b;
  wire b;
  input [3:0] c;
  wire [3:0] c;
"""
TRIGGER = "\\$auto$verilog_backend.cc:2355:dump_module$7 "


def body(text: str, more: str = "") -> str:
    """What follows the header of the one module."""
    (result,) = readable_modules(f"{HEADER}{text}endmodule\n{more}", ["a", "b", "c", "o"]).values()
    return result.partition("\n);\n\n")[2]


def test_a_register_with_its_conditions() -> None:
    text = f"""  reg {TRIGGER} = 0;
  reg [3:0] \\$1 ;
  wire \\$2 ;
  wire \\unread.field ;
  output [3:0] o;
  reg [3:0] o = 4'h3;
  assign \\$2  = a & b;
  assign \\unread.field  = c[1];
  always @(posedge clk)
    o <= \\$1 ;
  always @* begin
    if ({TRIGGER}) begin end
    \\$1  = o;
    if (\\$2 ) begin
      \\$1 [1:0] = c[3:2];
    end
    if (rst) begin
      \\$1  = 4'h3;
    end
  end
"""
    assert (
        body(text)
        == """
  always @(posedge clk) begin
    if (a & b) begin
      o[1:0] <= c[3:2];
    end
    if (rst) begin
      o <= 4'h3;
    end
  end
endmodule
"""
    )


def test_a_next_value_that_something_else_reads_stays() -> None:
    text = f"""  reg {TRIGGER} = 0;
  reg \\$1 ;
  output o;
  wire o;
  reg kept = 1'h0;
  assign o = \\$1  ^ kept;
  always @(posedge clk)
    kept <= \\$1 ;
  always @* begin
    if ({TRIGGER}) begin end
    \\$1  = kept;
    if (a) begin
      \\$1  = b;
    end
  end
"""
    result = body(text)
    assert "kept <= n1;" in result
    assert "assign o = n1 ^ kept;" in result
    assert "if (at_start) begin end" in result


def test_widths_stay_what_they_are() -> None:
    """A sum's carry would be lost, and an inversion would fill upper bits, if they moved into a wider expression."""
    text = """  wire [4:0] \\$1 ;
  wire \\$2 ;
  wire [3:0] \\$3 ;
  output [3:0] o;
  wire [3:0] o;
  assign \\$1  = c + c;
  assign \\$2  = ~ a;
  assign \\$3  = { 3'h0, \\$1 [4] };
  assign o = \\$3  + \\$2 ;
"""
    result = body(text)
    assert "assign n1 = c + c;" in result
    assert "assign n2 = ~a;" in result
    assert "assign o = n3 + n2;" in result


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a & b", "\\$1  | c[0]", "(a & b) | c[0]"),
        ("a & b", "\\$1  & c[0]", "a & b & c[0]"),
        ("~ a", "\\$1  & b", "~a & b"),
        ("~ a", "~ \\$1 ", "~(~a)"),
        ("! c", "~ \\$1 ", "c != 4'h0"),
        ("| c", "\\$1  & b", "(c != 4'h0) & b"),
        ("& c", "\\$1  & b", "(& c) & b"),
        ("c == 2'h2", "\\$1  & b", "(c == 4'h2) & b"),
        ("$signed(c) < $signed(4'h2)", "\\$1  & b", None),
        ("a ? b : c[0]", "\\$1  & b", None),
    ],
)
def test_bits_move_to_where_they_are_used(first: str, second: str, expected: str | None) -> None:
    text = f"  wire \\$1 ;\n  output o;\n  wire o;\n  assign \\$1  = {first};\n  assign o = {second};\n"
    result = body(text)
    if expected is None:
        assert f"assign n1 = {first};" in result
    else:
        assert f"assign o = {expected};" in result
        assert "n1" not in result


def test_a_bit_that_two_places_read_stays() -> None:
    text = "  wire \\$1 ;\n  output o;\n  wire o;\n  assign \\$1  = a & b;\n  assign o = \\$1  | \\$1 ;\n"
    assert "assign o = n1 | n1;" in body(text)


def test_names() -> None:
    """Plain, not reserved, and by order among those of one name."""
    text = """  wire \\chip__state$114 ;
  wire \\chip__state$9 ;
  wire \\event ;
  output o;
  wire o;
  wire chip__state;
  assign chip__state = a ? b : c[0];
  assign \\chip__state$9  = chip__state ? b : c[1];
  assign \\chip__state$114  = \\chip__state$9  ? b : c[2];
  assign \\event  = \\chip__state$114  ? b : c[3];
  assign o = \\event  ? a : c[0];
"""
    result = body(text)
    assert "assign chip_state_2 = chip_state ? b : c[1];" in result
    assert "assign chip_state_3 = chip_state_2 ? b : c[2];" in result
    assert "assign event_ = chip_state_3 ? b : c[3];" in result


def test_names_of_children_and_their_ports() -> None:
    child = """
module \\sley.part.queue0 (\\i__valid$3 , o);
  input \\i__valid$3 ;
  wire \\i__valid$3 ;
  output o;
  wire o;
  assign o = ~ \\i__valid$3 ;
endmodule
"""
    instance = """  output o;
  wire o;
  \\sley.part.queue0  part (
    .\\i__valid$3 (a),
    .o(o)
  );
"""
    parent, made = readable_modules(f"{HEADER}{instance}endmodule\n{child}", ["a"]).items()
    assert "  sley_part_queue0 part (\n    .i_valid(a),\n    .o(o)\n  );\n" in parent[1]
    assert made[0] == "sley_part_queue0"
    assert "    input wire i_valid,\n" in made[1]
    assert "// sley.part.queue0\n" in made[1]


SHELL = """
module \\sley.shell (i, o, mode);
  input [1:0] i;
  wire [1:0] i;
  input mode;
  wire mode;
  output o;
  wire o;
  part instance (
    .constant(4'h0),
    .i({ mode, i%s }),
    .o(o)
  );
endmodule

module part(constant, i, o);
  input [3:0] constant;
  wire [3:0] constant;
  input [2:0] i;
  wire [2:0] i;
  output o;
  wire o;
  assign o = i[0] ? constant[1] : i[1];
endmodule
"""


@pytest.mark.parametrize(("select", "argument", "gone"), [("", "c[3:2]", True), (" [1:0]", "c[3:2]", False)])
def test_a_shell_gives_its_place_to_what_is_in_it(select: str, argument: str, gone: bool) -> None:
    """Unless it selects bits of what may be an expression."""
    instance = f"""  output o;
  wire o;
  \\sley.shell  twice (
    .i({argument}),
    .mode(a),
    .o(o)
  );
"""
    modules = readable_modules(f"{HEADER}{instance}endmodule\n{SHELL % select}", ["a"])
    if gone:
        assert {*modules} == {"sley", "part"}
        assert "  part twice (\n    .constant(4'h0),\n    .i({ a, c[3:2] }),\n    .o(o)\n  );\n" in modules["sley"]
    else:
        assert {*modules} == {"sley", "sley_shell", "part"}
        assert "  sley_shell twice (" in modules["sley"]


def test_enumerated_values_are_explained() -> None:
    text = """  (* enum_base_type = "Kind" *)
  (* enum_value_00 = "READ" *)
  (* enum_value_10 = "WRITE" *)
  reg [1:0] kind;
  output o;
  wire o;
  assign o = kind[0];
  always @(posedge clk)
    kind <= c[1:0];
"""
    assert "  reg [1:0] kind;  // 0 READ, 2 WRITE\n" in body(text)


def test_long_constants_are_written_short() -> None:
    text = """  output [127:0] o;
  wire [127:0] o;
  assign o = a ? 128'h00000000000000000000000000000000 : 128'h000000000000000000000000000000f0;
"""
    assert "assign o = a ? 128'h0 : 128'hf0;" in body(text)


def test_cases_have_a_default() -> None:
    text = f"""  reg {TRIGGER} = 0;
  output o;
  reg o;
  always @* begin
    if ({TRIGGER}) begin end
    o = a;
    (* full_case = 32'd1 *)
    casez (c)
      4'h1:
          /* empty */;
      4'h2:
          o = b;
    endcase
  end
"""
    result = body(text)
    assert (
        "    case (c)\n      4'h1:\n          ;\n      4'h2:\n          o = b;\n      default: ;\n    endcase\n"
        in result
    )


@pytest.mark.parametrize("words", [["4'h0", "4'h0"], ["4'h0", "4'h1"]])
def test_contents_of_a_memory(words: list[str]) -> None:
    lines = "".join(f"    \\mem.ory [{index}] = {word};\n" for index, word in enumerate(words))
    text = f"""  reg [3:0] \\mem.ory  [1:0];
  output [3:0] o;
  wire [3:0] o;
  initial begin
{lines}  end
  assign o = \\mem.ory [a];
"""
    result = body(text)
    assert "  reg [3:0] mem_ory [1:0];\n" in result
    if len({*words}) == 1:
        assert "for (row = 0; row < 2; row = row + 1) mem_ory[row] = 4'h0;" in result
    else:
        assert "    mem_ory[0] = 4'h0;\n    mem_ory[1] = 4'h1;\n" in result


@pytest.mark.parametrize("statement", ["  function f;", "  always_comb x = 1;", "  generate"])
def test_what_yosys_never_wrote_is_refused(statement: str) -> None:
    with pytest.raises(TextError, match="unknown statement"):
        parse_module(f"{HEADER}{statement}\nendmodule\n")
