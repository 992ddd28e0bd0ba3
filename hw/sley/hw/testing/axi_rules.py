"""The rules of AXI for proofs: what each side of a bus owes the other."""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Const, Module, Mux, ResetSignal, Signal, Value
from amaranth.utils import exact_log2

from sley.abi.config import BURST_BOUNDARY
from sley.hw.testing.proof import Property

FIXED, INCR, WRAP = 0, 1, 2
EXOKAY = 1
PAYLOADS = {
    "aw": ("id", "addr", "len", "size", "burst", "lock", "cache", "prot", "qos"),
    "w": ("data", "strb", "last"),
    "b": ("id", "resp"),
    "ar": ("id", "addr", "len", "size", "burst", "lock", "cache", "prot", "qos"),
    "r": ("id", "data", "resp", "last"),
}


class AxiRules:
    """Rules of AXI4 and AXI4-Lite (AMBA AXI protocol specification, Arm IHI 0022, whose sections are named) for a bus.

    Parameters: ``design``, the property; ``bus``: its signals in lower case (``awvalid``); those that AXI4-Lite does
    not have may be missing; ``outstanding``: how many writes, and how many reads, wait for their answer at most;
    ``choose_write``, ``choose_read``: the solver's, if not given.

    Members: ``manager``, ``subordinate``: conditions that one side has to keep; ``limits``: that there are no more than
    ``outstanding``; ``rules()`` asserts these and those of the block that is proved, and assumes its neighbour's.

    * A3.1.2: after reset nothing is valid.
    * A3.2.1: what is valid stays, and its payload, until it is ready.
    * A3.4.1: a burst does not cross 4 KiB, its type exists, its beats are not wider than the bus; wrapping ones have 2,
      4, 8 or 16 beats and are aligned, fixed ones have up to 16.
    * A3.4.1, A3.4.2: a write burst has as many beats as its address says, the last one alone is marked; so has a read.
    * A3.3.1: a write is answered after its address and its last beat, a read after its address.
    * A5.3: answers of one ID come in the order of their addresses, each once, none to an ID that did not ask.
    * A3.4.4: EXOKAY is for exclusive accesses.
    * A4.4: the encodings of ``awcache`` and ``arcache`` that exist.

    Beats, order and answers are those of one write and one read that the solver chooses: asserted, they hold for all;
    assumed, they are assumed of the chosen ones alone. Not looked at: strobes of lanes outside a narrow or unaligned
    beat, exclusive sequences, low-power signals.
    """

    def __init__(
        self,
        m: Module,
        design: Property,
        bus: Any,
        *,
        name: str = "axi",
        outstanding: int,
        choose_write: Any = None,
        choose_read: Any = None,
    ) -> None:
        self._m, self._bus, self._name = m, bus, name
        self._outstanding = outstanding
        self.manager: list[Any] = []
        self.subordinate: list[Any] = []
        self.limits: list[Any] = []
        self._reset = Signal(name=f"{name}_was_reset", reset_less=True)
        m.d.sync += self._reset.eq(ResetSignal())
        for channel in PAYLOADS:
            self._handshake(channel, self.subordinate if channel in ("b", "r") else self.manager)
        for channel in ("aw", "ar"):
            if self._has(f"{channel}len"):
                self._address(channel)
        self.write_id, self.read_id = (
            design.constant(len(self._get(f"{channel}id")), f"{name}_{channel}_id")
            if self._has("awid")
            else Const(0, 1)
            for channel in ("aw", "ar")
        )
        choose = design.free(1, f"{name}_choose_write") if choose_write is None else choose_write
        self._write(choose)
        choose = design.free(1, f"{name}_choose_read") if choose_read is None else choose_read
        self._read(choose)

    def rules(self, *, manager: bool) -> list[Any]:
        """Statements for a proof of the manager, else of the subordinate."""
        own, others = (self.manager, self.subordinate) if manager else (self.subordinate, self.manager)
        return [*(Assert(rule) for rule in [*own, *self.limits]), *(Assume(rule) for rule in others)]

    def lemmas(self) -> list[Any]:
        """What holds between the counters of these rules, if all transactions have one ID: an inductive proof needs
        besides what ``all_addresses``, ``all_data`` and ``all_reads`` have to do with the block."""
        ahead, inside, picked = self.addresses_ahead, self.inside_data, self.write_picked
        addresses, data, beats = self.addresses_before, self.data_before, self.write_beats
        addressed, complete = self.write_addressed, self.write_complete
        followed, answered, before = self.write_followed, self.write_answered, self.answers_before
        waits = followed & ~answered
        facts = [
            ahead == self.all_addresses - self.all_data,
            self.writes == self.all_addresses,
            picked | ~(addressed | complete | (beats != 0)),
            ~picked | addressed | complete | (ahead == data - addresses),
            ~picked | ~addressed | complete | (ahead > data),
            ~picked | addressed | ~complete | (ahead < -addresses),
            ~addressed | (addresses == 0),
            ~complete | (data == 0),
            ~picked | complete | ((beats != 0) == (inside & (data == 0))),
            ~picked | complete | inside | (data != 0) | (beats == 0),
            ~picked | complete | (data == 0) | (beats == 0),
            ~complete | (beats != 0),
            ~(addressed & complete) | (beats == self.write_length + 1),
            ~(addressed & ~complete) | (beats <= self.write_length),
            followed == addressed,
            followed | ~answered,
            ~waits | complete | (self.all_data == before - data),
            ~waits | ~complete | (self.all_data > before),
            ~waits | (self.all_addresses > before),
            self.reads == self.all_reads,
            self.read_picked | ~(self.read_done | (self.read_beats != 0)),
            ~self.read_picked | self.read_done | (self.reads > self.reads_before),
            ~self.read_picked | self.read_done | (self.reads_before == 0) | (self.read_beats == 0),
            ~self.read_picked | self.read_done | (self.read_beats <= self.read_length),
        ]
        return [Assert(fact) for fact in facts]

    def _has(self, signal: str) -> bool:
        return hasattr(self._bus, signal)

    def _get(self, signal: str, missing: int = 0) -> Value:
        return Value.cast(getattr(self._bus, signal, missing))

    def _signal(self, shape: Any, name: str, *, reset_less: bool = False) -> Signal:
        return Signal(shape, name=f"{self._name}_{name}", reset_less=reset_less)

    def _passes(self, channel: str) -> Value:
        return self._get(f"{channel}valid") & self._get(f"{channel}ready")

    def _handshake(self, channel: str, side: list[Any]) -> None:
        m = self._m
        valid, ready = self._get(f"{channel}valid"), self._get(f"{channel}ready")
        payload = Cat(self._get(channel + field) for field in PAYLOADS[channel] if self._has(channel + field))
        waits = self._signal(1, f"{channel}_waits")
        offered = self._signal(len(payload), f"{channel}_offered", reset_less=True)
        m.d.sync += [waits.eq(valid & ~ready), offered.eq(payload)]
        side += [~self._reset | ~valid, ~waits | (valid & (payload == offered))]

    def _address(self, channel: str) -> None:
        address, beats = self._get(f"{channel}addr"), self._get(f"{channel}len")
        size, burst, cache = (self._get(channel + field) for field in ("size", "burst", "cache"))
        data = self._get("wdata" if channel == "aw" else "rdata")
        start = self._signal(exact_log2(BURST_BOUNDARY), f"{channel}_start")  # bytes into the page, of the first beat
        self._m.d.comb += start.eq(address & ~((1 << size) - 1))
        lengths = Cat(beats == n - 1 for n in (2, 4, 8, 16)).any()
        kinds = [
            (burst == FIXED) & (beats < 16),
            (burst == INCR) & (start + ((beats + 1) << size) <= BURST_BOUNDARY),
            (burst == WRAP) & lengths & ((address & ((1 << size) - 1)) == 0),
        ]
        rules = [Cat(kinds).any(), size <= exact_log2(len(data) // 8), cache[1] | ~cache[2:].any()]
        self.manager += [~self._get(f"{channel}valid") | rule for rule in rules]

    def _write(self, choose: Any) -> None:
        m, limit = self._m, self._outstanding
        address, beat, answer = (self._passes(channel) for channel in ("aw", "w", "b"))
        last = self._get("wlast", 1)

        # The chosen burst is the next one of which neither address nor data has begun to pass.
        ahead = self.addresses_ahead = self._signal(range(-limit - 1, limit + 2), "addresses_ahead")  # of the data
        inside = self.inside_data = self._signal(1, "inside_data")
        picked = self.write_picked = self._signal(1, "write_picked")
        now = self._signal(1, "write_picked_now")
        addresses = self.addresses_before = self._signal(range(limit + 2), "addresses_before")
        data = self.data_before = self._signal(range(limit + 2), "data_before")
        addresses_left, data_left = (self._signal(range(limit + 2), f"{name}_left") for name in ("addresses", "data"))
        m.d.sync += [ahead.eq(ahead + address - (beat & last)), inside.eq(Mux(beat, ~last, inside))]
        m.d.comb += [now.eq(picked | choose), addresses_left.eq(addresses), data_left.eq(data)]
        with m.If(~picked):
            m.d.comb += [
                addresses_left.eq(Mux(ahead < inside, inside - ahead, 0)),
                data_left.eq(Mux(ahead < inside, inside, ahead)),
            ]
        with m.If(now):
            m.d.sync += [
                picked.eq(1),
                addresses.eq(addresses_left - (address & (addresses_left != 0))),
                data.eq(data_left - (beat & last & (data_left != 0))),
            ]

        addressed = self.write_addressed = self._signal(1, "write_addressed")
        complete = self.write_complete = self._signal(1, "write_complete")
        length = self.write_length = self._signal(8, "write_length")
        beats = self.write_beats = self._signal(9, "write_beats")
        my_address = self._signal(1, "my_address")
        my_beat = now & beat & (data_left == 0) & ~complete
        m.d.comb += my_address.eq(now & address & (addresses_left == 0) & ~addressed)
        with m.If(my_address):
            m.d.sync += [addressed.eq(1), length.eq(self._get("awlen"))]
        with m.If(my_beat):
            m.d.sync += [beats.eq(beats + 1), complete.eq(last)]
        known, beats_due = addressed | my_address, Mux(addressed, length, self._get("awlen"))
        self.manager += [
            ~my_beat | (beats < 256),
            ~(my_beat & known) | (last == (beats == beats_due)),
            ~my_address | (beats == Mux(complete, beats_due + 1, 0)) | (~complete & (beats <= beats_due)),
        ]

        same = self._get("bid") == self.write_id
        own = address & (self._get("awid") == self.write_id)
        unanswered = self.writes = self._unanswered("writes", own, answer & same)
        followed = self.write_followed = self._signal(1, "write_followed")
        answered = self.write_answered = self._signal(1, "write_answered")
        before = self.answers_before = self._signal(range(limit + 2), "answers_before")
        exclusive = self._signal(1, "write_exclusive")
        my_answer = self._get("bvalid") & same & followed & (before == 0) & ~answered
        with m.If(my_address & own):
            m.d.sync += [followed.eq(1), before.eq(unanswered - (answer & same)), exclusive.eq(self._get("awlock"))]
        with m.Elif(answer & same & followed):
            m.d.sync += [answered.eq(answered | (before == 0)), before.eq(Mux(before == 0, 0, before - 1))]
        self.subordinate += [
            ~(self._get("bvalid") & same) | (unanswered != 0),
            ~my_answer | complete,
            ~my_answer | (self._get("bresp") != EXOKAY) | exclusive,
        ]
        self.all_addresses = self._limit("all_addresses", address, "b", answer)
        self.all_data = self._limit("all_data", beat & last, "b", answer)

    def _read(self, choose: Any) -> None:
        m = self._m
        same, last = self._get("rid") == self.read_id, self._get("rlast", 1)
        requests = self._passes("ar") & (self._get("arid") == self.read_id)
        beat = self._passes("r") & same
        unanswered = self.reads = self._unanswered("reads", requests, beat & last)
        picked = self.read_picked = self._signal(1, "read_picked")
        done = self.read_done = self._signal(1, "read_done")
        before = self.reads_before = self._signal(range(self._outstanding + 2), "reads_before")
        length = self.read_length = self._signal(8, "read_length")
        beats = self.read_beats = self._signal(8, "read_beats")
        exclusive = self._signal(1, "read_exclusive")
        own = self._get("rvalid") & same & picked & (before == 0) & ~done
        with m.If(requests & choose & ~picked):
            m.d.sync += [picked.eq(1), length.eq(self._get("arlen")), exclusive.eq(self._get("arlock"))]
            m.d.sync += before.eq(unanswered - (beat & last))
        with m.Elif(beat & picked):
            m.d.sync += [beats.eq(beats + own), done.eq(done | (own & last))]
            m.d.sync += before.eq(before - (last & (before != 0)))
        self.subordinate += [
            ~(self._get("rvalid") & same) | (unanswered != 0),
            ~own | (last == (beats == length)),
            ~own | (self._get("rresp") != EXOKAY) | exclusive,
        ]
        self.all_reads = self._limit("all_reads", self._passes("ar"), "r", self._passes("r") & last)

    def _unanswered(self, name: str, requests: Value, answered: Value) -> Signal:
        count = self._signal(range(self._outstanding + 2), name)
        self._m.d.sync += count.eq(count + requests - answered)
        return count

    def _limit(self, name: str, requests: Value, channel: str, answered: Value) -> Signal:
        count = self._unanswered(name, requests, answered)
        self.limits.append(count <= self._outstanding)
        self.subordinate.append(~self._get(f"{channel}valid") | (count != 0))
        return count
