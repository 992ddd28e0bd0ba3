"""What the cores execute in a soak: programs of one result, and programs that fault."""

from sley.sim.testing.watched_transport import SMALL

REGION = 1024
"""Bytes that a program writes."""
RUN = REGION // 4

COPY_PROGRAM = f"""
    mul r12, r1, #{RUN}
    add r8, r8, r12
    add r9, r9, r12
    set load.run_bytes, #{RUN}
    set load.chunks, #{RUN // SMALL.row_bytes}
    set store.run_bytes, #{RUN}
    add r11, r0, #1
    load r8, r0, r11 signal=0
    store r9, r0, r11 wait=0 signal=1
    sync wait=1
    end
"""
"""Block x copies its quarter of a region."""

LATE_COPY_PROGRAM = "add r8, r0, r14\nadd r9, r0, r15\n" + COPY_PROGRAM
"""The same with addresses that are in memory, not in the packet."""

PRODUCT_ROWS = REGION // SMALL.accumulator_row_bytes
PRODUCT_PROGRAM = f"""
    add r11, r0, #1
    set load.run_bytes, #{PRODUCT_ROWS * SMALL.row_bytes}
    set load.chunks, #{PRODUCT_ROWS}
    load r8, r0, r11 signal=0
    set load.run_bytes, #{SMALL.array * SMALL.row_bytes}
    set load.chunks, #{SMALL.array}
    add r12, r0, #{PRODUCT_ROWS}
    load r9, r12, r11 signal=1
    add r13, r0, #{SMALL.array}
    weights r12, r13 wait=1
    add r13, r0, #{PRODUCT_ROWS}
    matmul r0, r0, r13 wait=0 signal=2
    set store.run_bytes, #{REGION}
    store r10, r0, r11 wait=2 signal=3
    sync wait=3
    end
"""
"""int8 products of the first rows of a region by the first rows of another one, as int32."""

VECTOR_PROGRAM = f"""
    add r12, r0, #1
    set load.run_bytes, #{REGION}
    set load.chunks, #{PRODUCT_ROWS}
    load r8, r0, r12 space=accumulator signal=0
    vrow r10 row=bias splat=1 signal=1
    sync wait=1
    add r13, r0, #{PRODUCT_ROWS}
    vector r0, r0, r13 a_space=accumulator dtype=int32 bias=1 relu=1 out=int32 wait=0 signal=1
    set store.run_bytes, #{REGION}
    store r9, r0, r12 space=accumulator wait=1 signal=2
    sync wait=2
    end
"""
"""max(x + argument, 0) of the int32 words of a region."""

PROGRAMS = {
    "copy": COPY_PROGRAM,
    "late copy": LATE_COPY_PROGRAM,
    "product": PRODUCT_PROGRAM.replace("store r10, r0, r11", "store r10, r0, r11 space=accumulator"),
    "vector": VECTOR_PROGRAM,
    "late fault": "bne r1, r8, last\nadd r9, r0, #1\nset load.run_bytes, #4\nload r10, r0, r9\nlast: end",
    "load": "add r9, r0, #1\nset load.run_bytes, #4\nload r8, r0, r9 signal=0\nsync wait=0\nend",
    "store": "add r9, r0, #1\nset store.run_bytes, #4\nstore r8, r0, r9 signal=0\nsync wait=0\nend",
    "local": f"add r9, r0, #2\nadd r8, r0, #{SMALL.scratchpad_rows - 1}\nmatmul r8, r0, r9 signal=0\nsync wait=0\nend",
    "leftover": "sync signal=3\nsync signal=7\nend",
    "hang": "add r9, r0, #1\nsync wait=5\nend",
    "spin": "again: beq r0, r0, again\nend",
    "long run": "add r9, r0, #1\nset load.run_bytes, #8\nload r8, r0, r9 signal=0\nsync wait=0\nend",
    "five loops": "".join(f"loop #2, {10 - k}\n" for k in range(5)) + "add r9, r0, #1\n" * 6 + "end",
    "out of a loop": "loop #2, 3\nadd r9, r0, #1\nbeq r0, r0, 5\nadd r9, r0, #2\nadd r9, r0, #3\nend",
    "no end": "add r9, r0, #1\nadd r9, r0, #2",
    "illegal": "add r9, r0, #1\nadd r9, r0, #1\nend",
}
