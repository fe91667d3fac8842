"""`rlotel import`: a finished run is sent with the times it had, and it is said what is not."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rlotel import capture
from rlotel.capture import Capture
from rlotel.cli import main
from rlotel.cli.import_report import day
from rlotel.conformance import check
from rlotel.receiver import Receiver, Reply
from tests.importing.record import BEGAN, STEPS, values

Rlotel = Callable[..., "subprocess.CompletedProcess[str]"]

DATA = Path(__file__).parent.parent / "importing" / "data"
LAST = round((BEGAN + 10 * STEPS) * 1e9)
TABLE = """
system: nobodys
evaluation: eval/
keys:
  train/reward: rl.environment.reward.mean
  train/loss: {gauge: rl.train.loss, type: policy}
  time/rollout: {seconds: sample}
  time/update: [{seconds: train, role: actor}]
  num_tokens: {total: rl.sample.tokens, type: completion}
"""


@pytest.fixture
def rlotel(
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Rlotel:
    """As the fixture of all commands, but in this process: imports are many here, and take no process's end."""

    def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as here, pytest.raises(SystemExit) as ended:
            here.setattr(os, "environ", {**environment, **environ})
            here.chdir(tmp_path)
            main.main(list(arguments), prog_name="rlotel")
        stdout, stderr = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), stdout, stderr)

    return run


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "table.yaml"
    path.write_text(TABLE)
    return str(path)


@pytest.fixture
def kept(tmp_path: Path) -> Callable[[], Capture]:
    """What the command has written into the capture file that is its default here."""
    return lambda: capture.read(tmp_path / "capture.jsonl")


@pytest.fixture
def sink() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def lines(path: Path, began: float, steps: int = STEPS, **more: Any) -> None:
    """A run of JSON lines."""
    logged = (
        {"timestamp": began + 10 * step, "step": step, **values(step), **more} for step in range(1, steps + 1)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in logged))


@pytest.mark.parametrize("name", ["run.jsonl", "tensorboardx", "torch", "by-0.17.9.wandb", "by-0.31.0.wandb"])
def test_a_run_is_told_over_again_whatever_its_logger(
    rlotel: Rlotel, table: str, kept: Callable[[], Capture], tmp_path: Path, name: str
) -> None:
    result = rlotel("import", str(DATA / name), "--table", table, "--run-id", "r1", "--gpus", "2")
    assert (result.returncode, result.stderr) == (0, "")
    seen = kept()
    rewards = seen.points("rl.environment.reward.mean")
    assert [(p.time_ns, p.value) for p in rewards] == [
        (round((BEGAN + 10 * step) * 1e9), step / 8) for step in range(1, STEPS + 1)
    ]
    assert {(p.attributes["rl.run.id"], p.attributes["rl.system"]) for p in rewards} == {("r1", "nobodys")}
    (loops,) = seen.latest("rl.loop.duration")
    assert (loops.count, loops.sum, loops.time_ns) == (STEPS - 1, 50.0, LAST)
    tokens = seen.points("rl.sample.tokens", **{"rl.token.type": "completion"})
    assert [p.value for p in tokens] == [0, 0, 1000, 2000, 3000, 4000, 5000]
    assert len({p.start_ns for p in tokens}) == 1
    assert all(p.start_ns < p.time_ns for p in tokens)
    assert [p.value for p in seen.latest("rl.tokens.rate_per_gpu")] == [50.0]
    assert [p.value for p in seen.latest("rl.evaluation.score", **{"rl.evaluation.name": "score"})] == [0.5]
    traces = [roots[0] for roots in seen.traces().values() if roots[0].span.name == "rl.loop"]
    assert [
        [(n.span.name, n.span.start_ns - LAST, n.span.end_ns - LAST) for n in (root, *root.children)]
        for root in traces[-1:]
    ] == [[("rl.loop", -10 * 10**9, 0), ("rl.sample", -7 * 10**9, -3 * 10**9), ("rl.train", -3 * 10**9, 0)]]
    assert len(traces) == STEPS - 1
    with (tmp_path / "capture.jsonl").open() as written:
        assert check(written) == []


