"""The passes in their order."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from sley.driver import BadRequest
from sley.runtime.networks.graph import Network
from sley.runtime.networks.passes.activation import fuse_activation
from sley.runtime.networks.passes.attention import fuse_attention
from sley.runtime.networks.passes.batch_norm import fold_batch_norm
from sley.runtime.networks.passes.bias import fuse_bias
from sley.runtime.networks.passes.constants import Fold, fold_constants
from sley.runtime.networks.passes.quantized.activations import fuse_activations
from sley.runtime.networks.passes.quantized.attentions import fuse_attentions
from sley.runtime.networks.passes.quantized.averages import fuse_averages
from sley.runtime.networks.passes.quantized.moves import move_integers
from sley.runtime.networks.passes.quantized.products import fuse_products
from sley.runtime.networks.passes.quantized.signed import make_signed
from sley.runtime.networks.passes.quantized.standard import as_standard
from sley.runtime.networks.passes.quantized.sums import fuse_sums
from sley.runtime.networks.passes.regions import form_regions
from sley.runtime.networks.passes.scales import join_scales
from sley.runtime.networks.passes.shuffles import shuffles
from sley.runtime.networks.passes.subgraphs import inline_subgraphs
from sley.runtime.networks.passes.unused import leave_out_unused
from sley.runtime.networks.registry import OWN
from sley.runtime.tile.lowering import DUMP

Pass = Callable[[Network], Network]
QUANTIZED: dict[str, Pass] = {
    "standard": as_standard,
    "signed": make_signed,
    "moves": move_integers,
    "attentions": fuse_attentions,
    "products": fuse_products,
    "activations": fuse_activations,
    "sums": fuse_sums,
    "averages": fuse_averages,
}
"""Those that find what runs on integers; constants are folded behind each."""
PASSES: dict[str, Pass] = {
    "unused": leave_out_unused,
    "scales": join_scales,
    "batch_norm": fold_batch_norm,
    "bias": fuse_bias,
    "activation": fuse_activation,
    "attention": fuse_attention,
    "shuffles": shuffles,
    "regions": form_regions,
}


def optimised(network: Network, fold: Fold, own: Sequence[str] = ()) -> Network:
    """The network behind all passes; it is printed behind those that ``SLEY_DUMP`` names. ``fold``: computes operators
    on the host. ``own``: operators that a user does. Raises ``BadRequest`` for one that the network does not have."""
    wanted = set(os.environ.get(DUMP, "").split(","))

    def behind(name: str, network: Network) -> Network:
        if name in wanted:
            print(f"# behind {name}\n{network}", file=sys.stderr)
        return network

    network = inline_subgraphs(network, fold)
    unknown = set(own) - {node.operator for node in network.nodes}
    if unknown:
        raise BadRequest(f"operators names {', '.join(sorted(unknown))}, and {network.name!r} has no such operator")
    nodes = [replace(node, operator=OWN + node.operator) if node.operator in own else node for node in network.nodes]
    network = fold_constants(network.with_nodes(nodes), fold)
    for name, run in QUANTIZED.items():
        network = behind(name, fold_constants(run(network), fold))
    network = fold_constants(leave_out_unused(network), fold, ())
    for name, run in PASSES.items():
        network = behind(name, run(network))
    return network
