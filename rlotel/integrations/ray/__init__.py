"""Ray: every worker process of the job is reached, and calls of tasks and actors carry the loop they belong to."""

from __future__ import annotations

from rlotel.integrations.ray import calls, ends, facts, workers
from rlotel.patching import Patches
from rlotel.recorder import Recorder


def connect(patches: Patches, recorder: Recorder) -> None:
    """Watch Ray in the driver and in its workers; which of them this is shows when it is used."""
    recorder.process.describe(facts.read)
    calls.connect(patches, recorder)
    workers.connect(patches, recorder)
    ends.connect(patches, recorder)
