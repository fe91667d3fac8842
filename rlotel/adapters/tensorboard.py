"""TensorBoard: `add_scalar` and `add_scalars` of PyTorch's `SummaryWriter` and of tensorboardX's."""

from __future__ import annotations

from rlotel.adapters.log import Log
from rlotel.patching import Call, Patches

WRITERS = ("torch.utils.tensorboard.writer:SummaryWriter", "tensorboardX.writer:SummaryWriter")


def connect(patches: Patches, log: Log) -> None:
    """Take what any writer of this process is given."""

    def scalar(call: Call) -> None:
        given = call.arguments
        log.take({given["tag"]: given["scalar_value"]}, given["global_step"])

    def scalars(call: Call) -> None:
        given = call.arguments
        named = {f"{given['main_tag']}/{tag}": value for tag, value in given["tag_scalar_dict"].items()}
        log.take(named, given["global_step"])

    for writer in WRITERS:
        patches.watch(f"{writer}.add_scalar", after=scalar)
        patches.watch(f"{writer}.add_scalars", after=scalars)
