"""`rlotel demo` in a process of its own, as a user calls it: what it prints, sends and keeps."""

import json
import math
import os
import signal
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlotel import capture
from rlotel.capture import Capture
from rlotel.conformance import check
from rlotel.receiver import Receiver

COMMAND = str(Path(sysconfig.get_path("scripts")) / "rlotel")
FOREIGN = ("OTEL_", "RLOTEL_", "RAY_", "SLURM_", "FORCE_COLOR", "http", "HTTP")
FIVE = ["rl.loop", "rl.sample", "rl.reward", "ref_logprob", "rl.train", "rl.sync"]

pytestmark = pytest.mark.xdist_group("demo")


def environment(**more: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**own, **more}


def demo(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [COMMAND, "demo", *arguments],
        env=environment(**environ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@dataclass
class Recorded:
    """A run with `--json`: its document, and what it sent."""

    document: dict[str, Any]
    stderr: str
    path: Path
    capture: Capture


def record(path: Path, *arguments: str) -> Recorded:
    done = demo("--json", "--capture", str(path), *arguments)
    assert done.returncode == 0, done.stderr
    return Recorded(json.loads(done.stdout), done.stderr, path, capture.read(path))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record(tmp_path_factory.mktemp("healthy") / "capture.jsonl", "--iterations", "9")


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    mishaps = ["--fail-at", "2", "--nan-at", "4", "--stall-at", "5", "--restart"]
    return record(tmp_path_factory.mktemp("troubled") / "capture.jsonl", "--iterations", "8", *mishaps)


def increase(seen: Capture, name: str, **match: str) -> float:
    return sum(point.value or 0.0 for point in seen.latest(name, **match))


def test_the_policy_really_learns(healthy: Recorded) -> None:
    reward = healthy.document["reward"]
    assert len(reward) == 9
    assert reward[-1] > reward[0] + 0.1
    last = healthy.capture.points("rl.environment.reward.mean")[-1]
    assert last.value == reward[-1]


def test_every_iteration_is_one_trace_with_a_loop_as_its_root_and_the_phases_below(healthy: Recorded) -> None:
    traces = list(healthy.capture.traces().values())
    found = []
    for roots in traces:
        assert len(roots) == 1
        spans = [roots[0].span, *(child.span for child in roots[0].children)]
        found.append([str(span.attributes.get("rl.phase.name", span.name)) for span in spans])
    saved = [*FIVE, "rl.checkpoint", "evaluate"]
    assert found == [FIVE, FIVE, saved] * 3
    assert len({roots[0].span.trace_id for roots in traces}) == 9


def test_nothing_that_is_sent_breaks_the_model(healthy: Recorded, troubled: Recorded) -> None:
    for recorded in (healthy, troubled):
        with recorded.path.open(encoding="utf-8") as lines:
            assert check(lines) == []


def test_the_document_says_what_was_received(healthy: Recorded) -> None:
    received = healthy.document["received"]
    assert received["points"] == len(healthy.capture.all_points)
    assert received["spans"] == len(healthy.capture.all_spans)
    assert received["traces"] == 9
    assert received["metrics"] == healthy.capture.names()
    assert math.isclose(sum(phase["share"] for phase in received["phases"].values()), 1.0)
    assert healthy.document["capture"] == str(healthy.path)
    assert healthy.document["iterations"] == {"planned": 9, "finished": list(range(1, 10))}
    assert received["last"]["rl.checkpoint.step"] == 9


def test_the_picture_of_the_readme_can_be_drawn_from_any_capture(healthy: Recorded, tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / "picture.py"
    picture = tmp_path / "demo.svg"
    subprocess.run([sys.executable, str(script), str(healthy.path), str(picture)], env=environment(), check=True)
    drawn = picture.read_text(encoding="utf-8")
    assert all(panel in drawn for panel in ("latency", "traffic", "errors", "saturation", "9/9"))


def test_with_json_progress_goes_to_standard_error(healthy: Recorded) -> None:
    assert "iteration 9/9  reward " in healthy.stderr


def test_the_run_is_said_to_be_completed(healthy: Recorded) -> None:
    states = {point.attributes["rl.run.state"]: point.value for point in healthy.capture.latest("rl.run.status")}
    assert states["completed"] == 1
    assert sum(value or 0.0 for value in states.values()) == 1


def test_a_failure_is_an_error_and_not_the_end(troubled: Recorded) -> None:
    kind = "rlotel.demo.sandbox.SandboxTimeout"
    failed = {span.name: span for span in troubled.capture.spans() if span.status_code == "error"}
    assert {name: span.attributes["error.type"] for name, span in failed.items()} == {
        "rl.reward": kind,
        "rl.loop": kind,
    }
    assert failed["rl.loop"].attributes["rl.loop.iteration"] == 2
    assert increase(troubled.capture, "rl.phase.failures", **{"rl.phase.name": "reward"}) == 1
    assert troubled.document["received"]["phases"]["reward"]["errors"] == [kind]
    assert "iteration 2 is given up" in troubled.stderr


def test_a_loss_that_is_not_a_number_is_counted_and_its_gauge_goes(troubled: Recorded) -> None:
    lost = {"rl.value.name": "rl.train.loss", "rl.value.kind": "nan"}
    assert increase(troubled.capture, "rl.train.nonfinite", **lost) == 1
    numbers = [point.value for point in troubled.capture.points() if point.value is not None]
    assert all(math.isfinite(number) for number in numbers)
    at = troubled.document["iterations"]["finished"].index(4)
    assert troubled.document["policy_loss"][at] is None


def test_a_stall_is_seen_while_it_lasts(troubled: Recorded) -> None:
    reward = troubled.capture.points("rl.phase.age", **{"rl.phase.name": "reward"})
    for ages in (reward, troubled.capture.points("rl.loop.age"), troubled.capture.points("rl.progress.age")):
        values = [point.value for point in ages if point.value is not None]
        longest = values.index(max(values))
        assert max(values) > 3
        assert values[longest - 2 : longest + 1] == sorted(values[longest - 2 : longest + 1])


def test_going_back_to_a_checkpoint_counts_as_a_restart(troubled: Recorded) -> None:
    assert increase(troubled.capture, "rl.restarts") == 1
    assert troubled.document["received"]["restarts"] == 1
    assert troubled.document["iterations"]["finished"] == [1, 3, 4, 5, 6, 7, 8, 7, 8]
    restored = {"rl.checkpoint.operation": "restore", "rl.checkpoint.tier": "local_disk"}
    assert [point.count for point in troubled.capture.latest("rl.checkpoint.duration", **restored)] == [1]


def test_without_a_terminal_it_prints_plain_lines_and_a_summary_even_where_colour_is_forced(
    tmp_path: Path,
) -> None:
    done = demo("--iterations", "2", "--capture", str(tmp_path / "c.jsonl"), FORCE_COLOR="1", NO_COLOR="1")
    assert done.returncode == 0, done.stderr
    assert "\x1b[?" not in done.stdout
    plain = demo("--iterations", "2", PATH=str(tmp_path))
    assert plain.returncode == 0, plain.stderr
    assert "\x1b" not in plain.stdout
    lines = plain.stdout.splitlines()
    assert [line.split()[:2] for line in lines[:3]] == [
        ["run", lines[0].split()[1]],
        ["iteration", "1/2"],
        ["iteration", "2/2"],
    ]
    assert "Done: 2 iterations" in plain.stdout
    # The command is not on that path, so it is named as it was called.
    path = next(line.split()[-1] for line in lines if f"{COMMAND} semconv check" in line)
    assert capture.read(path).spans("rl.loop")
    Path(path).unlink()


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_an_endpoint_of_the_users_gets_it_all(protocol: str) -> None:
    with Receiver() as receiver:
        endpoint = receiver.grpc_endpoint if protocol == "grpc" else receiver.http_endpoint
        done = demo("--iterations", "2", "--endpoint", endpoint, "--protocol", protocol, "--json")
        assert done.returncode == 0, done.stderr
        assert {request.protocol for request in receiver.requests} == {protocol}
        assert len(receiver.capture.spans("rl.loop")) == 2
        assert json.loads(done.stdout)["received"] is None


def test_the_receiver_built_in_speaks_grpc_too_and_no_proxy_comes_between() -> None:
    nowhere = "http://127.0.0.1:9"
    for protocol in ("grpc", "http/protobuf"):
        done = demo("--iterations", "1", "--protocol", protocol, "--json", HTTP_PROXY=nowhere, http_proxy=nowhere)
        assert done.returncode == 0, done.stderr
        document = json.loads(done.stdout)
        assert document["received"]["traces"] == 1
        Path(document["capture"]).unlink()


def test_a_dead_collector_costs_no_iteration_and_no_exit_code() -> None:
    with Receiver() as closed:
        endpoint = closed.http_endpoint
    done = demo("--iterations", "1", "--endpoint", endpoint)
    assert done.returncode == 0
    assert "Done: 1 iteration" in done.stdout
    assert "do not reach" in done.stderr


def test_ctrl_c_ends_it_with_a_summary(tmp_path: Path) -> None:
    arguments = [COMMAND, "demo", "--iterations", "90", "--capture", str(tmp_path / "c.jsonl")]
    with subprocess.Popen(
        arguments, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert any(" 2/90 " in line for line in iter(process.stdout.readline, ""))
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Ended by Ctrl-C" in rest
    assert "Traceback" not in errors
    assert len(capture.read(tmp_path / "c.jsonl").spans("rl.loop")) >= 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fail-at", "9", "--iterations", "5"], "there are only 5 iterations"),
        (["--restart", "--iterations", "5"], "8 or more"),
        (["--endpoint", "http://localhost:4318", "--capture", "c.jsonl"], "--capture keeps"),
        (["--endpoint", "ftp://localhost"], "endpoint"),
    ],
)
def test_what_cannot_be_is_said_before_training(arguments: list[str], said: str) -> None:
    done = demo(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_capture_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    done = demo("--capture", str(tmp_path / "missing.txt" / "c.jsonl"), "--iterations", "1")
    assert done.returncode == 0
    (tmp_path / "file").touch()
    done = demo("--capture", str(tmp_path / "file" / "c.jsonl"), "--iterations", "1")
    assert done.returncode == 1
    assert str(tmp_path / "file") in done.stderr


def test_it_says_so_when_nothing_arrives() -> None:
    done = demo("--iterations", "1", OTEL_SDK_DISABLED="true")
    assert done.returncode == 0, done.stderr
    assert "nothing arrived" in done.stdout


def test_who_has_read_enough_is_not_told_of_an_error() -> None:
    command = [COMMAND, "demo", "--iterations", "2"]
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("run ")
        process.stdout.close()
        said = process.stderr.read()
    assert said == ""
