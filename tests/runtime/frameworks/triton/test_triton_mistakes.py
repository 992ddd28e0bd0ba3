"""What the device does not do is refused, with the line of the kernel; no trap of pointers and masks catches."""

from typing import Any

import numpy as np
import pytest
from triton_agreement import agree
from triton_cases import CASES
from triton_oracle import run

from sley.driver import BadRequest
from sley.runtime import Device
from sley.runtime.frameworks.triton import TritonKernel, TritonRefused

OFFSETS = """
    %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32> loc(#loc1)
    %x = tt.splat %in : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>> loc(#loc1)
    %y = tt.splat %out : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>> loc(#loc1)
    %px = tt.addptr %x, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32> loc(#loc1)
    %py = tt.addptr %y, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32> loc(#loc1)
    %n = arith.constant dense<5> : tensor<16xi32> loc(#loc1)
"""
ENDS = '\n    tt.return loc(#loc)\n  } loc(#loc)\n} loc(#loc)\n#loc = loc("kernel.py":3:1)\n'
PLACES = '#loc1 = loc("x"(#loc2))\n#loc2 = loc("kernel.py":5:9)\n#loc3 = loc(callsite(#loc4 at #loc5))\n'
PLACES += '#loc4 = loc("library.py":99:1)\n#loc5 = loc("kernel.py":8:4)\n'


def text(body: str, element: str = "f32") -> str:
    """A kernel of two pointers and a number."""
    head = f"%in: !tt.ptr<{element}>, %out: !tt.ptr<{element}>, %k: i32"
    made = f"module {{\n  tt.func public @f({head}) attributes {{noinline = false}} {{\n{OFFSETS}{body}{ENDS}{PLACES}"
    return made.replace("f32", element)


def run_both(device: Device, body: str, element: str = "f32", k: int = 3, grid: tuple[int, ...] = (1,)) -> None:
    kind = {"f32": np.float32, "i32": np.int32}[element]
    agree(device, text(body, element), grid, [np.arange(64).astype(kind), np.full(64, 9, kind), k])


def refused(device: Device, body: str, match: str, grid: int = 1) -> None:
    with pytest.raises(TritonRefused, match=match):
        TritonKernel(text(body))[grid](*arrays(device), 3)


def arrays(device: Device) -> list[Any]:
    return [device.array(np.zeros(64, np.float32)) for _ in range(2)]


LOADED = "    %v = tt.load %px : tensor<16x!tt.ptr<f32>> loc(#loc1)\n"
STORED = "    tt.store %py, %v : tensor<16x!tt.ptr<f32>> loc(#loc3)\n"
COMPARED = "    %m = arith.cmpi {}, %r, %n : tensor<16xi32> loc(#loc1)\n"
MASKED = "    %v = tt.load %px, %m, %o : tensor<16x!tt.ptr<f32>> loc(#loc1)\n"


def test_the_line_is_the_one_of_the_kernel(base: Device) -> None:
    """Of a function that was inlined, where it was called."""
    body = LOADED + "    %w = tt.histogram %v : tensor<16xf32> -> tensor<16xf32> loc(#loc3)\n" + STORED
    refused(base, body, r"^kernel\.py:8: tt\.histogram: Sley does not convert it")


@pytest.mark.parametrize("other", [0, -7, 3])
@pytest.mark.parametrize("predicate", ["slt", "sle", "sgt", "sge", "eq", "ne"])
def test_integer_other_and_any_mask(base: Device, other: int, predicate: str) -> None:
    """``other=`` is what it says, for integers too, and where the mask is no upper bound."""
    for element in ("i32", "f32"):
        number = other if element == "i32" else f"{other}.0"
        constant = f"    %o = arith.constant dense<{number}> : tensor<16x{element}> loc(#loc1)\n"
        run_both(base, constant + COMPARED.format(predicate) + MASKED + STORED, element)