def test_it_is_said_what_was_sent_and_what_means_nothing(rlotel: Rlotel, table: str, tmp_path: Path) -> None:
    lines(tmp_path / "ppo.jsonl", BEGAN, lr=1e-3)
    Path(table).write_text(TABLE + "  train/rewards: rl.entropy\n")
    result = rlotel("import", "ppo.jsonl", "--table", table)
    assert result.stdout.splitlines()[:-1] == [
        f"ppo: jsonl, 6 iterations, {day(BEGAN + 10)} to {day(BEGAN + 60)}",
        "  train/reward: rl.environment.reward.mean, 6 times",
        "  train/loss: rl.train.loss {type=policy}, 6 times",
        "  time/rollout: sample, seconds {kind=generate}, 6 times",
        "  time/update: train, seconds {role=actor}, 6 times",
        "  num_tokens: rl.sample.tokens {type=completion}, 6 times",
        "  eval/score: rl.evaluation.score",
        "  train/rewards: was never logged",
        "not in the table: lr",
    ]
    assert result.stdout.splitlines()[-1].endswith(f"17 spans, to {tmp_path}/capture.jsonl")


def test_a_dry_run_says_the_same_and_sends_nothing(rlotel: Rlotel, table: str, tmp_path: Path) -> None:
    said = rlotel("import", str(DATA / "torch"), "--table", table, "--dry-run", RLOTEL_ENDPOINT="127.0.0.1:1")
    assert (said.returncode, said.stderr) == (0, "")
    assert not (tmp_path / "capture.jsonl").exists()
    sent = rlotel("import", str(DATA / "torch"), "--table", table)
    assert sent.stdout.replace("sent", "would send").partition(", to /")[0] == said.stdout.strip()


def test_the_same_import_again_sends_the_same(rlotel: Rlotel, table: str, tmp_path: Path) -> None:
    for name in ("first", "second"):
        arguments = ("--table", table, "--capture", name)
        assert rlotel("import", str(DATA / "run.jsonl"), *arguments).returncode == 0
    first, second = ((tmp_path / name).read_text() for name in ("first", "second"))
    assert first == second
    rlotel("import", str(DATA / "run.jsonl"), "--table", table, "--capture", "other", "--run-id", "other")
    ids = [{span.trace_id for span in capture.read(tmp_path / name).spans()} for name in ("first", "other")]
    assert ids[0].isdisjoint(ids[1])


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_it_is_sent_over_the_network(rlotel: Rlotel, table: str, sink: Receiver, scheme: str) -> None:
    where = sink.http_endpoint if scheme == "http" else sink.grpc_endpoint
    protocol = "http/protobuf" if scheme == "http" else "grpc"
    result = rlotel(
        "import", str(DATA / "run.jsonl"), "--table", table, "--endpoint", where, "--protocol", protocol
    )
    assert result.returncode == 0, result.stderr
    received = sink.capture
    assert [p.time_ns for p in received.latest("rl.train.loss")] == [LAST]
    assert len(received.spans("rl.loop")) == STEPS - 1
    distances = sorted({point.time_ns for point in received.all_points})
    assert all(later - earlier >= 5 * 10**9 for earlier, later in pairwise(distances))


def test_points_keep_the_distance_that_google_cloud_wants(
    rlotel: Rlotel, table: str, tmp_path: Path, kept: Callable[[], Capture]
) -> None:
    fast = [{"timestamp": BEGAN + step, "step": step, "train/reward": step} for step in range(23)]
    (tmp_path / "fast.jsonl").write_text("".join(json.dumps(line) + "\n" for line in fast))
    assert rlotel("import", "fast.jsonl", "--table", table).returncode == 0
    rewards = [((p.time_ns - BEGAN * 1e9) / 1e9, p.value) for p in kept().points("rl.environment.reward.mean")]
    assert rewards == [(0, 0), (5, 5), (10, 10), (15, 15), (20, 20), (25, 22)]
    (loops,) = kept().latest("rl.loop.duration")
    assert loops.count == 22


