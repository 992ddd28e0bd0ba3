"""A program of one block that writes its second argument, a word, to the address in its first one."""

from sley.abi.asm import assemble, words_to_bytes

WORDS = tuple(
    assemble(
        """
        set    store.run_bytes, #4
        vrow   r9 row=bias splat=1
        set    load.run_bytes, #0
        add    r10, r0, #1
        load   r0, r0, r10 signal=0
        vector r0, r0, r10 bias=1 out=int32 wait=0 signal=1
        store  r8, r0, r10 space=accumulator wait=1
        end
        """
    )
)
WRITER = words_to_bytes(WORDS)