def test_masks_of_stores_are_upper_bounds(base: Device) -> None:
    stored = "    tt.store %py, %v, %m : tensor<16x!tt.ptr<f32>> loc(#loc3)\n"
    run_both(base, LOADED + COMPARED.format("slt") + stored)
    for predicate in ("sgt", "eq"):
        body = LOADED + COMPARED.format(predicate) + stored
        refused(base, body, r"kernel\.py:8: tt\.store: the mask is no upper bound of each coordinate")
    body = LOADED + COMPARED.format("ne") + stored
    refused(base, body, r"tt\.store: the mask of a store is not made of coordinates and numbers")


@pytest.mark.parametrize(("name", "divisor", "taken"), [("remsi", 16, True), ("remsi", 12, False), ("divsi", 8, False)])
def test_quotients_and_remainders(base: Device, name: str, divisor: int, taken: bool) -> None:
    """``x % 16`` of 16 elements is x; with 12 elements come again, which is refused, as is a quotient of elements."""
    body = (
        f"    %d = arith.constant dense<{divisor}> : tensor<16xi32> loc(#loc1)\n"
        f"    %q = arith.{name} %r, %d : tensor<16xi32> loc(#loc1)\n"
        "    %pq = tt.addptr %x, %q : tensor<16x!tt.ptr<f32>>, tensor<16xi32> loc(#loc1)\n"
        "    %v = tt.load %pq : tensor<16x!tt.ptr<f32>> loc(#loc1)\n" + STORED
    )
    if taken:
        run_both(base, body)
    else:
        refused(
            base, body, r"kernel\.py:\d: (tt\.store: elements that % wrapped|arith\.divsi: the tile is not between)"
        )


def loop(moved: str, step: str = "%step") -> str:
    """A sum over three rounds through a pointer that is carried."""
    return (
        "    %c0 = arith.constant 0 : i32 loc(#loc1)\n    %c1 = arith.constant 1 : i32 loc(#loc1)\n"
        "    %step = arith.constant dense<16> : tensor<16xi32> loc(#loc1)\n"
        "    %zero = arith.constant dense<0.000000e+00> : tensor<16xf32> loc(#loc1)\n"
        "    %s:2 = scf.for %i = %c0 to %k step %c1 iter_args(%p = %px, %t = %zero) -> "
        "(tensor<16x!tt.ptr<f32>>, tensor<16xf32>)  : i32 {\n"
        "      %l = tt.load %p : tensor<16x!tt.ptr<f32>> loc(#loc1)\n"
        "      %u = arith.addf %t, %l : tensor<16xf32> loc(#loc1)\n"
        f"{moved}"
        f"      %n2 = tt.addptr %p, {step} : tensor<16x!tt.ptr<f32>>, tensor<16xi32> loc(#loc3)\n"
        "      scf.yield %n2, %u : tensor<16x!tt.ptr<f32>>, tensor<16xf32> loc(#loc1)\n"
        "    } loc(#loc3)\n"
        "    %w = tt.load %s#0 : tensor<16x!tt.ptr<f32>> loc(#loc1)\n"
        "    %v = arith.addf %w, %s#1 : tensor<16xf32> loc(#loc1)\n"
    )


def test_pointers_that_loops_carry(base: Device) -> None:
    """They move by the same distance in each round, and are used behind the loop; others are refused."""
    run_both(base, loop("") + STORED)
    run_both(base, loop("") + STORED, k=1)
    run_both(base, loop("") + STORED, k=0)
    moved = "      %j = tt.splat %i : i32 -> tensor<16xi32> loc(#loc1)\n"
    refused(base, loop(moved, "%j") + STORED, r"kernel\.py:8: scf\.for: a pointer that it carries does not move by the")


def test_what_is_outside(base: Device) -> None:
    body = loop("") + STORED
    with pytest.raises(TritonRefused, match=r"it reaches elements 0 to 79 from the pointer, whose memory has 0 to 63"):
        TritonKernel(text(body))[1](*arrays(base), 5)


