"""What can wait for a clock's edge: groups that only next values and memory writes need. Their order saves copies.

A fragment of such groups runs once in a cycle, at the edge, when everything has settled. If all other fragments that
read a register or memory at the edge have run before the one that computes it, the new contents may overwrite the old
ones at once. Otherwise they go to a second place and are copied when all fragments have run.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

from sley.sim.fast.optimise.elements import Elements
from sley.sim.fast.optimise.machine_types import SIZES, c_type
from sley.sim.fast.read.netlist import Netlist


def clock_of(elements: Elements, number: int) -> int:
    """The clock at which a group of sinks acts; -1 for other groups and for what never changes."""
    first = elements.groups[number].values[0]
    net = elements.netlist
    if elements.op[first] == "next":
        registers = elements.registers(number)
        still = all(register.next == register.value for register in registers)
        return -1 if still else registers[0].clock
    return net.writes[elements.parameter[first]].clock if elements.op[first] == "write" else -1


def memory_of(elements: Elements, number: int) -> int:
    """The memory that a group reads or writes; -1 for other groups."""
    group, net = elements.groups[number], elements.netlist
    if group.op not in ("read", "write"):
        return -1
    parameter = elements.parameter[group.values[0]]
    return net.segments[parameter if group.op == "read" else net.writes[parameter].segment].memory


def write_ports(netlist: Netlist) -> dict[int, int]:
    """For each memory the largest number of ports that write one segment."""
    by_segment = Counter(write.segment for write in netlist.writes)
    ports: dict[int, int] = defaultdict(int)
    for segment, count in by_segment.items():
        memory = netlist.segments[segment].memory
        ports[memory] = max(ports[memory], count)
    return ports


def edge_order(
    elements: Elements,
    fragments: Sequence[Sequence[int]],
    readers: Mapping[int, set[int]],
    memory_readers: Mapping[int, set[int]],
    first: int,
) -> tuple[list[int], set[int]]:
    """An order of fragments that act at an edge, each given as its groups, and the groups that may overwrite contents.

    ``readers``: for each register the fragments that read it, of which these have the numbers from ``first`` on;
    ``memory_readers``: the same for memories. Repeatedly takes a fragment that needs no second place if it comes next.
    If there is none, the fragments wait for one another in circles; of a circle that waits for nothing else the
    fragment that needs the smallest second places breaks it. A memory with several write ports is left to the order of
    its ports.
    """
    single = {memory for memory, ports in write_ports(elements.netlist).items() if ports == 1}
    waiting: dict[int, set[int]] = {}  # for each group of sinks the fragments that must come before
    groups_of: list[list[int]] = []
    awaited: dict[int, list[int]] = defaultdict(list)
    for index, groups in enumerate(fragments):
        own = [number for number in groups if elements.groups[number].op == "next"]
        writes = [number for number in groups if elements.groups[number].op == "write"]
        own += [number for number in writes if memory_of(elements, number) in single]
        groups_of.append(own)
        for number in own:
            if elements.groups[number].op == "next":
                registers = elements.registers(number)
                found = {reader for register in registers for reader in readers.get(register.value, ())}
            else:
                found = memory_readers.get(memory_of(elements, number), set())
            waiting[number] = {reader - first for reader in found if reader >= first} - {index}
            for reader in waiting[number]:
                awaited[reader].append(number)

    def size(number: int) -> int:
        group = elements.groups[number]
        return len(group.values) * SIZES[c_type(group.width)]

    costs = [sum(size(number) for number in own if waiting[number]) for own in groups_of]
    owner = {number: index for index, own in enumerate(groups_of) for number in own}
    order: list[int] = []
    in_place: set[int] = set()
    queue = [(cost, index) for index, cost in enumerate(costs)]
    heapify(queue)
    taken = bytearray(len(fragments))
    while queue:
        cost, chosen = heappop(queue)
        if taken[chosen] or cost != costs[chosen]:  # there is a newer entry
            continue
        if cost:
            circle = _circle(chosen, [set().union(*(waiting[number] for number in own)) for own in groups_of])
            cheapest = min(circle, key=lambda index: (costs[index], index))
            if cheapest != chosen:
                heappush(queue, (cost, chosen))
                chosen = cheapest
        taken[chosen] = 1
        order.append(chosen)
        in_place.update(number for number in groups_of[chosen] if not waiting[number])
        for number in awaited[chosen]:
            waiting[number].remove(chosen)
            if not waiting[number]:
                index = owner[number]
                costs[index] -= size(number)
                heappush(queue, (costs[index], index))
    return order, in_place


def _circle(start: int, awaited: Sequence[set[int]]) -> list[int]:
    """A strongly connected component that waits for nothing outside of it, among those that ``start`` waits for.

    It is the first one that Tarjan's algorithm completes (R. Tarjan, "Depth-first search and linear graph algorithms",
    SIAM Journal on Computing 1(2), 1972).
    """
    low: dict[int, int] = {start: 0}
    path = [(start, iter(sorted(awaited[start])))]
    stack = [start]
    numbers = {start: 0}
    while True:
        node, rest = path[-1]
        for after in rest:
            if after not in numbers:
                numbers[after] = low[after] = len(numbers)
                stack.append(after)
                path.append((after, iter(sorted(awaited[after]))))
                break
            low[node] = min(low[node], numbers[after])
        else:
            if low[node] == numbers[node]:
                return stack[stack.index(node) :]
            path.pop()
            low[path[-1][0]] = min(low[path[-1][0]], low[node])