def test_what_is_older_can_be_left_out(
    rlotel: Rlotel, table: str, tmp_path: Path, kept: Callable[[], Capture], sink: Receiver
) -> None:
    lines(tmp_path / "long.jsonl", time.time() - 3 * 3600, steps=1000)
    result = rlotel("import", "long.jsonl", "--table", table, "--since", "30m", "--endpoint", sink.http_endpoint)
    assert (result.returncode, result.stderr) == (0, "")
    oldest = min(point.time_ns for point in sink.capture.all_points) / 1e9
    assert time.time() - 30 * 60 - 100 < oldest
    (loops,) = sink.capture.latest("rl.loop.duration")
    assert loops.count == 999  # what was left out has been counted


def test_what_google_cloud_will_refuse_is_said(rlotel: Rlotel, table: str, tmp_path: Path, sink: Receiver) -> None:
    lines(tmp_path / "days.jsonl", time.time() - 3 * 24 * 3600)
    result = rlotel("import", "days.jsonl", "--table", table, "--endpoint", sink.http_endpoint)
    assert result.stderr == (
        "The run began 72 hours ago. If this goes to Google Cloud, points from before the last 24 hours are "
        "refused there, even if a collector in between takes them. Give --since 24h, or import runs on the day "
        "they end.\n"
    )
    assert rlotel("import", "days.jsonl", "--table", table).stderr == ""  # a file takes any
    lines(tmp_path / "new.jsonl", time.time() - 100)
    assert rlotel("import", "new.jsonl", "--table", table, "--endpoint", sink.http_endpoint).stderr == ""


def test_what_the_backend_rejects_is_said(rlotel: Rlotel, table: str, sink: Receiver, tmp_path: Path) -> None:
    lines(tmp_path / "new.jsonl", time.time() - 100)
    sink.reply = Reply(rejected=3, message="points are too old")
    result = rlotel("import", "new.jsonl", "--table", table, "--endpoint", sink.http_endpoint)
    assert result.returncode == 0
    assert "24 of them were refused by " in result.stderr
    assert "points are too old" in result.stderr


def test_an_endpoint_that_does_not_take_it_ends_it(rlotel: Rlotel, table: str, sink: Receiver) -> None:
    sink.reply = Reply(http_status=400, message="what is this")
    result = rlotel("import", str(DATA / "run.jsonl"), "--table", table, "--endpoint", sink.http_endpoint)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith(f"Error: run: not taken by {sink.http_endpoint}/v1/metrics: ")
    assert result.stderr.endswith("; nothing has arrived. The same command sends it again.\n")


def test_each_run_of_a_folder_has_an_id_of_its_own(
    rlotel: Rlotel, table: str, kept: Callable[[], Capture]
) -> None:
    result = rlotel("import", str(DATA), "--table", table)
    assert result.returncode == 0, result.stderr
    runs = {str(point.attributes["rl.run.id"]) for point in kept().points("rl.train.loss")}
    assert runs == {"recorded", "tensorboardx", "torch"}
    result = rlotel("import", str(DATA), "--table", table, "--run-id", "one")
    assert result.returncode == 2
    assert "--run-id names one run, and " in result.stderr
    assert "has 3: recorded, tensorboardx, torch" in result.stderr


