"""The chip's memory bus: AXI4 as its manager sees it."""

from amaranth.lib.wiring import In, Member, Out, Signature

from sley.abi.config import ChipConfig

ID_BITS = 1
BURST_INCR = 0b01
CACHE_NORMAL = 0b0011  # normal, non-cacheable, bufferable
RESP_ERROR = 0b10  # the bit of a response that SLVERR and DECERR share


def axi4_signature(config: ChipConfig) -> Signature:
    """All signals of AXI4 but the optional region and user ones, in lower case, ``Out`` from the manager."""

    def address(channel: str) -> dict[str, Member]:
        return {
            f"{channel}id": Out(ID_BITS),
            f"{channel}addr": Out(config.addr_bits),
            f"{channel}len": Out(8),
            f"{channel}size": Out(3),
            f"{channel}burst": Out(2),
            f"{channel}lock": Out(1),
            f"{channel}cache": Out(4),
            f"{channel}prot": Out(3),
            f"{channel}qos": Out(4),
            f"{channel}valid": Out(1),
            f"{channel}ready": In(1),
        }

    return Signature(
        {
            **address("aw"),
            "wdata": Out(8 * config.bus_bytes),
            "wstrb": Out(config.bus_bytes),
            "wlast": Out(1),
            "wvalid": Out(1),
            "wready": In(1),
            "bid": In(ID_BITS),
            "bresp": In(2),
            "bvalid": In(1),
            "bready": Out(1),
            **address("ar"),
            "rid": In(ID_BITS),
            "rdata": In(8 * config.bus_bytes),
            "rresp": In(2),
            "rlast": In(1),
            "rvalid": In(1),
            "rready": Out(1),
        }
    )
