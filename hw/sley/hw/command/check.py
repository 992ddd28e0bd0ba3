"""Checks a packet as it arrives."""

from collections.abc import Iterable

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from sley.abi.config import ChipConfig
from sley.abi.faults import CODE_BITS, FaultCode
from sley.abi.instructions import INSTRUCTION_BYTES, MAX_ARGS
from sley.abi.packets import FENCE_BYTES, INLINE_ARGS, PACKET_BYTES, PACKETS, SEMAPHORE_BYTES, PacketOp
from sley.hw.command.records import GRID_BITS, WORD_BITS, WORDS, packet_beat, packet_lanes

FULL = (1 << WORD_BITS) - 1
HALF = WORD_BITS // 2


class PacketCheck(wiring.Component):
    """Finds the first thing wrong with a packet.

    The packet comes in beats of the memory bus, or as one; the words of a beat are checked side by side, and what a
    word has to be follows from those before it.

    Parameters
    ----------
    config : ChipConfig
        The chip.

    Members
    -------
    beat : In(packet_beat(config))
        Of the packet, in their order.
    nested : In(1)
        The packet is in a buffer.
    restart : In(1)
        Before the first beat of a packet.
    done : Out(1)
        High in the cycle after the last beat.
    code : Out(8), bad : Out(1), address : Out(32)
        What is wrong (NONE if nothing is), whether anything is, and where. Valid from the cycle after ``done`` until
        the next packet begins. When all is well with a FENCE, WAIT or SIGNAL, ``address`` is the low half of the one
        that it names.

    Rules
    -----
    The first of these that holds:

    1. BAD_PACKET: the opcode is not defined; address = the first 32-bit word of the packet.
    2. BAD_FIELD: a reserved bit is set, or a field is outside its range or not aligned; address = the number (0 to 15)
       of the first 32-bit word with such a bit or field (of a 64-bit field, its low word). A dimension of a grid is 1
       to 65535, of gangs the first two are the chip's columns and rows of cores. An INDIRECT packet that is ``nested``
       has a bad first word.
    3. BAD_ADDRESS: a range of memory that the packet names does not end at or below 2^addr_bits; address = the low
       half of the first such address field.
    """

    beat: data.View
    nested: Signal
    restart: Signal
    done: Signal
    code: Signal
    bad: Signal
    address: Signal

    def __init__(self, config: ChipConfig) -> None:
        self._config = config
        self._lanes = packet_lanes(config)
        super().__init__(
            {
                "beat": In(packet_beat(config)),
                "nested": In(1),
                "restart": In(1),
                "done": Out(1),
                "code": Out(CODE_BITS),
                "bad": Out(1),
                "address": Out(WORD_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lanes = self._lanes
        index = self.beat.index
        m.d.sync += self.done.eq(self.beat.valid & (index == WORDS // lanes - 1))

        self._words = [self.beat.data.word_select(lane, WORD_BITS) for lane in range(lanes)]
        self._at = [Signal(name=f"at{k}") for k in range(WORDS // lanes)]
        m.d.comb += [chosen_here.eq(self.beat.valid & (index == k)) for k, chosen_here in enumerate(self._at)]
        self._held: dict[tuple[int, int, int], Signal] = {}
        self._kind: dict[PacketOp, tuple[Signal, Signal]] = {}
        for op in PACKETS:
            name = op.name.lower()
            self._kind[op] = kind = (Signal(name=f"is_{name}"), Signal(name=f"was_{name}", reset_less=True))
            m.d.comb += kind[0].eq(self._words[0][:8] == op)
            with m.If(self._at[0]):
                m.d.sync += kind[1].eq(kind[0])
        known = Signal(reset_less=True)
        with m.If(self._at[0]):
            m.d.sync += known.eq(Cat(kind for kind, _ in self._kind.values()).any())

        # The first word that is wrong, and whether there is one.
        wrong = Signal()  # one was found; ``named`` a cycle earlier, with its number
        named = Signal()
        named_number = Signal(range(WORDS), reset_less=True)
        found = self._bad_words(m)
        lane = Signal(range(max(lanes, 2)))
        for k in reversed(range(lanes)):
            with m.If(found[k]):
                m.d.comb += lane.eq(k)
        number = index * lanes + lane if lanes > 1 else index
        if lanes == 1:  # the upper half of ``args`` is wrong because of what the field is
            number = Cat(index[0] & ~(self._at[9] & self._is(PacketOp.LAUNCH, 9)), index[1:])
        m.d.sync += [named.eq(found.any()), named_number.eq(number)]
        with m.If(self.restart):
            m.d.sync += wrong.eq(0)
        with m.Elif(named):
            m.d.sync += wrong.eq(1)
        refused = wrong | named

        # The word to be named comes to ``places``: the first one, then an address until one is outside, then a number.
        # Two ranges may be in one beat if that is half a packet.
        units = 2 if 2 * lanes >= WORDS else 1
        places = [Signal(WORD_BITS, reset_less=True, name=f"place{k}") for k in range(units)]
        with m.If(self._at[0]):
            m.d.sync += places[0].eq(self._words[0])
        outside = Cat(self._range(m, k, units, places[k], refused) for k in range(units))
        with m.If(named & ~wrong):
            m.d.sync += places[0].eq(named_number)
        m.d.comb += self.address.eq(places[0])
        if units > 1:
            second = Signal(reset_less=True)
            m.d.sync += second.eq(~refused & known & ~outside[0] & outside[1])
            with m.If(second):
                m.d.comb += self.address.eq(places[1])
        with m.If(self.done):
            m.d.sync += self.bad.eq(1)
            with m.If(~known):
                m.d.sync += self.code.eq(FaultCode.BAD_PACKET)
            with m.Elif(refused):
                m.d.sync += self.code.eq(FaultCode.BAD_FIELD)
            with m.Elif(outside.any()):
                m.d.sync += self.code.eq(FaultCode.BAD_ADDRESS)
            with m.Else():
                m.d.sync += [self.code.eq(FaultCode.NONE), self.bad.eq(0)]
        return m

    def _is(self, op: PacketOp, word: int) -> Value:
        """Whether it is such a packet, for the beat with this word."""
        now, before = self._kind[op]
        return now if word < self._lanes else before

    def _word(self, word: int) -> Value:
        return self._words[word % self._lanes]

    def _earlier(self, m: Module, name: str, word: int, bits: slice, use: int) -> Value:
        """Bits of a word, for the beat with word ``use``."""
        value = self._word(word)[bits]
        if word // self._lanes == use // self._lanes:
            return value
        key = (word, bits.start, bits.stop)
        if key not in self._held:
            self._held[key] = stored = Signal(len(value), name=name, reset_less=True)
            with m.If(self._at[word // self._lanes]):
                m.d.sync += stored.eq(value)
        return self._held[key]

    def _bad_words(self, m: Module) -> Value:
        """One bit per word of the beat: something in it is not allowed."""
        lanes, config = self._lanes, self._config
        halves = [(Signal(name=f"low{k}"), Signal(name=f"high{k}")) for k in range(lanes)]
        for word, (low, high) in zip(self._words, halves, strict=True):
            m.d.comb += [low.eq(word[:HALF].any()), high.eq(word[HALF:].any())]
        bad = [Const(0, 1)] * WORDS

        def some(word: int, mask: int) -> Value:
            """Whether one of these bits is set."""
            low, high = halves[word % lanes]
            lower, upper = mask & (FULL >> HALF), mask >> HALF
            value = self._word(word)
            return (low if lower == FULL >> HALF else (value[:HALF] & lower).any()) | (
                high if upper == FULL >> HALF else (value[HALF:] & upper).any()
            )

        def reject(op: PacketOp, word: int, condition: Value, number: int | None = None) -> None:
            """``number``: of the word to be named, if it is not this one."""
            in_beat = word // lanes
            number = word if number is None or number // lanes != in_beat else number
            bad[number] = bad[number] | (self._at[in_beat] & self._is(op, word) & condition)

        # Reserved bits. Those of all kinds of packets with the same ones are looked at together.
        for word in range(WORDS):
            masks: dict[int, list[PacketOp]] = {}
            for op, form in PACKETS.items():
                mask = ~(form.layout.mask >> WORD_BITS * word) & FULL
                mask &= ~0xFF if word == 0 else FULL
                masks.setdefault(mask, []).append(op)
            for mask, ops in masks.items():
                if mask:
                    kinds = Cat(self._is(op, word) for op in ops).any()
                    bad[word] = bad[word] | (self._at[word // lanes] & kinds & some(word, mask))

        def aligned(op: PacketOp, field: str, size: int) -> None:
            word = PACKETS[op].layout.fields[field].lsb // WORD_BITS
            reject(op, word, (self._word(word) & (size - 1)).any())

        launch = PacketOp.LAUNCH
        sizes = self._word(1)
        program_words, arg_words = sizes[:HALF], sizes[HALF:]
        reject(launch, 1, (program_words == 0) | (program_words > config.program_words) | (arg_words > MAX_ARGS))
        for word, cores in ((2, config.cores_x), (3, config.cores_y), (4, None)):
            low, high = halves[word % lanes]
            reject(launch, word, ~low | high)
            if cores is not None:
                gang = self._earlier(m, "gang", 0, slice(8, 9), word)
                reject(launch, word, gang.any() & (self._word(word)[:GRID_BITS] != cores))
        aligned(launch, "program", INSTRUCTION_BYTES)
        aligned(launch, "args", WORD_BITS // 8)
        # Of the places for arguments, those that are not used are zero.
        for word in range(8, WORDS):
            count = self._earlier(m, "arg_words", 1, slice(HALF, HALF + MAX_ARGS.bit_length()), word)
            in_memory = count > INLINE_ARGS
            unused = ~in_memory if word < 10 else in_memory | (count <= word - 10)
            reject(launch, word, unused & some(word, FULL), 8 if word == 9 else None)
        aligned(PacketOp.FENCE, "address", FENCE_BYTES)
        aligned(PacketOp.WAIT, "address", SEMAPHORE_BYTES)
        aligned(PacketOp.SIGNAL, "address", SEMAPHORE_BYTES)
        aligned(PacketOp.INDIRECT, "address", PACKET_BYTES)
        reject(PacketOp.INDIRECT, 0, self.nested)
        found = Signal(lanes)
        for lane in range(lanes):
            m.d.comb += found[lane].eq(Cat(bad[lane::lanes]).any())
        return found

    def _ranges(self, m: Module, op: PacketOp) -> list[tuple[str, Value]]:
        """The ranges of memory that the packet names: the field with the address, and how many bytes. A single word is
        aligned, so all of it lies where its first byte does."""

        def length(field: str, bits: int, size: int, use: str) -> Value:
            fields = PACKETS[op].layout.fields
            start = fields[field].lsb % WORD_BITS
            value = self._earlier(m, field, 1, slice(start, start + bits), fields[use].lsb // WORD_BITS)
            return value << exact_log2(size)

        match op:
            case PacketOp.LAUNCH:  # the lengths are in their bounds, or there is a bad field
                words = self._config.program_words.bit_length()
                return [
                    ("program", length("program_words", words, INSTRUCTION_BYTES, "program")),
                    ("args", length("arg_words", MAX_ARGS.bit_length(), WORD_BITS // 8, "args")),
                ]
            case PacketOp.COPY:
                return [(field, length("bytes", WORD_BITS, 1, field)) for field in ("src", "dst")]
            case PacketOp.FILL:
                return [("dst", length("bytes", WORD_BITS, 1, "dst"))]
            case PacketOp.FENCE | PacketOp.WAIT | PacketOp.SIGNAL:
                return [("address", Const(1, 1))]
            case PacketOp.INDIRECT:
                return [("address", length("packets", 16, PACKET_BYTES, "address"))]
        return []

    def _range(self, m: Module, unit: int, units: int, place: Signal, wrong: Value) -> Signal:
        """Whether a range, of those with this number in a beat, ended beyond the chip's address width. ``place`` takes
        its address."""
        bits, lanes = self._config.addr_bits, self._lanes
        chosen_here, due, outside, outside_now = (
            Signal(name=f"{n}{unit}") for n in ("range", "due", "outside", "outside_now")
        )
        low, high, size = (Signal(WORD_BITS, name=f"{n}{unit}") for n in ("low", "high", "size"))
        chosen: dict[int, Value] = {}
        sizes: dict[int, tuple[Value, Value]] = {}
        for op in PACKETS:
            for number, (field, value) in enumerate(self._ranges(m, op)):
                if number % units == unit:
                    word = PACKETS[op].layout.fields[field].lsb // WORD_BITS
                    choice = self._at[word // lanes] & self._is(op, word)
                    chosen[word % lanes] = chosen.get(word % lanes, Const(0, 1)) | choice
                    sizes[id(value)] = (sizes.get(id(value), (Const(0, 1),))[0] | choice, value)
        m.d.comb += [
            chosen_here.eq(Cat(chosen.values()).any()),
            size.eq(_one_of(sizes.values())),
            low.eq(_one_of([(choice, self._words[lane]) for lane, choice in chosen.items()])),
            high.eq(_one_of([(choice, self._words[(lane + 1) % lanes]) for lane, choice in chosen.items()])),
        ]
        if lanes == 1:  # the upper half of the address is the next beat
            awaited = Signal(name=f"awaited{unit}")
            with m.If(self.beat.valid):
                m.d.sync += awaited.eq(chosen_here)
            m.d.comb += [low.eq(self.beat.data), high.eq(self.beat.data)]
            m.d.sync += due.eq(self.beat.valid & awaited)
        else:
            m.d.sync += due.eq(chosen_here)

        end = Signal(WORD_BITS + 1, reset_less=True, name=f"end{unit}")
        far, next_up = Signal(reset_less=True, name=f"far{unit}"), Signal(reset_less=True, name=f"next_up{unit}")
        m.d.sync += [far.eq(high[1:].any()), next_up.eq(high[0])]
        with m.If(chosen_here):
            m.d.sync += end.eq(low + size)
        overflow = (end[bits] & end[:bits].any()) | (next_up & end.any() if bits == WORD_BITS else next_up)
        if bits < WORD_BITS:
            overflow = overflow | end[bits + 1 :].any()
        m.d.comb += outside_now.eq(outside | (due & (far | overflow)))
        m.d.sync += outside.eq(outside_now & ~self.restart)
        with m.If(chosen_here & ~wrong & ~outside_now):
            m.d.sync += place.eq(low)
        return outside_now


def _one_of(choices: Iterable[tuple[Value, Value]]) -> Value:
    """The value whose condition holds; 0 if none does."""
    result: Value = Const(0, 1)
    for choice, value in choices:
        result = result | (value & choice.replicate(len(value)))
    return result