def test_integers_that_wrap(base: Device) -> None:
    """Numbers of programs must stay in their type; elements wrap, in comparisons too."""
    body = (
        "    %id = tt.get_program_id x : i32 loc(#loc1)\n"
        "    %big = arith.constant 2000000000 : i32 loc(#loc1)\n"
        "    %o = arith.muli %id, %big : i32 loc(#loc3)\n"
        "    %po = tt.addptr %out, %o : !tt.ptr<f32>, i32 loc(#loc3)\n"
    )
    with pytest.raises(TritonRefused, match=r"kernel\.py:8: arith\.muli: the value is 0 to 4000000000 .* leaves i32"):
        run_both(base, body + LOADED + STORED, grid=(3,))
    x = np.array([-(1 << 31), (1 << 31) - 1, -5, 1 << 30] * 16, np.int32)
    doubled = "    %w = arith.addi %v, %v : tensor<16xi32> loc(#loc1)\n"
    less = "    %m = arith.cmpi slt, %w, %v : tensor<16xi32> loc(#loc1)\n"
    chosen = "    %z = arith.select %m, %w, %n : tensor<16xi1>, tensor<16xi32> loc(#loc1)\n"
    kernel = text(LOADED + doubled + less + chosen + STORED.replace("%v", "%z"), "i32")
    agree(base, kernel, (1,), [x, np.zeros(64, np.int32), 0])


def test_a_comparison_at_the_end_of_int32(base: Device) -> None:
    """The sum wraps, and is compared as it is: a difference would wrap once more."""
    body = (
        "    %big = arith.constant dense<2000000000> : tensor<16xi32> loc(#loc1)\n"
        "    %w = arith.addi %v, %big : tensor<16xi32> loc(#loc1)\n"
        "    %m = arith.cmpi slt, %w, %n : tensor<16xi32> loc(#loc1)\n"
        "    %z = arith.select %m, %w, %n : tensor<16xi1>, tensor<16xi32> loc(#loc1)\n"
    )
    x = np.array([(1 << 31) - 2_000_000_000 + number for number in (-3, 0, 1, 4)] * 16, np.int32)
    kernel = text(LOADED + body + STORED.replace("%v", "%z"), "i32")
    agree(base, kernel, (1,), [x, np.zeros(64, np.int32), 0])


@pytest.mark.parametrize("second", ["%v", "%c"])
@pytest.mark.parametrize("name", ["addi", "subi", "muli"])
def test_int8_wraps(base: Device, name: str, second: str) -> None:
    body = (
        "    %c = arith.constant dense<100> : tensor<16xi8> loc(#loc1)\n"
        f"    %w = arith.{name} %v, {second} : tensor<16xi8> loc(#loc1)\n"
        "    %z = arith.extsi %w : tensor<16xi8> to tensor<16xi32> loc(#loc1)\n"
    )
    kernel = text(LOADED + body + STORED.replace("%v", "%z"), "i8").replace("%out: !tt.ptr<i8>", "%out: !tt.ptr<i32>")
    kernel = kernel.replace(
        "%out : !tt.ptr<i8> -> tensor<16x!tt.ptr<i8>>", "%out : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>"
    )
    kernel = kernel.replace("%y, %r : tensor<16x!tt.ptr<i8>>", "%y, %r : tensor<16x!tt.ptr<i32>>")
    x = np.array([-128, 127, -1, 60, 90, -90, 2, 0] * 8, np.int8)
    agree(base, kernel, (1,), [x, np.zeros(64, np.int32), 0])


