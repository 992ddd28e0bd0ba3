"""The load side of a GEMM program: chunks of A and B, and bias and scale, into their slots."""

from functools import partial

from sley.abi.faults import Unit
from sley.abi.instructions import Op, Share, Space
from sley.runtime.assembler.operands import ZERO, Register, Semaphores, Value
from sley.runtime.kernels.gemm.emitter import GemmEmitter
from sley.runtime.kernels.gemm.placement import Operand


class Loads(GemmEmitter):
    """Writes the loads of a chunk, and the way to the next one."""

    def _load_chunk(self) -> None:
        k, side, place = self.k, self.load, self.place
        moving = [operand for operand in (place.a, place.b) if not operand.resident]
        if self.single:
            moving = [place.b, place.a]  # the weights enter the array while the activations arrive
        with k.scratch("depth count row") as (depth, count, row):
            elements = side.depth(depth)
            for operand in moving:
                wait = self.free if operand is moving[0] and not self.single else ()
                if self.problem.epilogue.value_rows and operand is moving[-1]:
                    self._load_first_values(count, row, wait)
                    wait = ()
                self._slot_row(row, operand)
                across = side.rows(count) if operand is place.a else side.columns(count)
                signal = self.full if operand is moving[-1] or self.single else ()
                self._load(operand, elements, across, self.running[operand.name], row, wait, signal)
        if self.single:
            return
        if side.k is not None:
            for operand in moving:
                k.add(self.running[operand.name], self.running[operand.name], self._chunk_step(operand))
            k.add(side.k, side.k, self.tiling.chunk)
        self._advance_load()

    def _load_resident(self, operand: Operand) -> None:
        """The whole operand."""
        k, p = self.k, self.problem
        with k.scratch("row") as (row,):
            k.mov(row, operand.base)
            self._load(operand, p.k, p.m if operand.name == "a" else p.n, self.running[operand.name], row)

    def _load(
        self,
        operand: Operand,
        depth: Value,
        across: Value,
        address: Register,
        row: Register,
        wait: Semaphores = (),
        signal: Semaphores = (),
    ) -> None:
        """``depth`` elements along K by ``across`` of an operand, from ``address`` to ``row``, which is lost. A LOAD
        that transposes brings a piece of each row in memory."""
        k, p = self.k, self.problem
        size, runs = (depth, across) if operand.along_k else (across, depth)
        most = size if isinstance(size, int) else self._most(operand)
        share = (Share.ROW if operand.name == "a" else Share.COLUMN) if self.tiling.gang else Share.NONE
        load = partial(k.load, interleave=operand.interleave, transpose=operand.transpose, share=share)
        if not operand.transpose or most <= operand.piece:
            self._set_runs(operand, size)
            load(address, row, runs, wait=wait, signal=signal)
            return
        starts = range(0, most, operand.piece)
        with k.scratch("from piece") as (start, piece):
            k.mov(start, address)

            def forward() -> None:
                k.add(start, start, operand.piece * p.bytes)
                k.add(row, row, operand.piece_rows)

            if isinstance(size, int) and len(starts) > 3 and not wait and not signal:
                self._set_runs(operand, operand.piece)
                with k.loop(size // operand.piece):
                    load(start, row, runs)
                    forward()
                if size % operand.piece:
                    self._set_runs(operand, size % operand.piece)
                    load(start, row, runs)
                return
            for at_piece in starts:
                last = at_piece == starts[-1]
                self._set_runs(operand, self._piece(piece, size, at_piece, operand.piece))
                load(start, row, runs, wait=wait if not at_piece else (), signal=signal if last else ())
                if not last:
                    forward()

    def _most(self, operand: Operand) -> int:
        """Largest size of a chunk along the operand's rows in memory."""
        return min(self._extent(operand))

    def _extent(self, operand: Operand) -> tuple[int, int]:
        """The matrix and a chunk of it along the operand's rows in memory."""
        p, t = self.problem, self.tiling
        return (p.k, t.chunk) if operand.along_k else {"a": (p.m, t.tile_m), "b": (p.n, t.tile_n)}[operand.name]

    def _set_runs(self, operand: Operand, elements: Value) -> None:
        """Parameters of LOADs with so many elements in a run."""
        k, p, c = self.k, self.problem, self.config
        chunk, run = operand.strides(c)
        params: dict[str, Value] = {"chunk_stride": chunk, "local_stride": run, "mem_stride": operand.stride * p.bytes}
        if not isinstance(elements, Register):
            size = elements * p.bytes
            chunks = -(-size // c.row_bytes)
            if chunks == 1 and self.straight and not operand.interleave:
                del params["chunk_stride"]  # nothing goes by it
            self._set_load(**params, run_bytes=size, chunks=chunks)
            return
        with k.scratch("bytes") as (size_bytes,):
            self._set_load(**params)
            if p.bytes > 1:
                k.mul(size_bytes, elements, p.bytes)
                elements = size_bytes
            k.set(Unit.LOAD, run_bytes=elements)
            self._blocks(size_bytes, elements, c.row_bytes)
            k.set(Unit.LOAD, chunks=size_bytes)

    def _set_load(self, **params: Value) -> None:
        """Sets the parameters that are not known to have these values."""
        for name, value in params.items():
            if self.constant.get(name) != value:
                self.k.set(Unit.LOAD, **{name: value})
                if self.straight:
                    self.constant[name] = value

    def _constant_parameters(self) -> dict[str, Value]:
        """Parameters of LOAD that all loads of the main loop have in common: they are set once."""
        if self.problem.epilogue.beta:
            return {}
        moving = [operand for operand in (self.place.a, self.place.b) if not operand.resident]
        first, *others = [self._own_parameters(operand) for operand in moving]
        common = {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}
        if self.problem.epilogue.value_rows:
            for name in ("run_bytes", "chunks", "chunk_stride"):
                common.pop(name, None)
        return common

    def _own_parameters(self, operand: Operand) -> dict[str, Value]:
        """Parameters that all loads of an operand have in common."""
        p, c = self.problem, self.config
        chunk, run = operand.strides(c)
        found: dict[str, Value] = {"chunk_stride": chunk, "local_stride": run, "mem_stride": operand.stride * p.bytes}
        whole, most = self._extent(operand)[0], self._most(operand)
        if whole % most == 0 and (not operand.transpose or most <= operand.piece):
            found |= {"run_bytes": most * p.bytes, "chunks": -(-most * p.bytes // c.row_bytes)}
        return found

    def _piece(self, rd: Register, size: Value, start: int, most: int) -> Value:
        """What is left of ``size`` at ``start``, at most ``most``."""
        if not isinstance(size, Register):
            return max(0, min(size - start, most))
        if start:
            self.k.sub(rd, size, start)
            self.k.max(rd, rd, ZERO)
            self.k.min(rd, rd, most)
        else:
            self.k.min(rd, size, most)
        return rd

    def _load_first_values(self, count: Register, row: Register, wait: Semaphores) -> None:
        """Bias and scale before the last load of a macro tile's first chunk, which signals that all is here. ``wait``:
        what a chunk waits for, unless a load before has done that."""
        k, side = self.k, self.load
        if side.k is None:
            self._load_values(count, row, wait)
            return
        other, done = k.label("not first"), k.label("values")
        k.branch(Op.BNE, side.k, ZERO, other)
        self._load_values(count, row, wait)
        if wait:
            k.jump(done)
        k.place(other)
        if wait:
            k.load(ZERO, ZERO, 0, wait=wait)
        k.place(done)

    def _load_values(self, size: Register, row: Register, wait: Semaphores) -> None:
        """The slot comes round after ``slots`` + 2 macro tiles. Its last reader has finished by then: a chunk slot is
        free only when the chunk ``slots`` before was multiplied, whose macro tile had got its accumulators from
        that reader or a later one."""
        k, p, side = self.k, self.problem, self.load
        count, names = side.columns(size), p.epilogue.row_names
        if isinstance(count, Register):
            k.shl(row, count, 2)
            k.set(Unit.LOAD, run_bytes=row)
            self._blocks(row, count, self.config.array)
            k.set(Unit.LOAD, chunks=row, chunk_stride=len(names))
        else:
            chunks = -(-count // self.config.array)
            self._set_load(run_bytes=4 * count, chunks=chunks, chunk_stride=len(names))
        share = Share.COLUMN if self.tiling.gang else Share.NONE
        for number, name in enumerate(names):
            address, target = self.arg[name], self.load_values
            if isinstance(side.n, Register):
                k.mul(row, side.n, -4)
                k.add(row, row, 4 * p.n)
                k.add(row, row, address)
                address = row
            if number:
                k.add(size, target, number)
                target = size
            k.load(address, target, 1, space=Space.ACCUMULATOR, share=share, wait=() if number else wait)
        self._next_values(self.load_values)

    def _advance_load(self) -> None:
        k, p, t = self.k, self.problem, self.tiling
        moving = [operand for operand in (self.place.a, self.place.b) if not operand.resident]
        back = {o.name: self._chunk_step(o) * self.chunks if self.chunks > 1 else 0 for o in moving}

        def move(register: Register, step: int) -> None:
            if step:
                k.add(register, register, step)

        def column() -> None:
            for name in back:
                across = self._tile_step(self.place.b) * t.grid[0] if name == "b" else 0
                move(self.running[name], across - back[name])

        def row() -> None:
            for name in back:
                if name == "a":
                    move(self.running[name], self._tile_step(self.place.a) * t.grid[1] - back[name])
                elif self.running[name] is not self.arg[name]:
                    k.mov(self.running[name], self.arg[name])
                else:
                    move(self.running[name], -back[name])

        def product() -> None:
            for name, step in (("a", p.steps.batch_a), ("b", p.steps.batch_b)):
                if name in back:
                    move(self.arg[name], step * p.bytes * t.grid[2])
                    k.mov(self.running[name], self.arg[name])

        self._advance(self.load, column, row, product)
