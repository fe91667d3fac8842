"""The step of the last durable checkpoint: what a restart would come back to."""

import rlotel
from rlotel.testing import Telemetry


def test_the_step_to_come_back_to_stays_however_many_loops_end_before_the_next_checkpoint(
    telemetry: Telemetry,
) -> None:
    with rlotel.loop(), rlotel.checkpoint("save", tier="local_disk", step=7):
        pass
    for _ in range(10):
        with rlotel.loop():
            pass
    assert telemetry.value("rl.checkpoint.step", **{"rl.checkpoint.tier": "local_disk"}) == 7