def test_a_mask_that_lets_nothing_through_in_the_last_round(base: Device) -> None:
    """20 elements in three rounds of 16; the third is all ``other=``."""
    body = (
        "    %c0 = arith.constant 0 : i32 loc(#loc1)\n    %c1 = arith.constant 1 : i32 loc(#loc1)\n"
        "    %c16 = arith.constant 16 : i32 loc(#loc1)\n    %e = arith.constant dense<20> : tensor<16xi32> loc(#loc1)\n"
        "    %o = arith.constant dense<7.000000e+00> : tensor<16xf32> loc(#loc1)\n"
        "    %v = scf.for %i = %c0 to %k step %c1 iter_args(%t = %o) -> (tensor<16xf32>)  : i32 {\n"
        "      %b = arith.muli %i, %c16 : i32 loc(#loc1)\n"
        "      %bs = tt.splat %b : i32 -> tensor<16xi32> loc(#loc1)\n"
        "      %at = arith.addi %bs, %r : tensor<16xi32> loc(#loc1)\n"
        "      %m = arith.cmpi slt, %at, %e : tensor<16xi32> loc(#loc1)\n"
        "      %p = tt.addptr %x, %at : tensor<16x!tt.ptr<f32>>, tensor<16xi32> loc(#loc1)\n"
        "      %l = tt.load %p, %m, %o : tensor<16x!tt.ptr<f32>> loc(#loc1)\n"
        "      %u = arith.addf %t, %l : tensor<16xf32> loc(#loc1)\n"
        "      scf.yield %u : tensor<16xf32> loc(#loc1)\n    } loc(#loc1)\n"
    )
    run_both(base, body + STORED)


@pytest.mark.parametrize("element", ["f16", "f32", "f64"])
def test_products_of_other_types(base: Device, element: str) -> None:
    """The array multiplies int8 and bf16; fp16 arrays are not on the chip at all."""
    case = next(case for case in CASES if case.name == "matmul")
    grid, arguments = case.make(np.random.default_rng(0))
    kind = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[element]
    given = [base.array(one.astype(kind)) if isinstance(one, np.ndarray) else one for one in arguments]
    with pytest.raises(TritonRefused, match=r"triton_kernels\.py:\d+: tt\.(load|dot)"):
        TritonKernel(case.text.replace("bf16", element))[grid](*given)


@pytest.mark.parametrize("name", ["tt.atomic_rmw", "tt.atomic_cas"])
def test_atomics(base: Device, name: str) -> None:
    body = LOADED + f"    %a = {name} fadd, acq_rel, gpu, %py, %v : tensor<16xf32> loc(#loc3)\n"
    refused(base, body, rf"kernel\.py:8: {name}: the device has no atomics: give each program a part of its own")


def test_a_loop_that_ends_by_what_it_loads(base: Device) -> None:
    body = (
        "    %w = scf.while (%i = %k) : (i32) -> i32 {\n"
        "      %c = arith.cmpi slt, %i, %k : i32 loc(#loc1)\n"
        "      scf.condition(%c) %i : i32 loc(#loc1)\n"
        "    } do {\n    ^bb0(%j: i32 loc(unknown)):\n      scf.yield %j : i32 loc(#loc1)\n    } loc(#loc3)\n"
    )
    refused(
        base, body + LOADED + STORED, r"^kernel\.py:8: scf\.while: a loop whose rounds are not known when the kernel"
    )


def test_branches(base: Device) -> None:
    """Known ones are taken; programs that differ are launches of their own; loaded ones are refused."""
    head = "    %id = tt.get_program_id x : i32 loc(#loc1)\n    %c1 = arith.constant 1 : i32 loc(#loc1)\n"
    part = (
        "    %o = arith.constant 16 : i32 loc(#loc1)\n    %at = arith.muli %id, %o : i32 loc(#loc1)\n"
        "    %as = tt.splat %at : i32 -> tensor<16xi32> loc(#loc1)\n"
        "    %pp = tt.addptr %py, %as : tensor<16x!tt.ptr<f32>>, tensor<16xi32> loc(#loc1)\n"
    )
    branch = "    scf.if %q {\n      tt.store %pp, %v : tensor<16x!tt.ptr<f32>> loc(#loc1)\n    } loc(#loc3)\n"
    known = "    %q = arith.cmpi sgt, %id, %c1 : i32 loc(#loc1)\n"
    run_both(base, head + part + LOADED + known + branch, grid=(4,))
    loaded = (
        "    %one = tt.load %in : !tt.ptr<f32> loc(#loc1)\n    %zz = arith.constant 0.000000e+00 : f32 loc(#loc1)\n"
        "    %q = arith.cmpf ogt, %one, %zz : f32 loc(#loc1)\n"
    )
    refused(
        base,
        head + part + LOADED + loaded + branch,
        r"kernel\.py:8: scf\.if: the condition is computed from loaded elements, and a side",
    )


