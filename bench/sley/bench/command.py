"""The commands ``sley bench``: what a device needs in its own cycles, and engines in the time of the host."""

import typer

from sley.bench.chip.guards import add_guards
from sley.bench.conv.conv_command import conv
from sley.bench.energy.energy_command import energy
from sley.bench.engines.activity_command import activity
from sley.bench.engines.array_command import array
from sley.bench.engines.exact_command import exact
from sley.bench.engines.growth_command import growth
from sley.bench.engines.sanitize_command import sanitize
from sley.bench.engines.sim_command import sim
from sley.bench.engines.sweep_command import sweep
from sley.bench.gemm.gemm_command import gemm
from sley.bench.gemm.plans_command import plans
from sley.bench.gemm.suite_command import suite
from sley.bench.llama.llama_command import llama
from sley.bench.networks.inductor_command import inductor
from sley.bench.networks.networks_command import networks
from sley.bench.networks.onnx_command import onnx
from sley.bench.networks.torch_command import torch
from sley.bench.operators.operators_command import operators
from sley.bench.ports.ports_command import ports
from sley.bench.tile.passes_command import passes
from sley.bench.tile.products_command import products
from sley.bench.tile.timeline_command import timeline
from sley.bench.validation.validation_command import validation

bench_app = typer.Typer(help="Measure on a device, in its own cycles, and engines in host time.", no_args_is_help=True)
OF_DEVICES = (
    gemm,
    suite,
    plans,
    conv,
    operators,
    networks,
    onnx,
    torch,
    inductor,
    llama,
    ports,
    timeline,
    passes,
    products,
    energy,
    validation,
)
OF_ENGINES = (sim, activity, growth, array, sanitize, exact, sweep)
for measuring in (*OF_DEVICES, *OF_ENGINES):
    bench_app.command()(measuring)
add_guards(bench_app)