def test_a_known_trainers_table_is_there_already(
    rlotel: Rlotel, tmp_path: Path, kept: Callable[[], Capture]
) -> None:
    logged = [
        {
            "_timestamp": BEGAN + 100 * step,
            "training/global_step": step,
            "critic/score/mean": 0.1 * step,
            "timing_s/gen": 40,
            "timing_s/update_actor": 30,
            "timing_s/step": 90,
            "perf/total_num_tokens": 9000,
            "val-core/openai/gsm8k/reward/mean@1": 0.7,
        }
        for step in (1, 2, 3)
    ]
    (tmp_path / "verl.jsonl").write_text("".join(json.dumps(line) + "\n" for line in logged))
    assert rlotel("import", "verl.jsonl", "--preset", "verl").returncode == 0
    seen = kept()
    (loops,) = seen.latest("rl.loop.duration")
    assert (loops.count, loops.sum, loops.attributes["rl.system"]) == (3, 270.0, "verl")
    assert [p.value for p in seen.latest("rl.tokens.rate")] == [100.0]
    assert [p.sum for p in seen.latest("rl.train.duration", **{"rl.role": "actor"})] == [90.0]
    assert [p.attributes["rl.evaluation.name"] for p in seen.latest("rl.evaluation.score")] == [
        "openai/gsm8k/reward/mean@1"
    ]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (
            "keys: {a: rl.train.los}",
            "table key 'a': rl.train.los is no metric of the model; did you mean rl.train.loss?",
        ),
        (
            "keys: {a: {second: sample}}",
            "table key 'a': {'second': 'sample'} has no meaning: use the name of a gauge, or ",
        ),
        ("keys: {a: {seconds: sample, total: rl.train.tokens}}", "table key 'a': {'seconds': "),
        (
            "keys: {a: {gauge: rl.entropy, scal: 2}}",
            "table key 'a': rl.entropy has no attribute 'scal'; it takes none",
        ),
        ("key: {a: rl.entropy}", "table.yaml: 'key' is no part of a table; did you mean keys?"),
        ("system: mine", "table.yaml: there are no keys in it: say `keys:`, and under it what each key means"),
        ("[1, 2", "table.yaml: it cannot be understood: "),
        ("just words", "table.yaml: it is no table: say `keys:`, and under it what each key means"),
        ("step: 3\nkeys: {a: rl.entropy}", "table.yaml: step is 3: use a text"),
        (
            "evaluation: 5\nkeys: {a: rl.entropy}",
            "table.yaml: evaluation is 5: use a prefix of keys, or a list of them",
        ),
        ("keys: {a: {seconds: [sample]}}", "table key 'a': ['sample'] is no phase: give a word, such as sample, "),
        ("keys: {a: {gauge: rl.entropy, scale: .nan}}", "table key 'a': scale is nan: use a number"),
        (b"keys: {a: \xff}", "table.yaml: it cannot be understood: "),
        (
            "evaluation: [1]\nkeys: {a: rl.entropy}",
            "table.yaml: evaluation is [1]: use a prefix of keys, or a list of them",
        ),
    ],
)
def test_a_table_that_is_wrong_is_said(rlotel: Rlotel, tmp_path: Path, written: str | bytes, problem: str) -> None:
    (tmp_path / "table.yaml").write_bytes(written if isinstance(written, bytes) else written.encode())
    result = rlotel("import", str(DATA / "run.jsonl"), "--table", "table.yaml")
    assert result.returncode == 2
    assert problem in result.stderr


def test_a_table_may_be_json(rlotel: Rlotel, tmp_path: Path, kept: Callable[[], Capture]) -> None:
    (tmp_path / "table.json").write_text(json.dumps({"keys": {"time/update": {"milliseconds": "train"}}}))
    assert rlotel("import", str(DATA / "run.jsonl"), "--table", "table.json").returncode == 0
    assert [point.sum for point in kept().latest("rl.train.duration")] == [pytest.approx(0.018)]


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        ((), 2, "say what the keys mean: by --table FILE or by --preset NAME, one of them"),
        (("--preset", "verl", "--table", "table.yaml"), 2, "say what the keys mean"),
        (("--preset", "rsl_rl"), 1, "no key of the table was ever logged"),
        (("--preset", "trl", "--since", "yesterday"), 2, "use an age such as 24h or 90m, or a time such as"),
        (("--preset", "trl", "--endpoint", "ftp://x"), 2, "--endpoint"),
    ],
)
def test_a_call_that_makes_no_sense_is_said(
    rlotel: Rlotel, table: str, arguments: tuple[str, ...], status: int, problem: str
) -> None:
    result = rlotel("import", str(DATA / "run.jsonl"), *arguments)
    assert result.returncode == status
    assert problem in result.stderr


def test_lines_without_a_time_are_none_to_import(rlotel: Rlotel, table: str, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text('{"train/reward": 1}\n')
    result = rlotel("import", "run.jsonl", "--table", table)
    assert result.returncode == 1
    assert result.stderr == (
        "Error: run.jsonl: nothing in it can be imported: 1 lines have no time. Say in the table which key has "
        "it, as `time: …`: seconds or milliseconds since 1970, or ISO 8601\n"
    )


def test_a_file_that_is_not_there_is_said(rlotel: Rlotel, table: str) -> None:
    result = rlotel("import", "nowhere", "--table", table)
    assert (result.returncode, result.stderr) == (1, "Error: nowhere: there is no such file or folder\n")