def test_results_that_share_memory_in_another_shape(base: Device) -> None:
    """The order of loads and stores is known for one view; another one of the same elements is refused."""
    case = next(case for case in CASES if case.name == "scaled_add")
    x = base.array(np.zeros(2000, np.float32))
    with pytest.raises(TritonRefused, match="have elements in common, in other shapes"):
        TritonKernel(case.text)[8](x[0:], x[5:], x[1:], 1000, 1.0)


def test_arguments(base: Device) -> None:
    kernel = TritonKernel(text(LOADED + STORED))
    x = base.array(np.zeros(64, np.float32))
    with pytest.raises(BadRequest, match=r"f takes 3 arguments, in, out, k; given were 2"):
        kernel[1](x, x)
    with pytest.raises(BadRequest, match=r"in of f is 3; it is a device array"):
        kernel[1](3, x, 1)
    with pytest.raises(BadRequest, match=r"k of f is .*; it is a number, i32"):
        kernel[1](x, x, x)
    with pytest.raises(BadRequest, match=r"k of f is 2.5; it is a number, i32"):
        kernel[1](x, x, 2.5)
    with pytest.raises(BadRequest, match=r"k of f is 2147483648, which i32 has not"):
        kernel[1](x, x, 1 << 31)
    with pytest.raises(TritonRefused, match=r"in points to f32; the device has arrays of i8, bf16, f32 and i32"):
        kernel[1](base.array(np.zeros(64, np.int32)), x, 1)


@pytest.mark.parametrize(
    ("broken", "match"),
    [
        ("nothing", "'nothing' is no line of TTIR"),
        (text(LOADED).replace("tt.load %px", "tt.load %nobody"), "%nobody has no value where it is used"),
        (text(LOADED).replace("tensor<16xi32>", "memref<16xi32>"), "is no type of TTIR that is known"),
        ("module {\n}\n", "the module has the functions none; it has one"),
        (text(LOADED).split("    tt.return")[0], "the module ends inside of a region"),
    ],
)
def test_texts_that_are_none(broken: str, match: str) -> None:
    with pytest.raises(TritonRefused, match=match):
        TritonKernel(broken)


def test_names_are_scoped_by_region(base: Device) -> None:
    """A name of a loop's body comes again behind it, for something else."""
    again = (
        "    %l = arith.constant dense<2.000000e+00> : tensor<16xf32> loc(#loc1)\n"
        "    %u = arith.mulf %v, %l : tensor<16xf32> loc(#loc1)\n"
    )
    run_both(base, loop("") + again + STORED.replace("%v", "%u"))


def test_a_kernel_of_many_different_programs(base: Device) -> None:
    """Each number of rounds is a launch, of which there are not hundreds."""
    rounds = loop("").replace("%c0 to %k", "%c0 to %id")
    head = "    %id = tt.get_program_id x : i32 loc(#loc1)\n"
    refused(base, head + rounds + STORED, r"the programs have 200 numbers of rounds; each is a launch, at most 64", 200)


def test_the_oracle_is_no_copy() -> None:
    """A mask that is no upper bound, by hand."""
    body = "    %o = arith.constant dense<-1> : tensor<16xi32> loc(#loc1)\n" + COMPARED.format("sgt") + MASKED + STORED
    made = run(text(body, "i32"), (1,), [np.arange(64, dtype=np.int32), np.zeros(64, np.int32), 1], 16)[1]
    np.testing.assert_array_equal(made[:16], [-1] * 6 + list(range(6, 16)))
