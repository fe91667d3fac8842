"""What loggers wrote is read as they meant it: files recorded with the real packages, and broken ones."""

import json
import struct
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlotel.importing import runs, tensorboard
from rlotel.importing.messages import message
from rlotel.importing.records import Losses, Run, Unreadable
from rlotel.logged.lines import time_of
from rlotel.logged.tables import Table
from rlotel.logged.times import moment
from tests.importing.record import BEGAN, STEPS, events, offline_run, values

DATA = Path(__file__).parent / "data"
EXPECTED = {step: values(step) for step in range(1, STEPS + 1)}


def read(path: Path, table: Table | None = None) -> tuple[dict[int, dict[str, Any]], dict[int, float], Losses]:
    """What the one run at a path logged at each step, and when; and what was lost."""
    losses, logged, times = Losses(), dict[int, dict[str, Any]](), dict[int, float]()
    (run,) = runs.find(path)
    for record in runs.read(run, table or Table(), losses):
        assert isinstance(record.step, int)
        logged.setdefault(record.step, {}).update(record.values)
        times[record.step] = record.time
    return logged, times, losses


def record_of(body: bytes) -> bytes:
    """A record of an event file."""
    length = struct.pack("<Q", len(body))
    return length + struct.pack("<I", tensorboard._masked(length)) + body + b"\0\0\0\0"


def only(
    logged: Mapping[int, Mapping[str, Any]], keys: Mapping[int, Mapping[str, Any]]
) -> dict[int, dict[str, Any]]:
    return {step: {key: found[key] for key in keys[step]} for step, found in logged.items()}


@pytest.mark.parametrize("name", ["run.jsonl", "tensorboardx", "torch", "by-0.17.9.wandb", "by-0.31.0.wandb"])
def test_a_recorded_run_is_read_as_it_was_logged(name: str) -> None:
    logged, times, losses = read(DATA / name)
    assert only(logged, EXPECTED) == {step: pytest.approx(found) for step, found in EXPECTED.items()}
    assert times == {step: BEGAN + 10 * step for step in EXPECTED}
    assert losses == Losses()


@pytest.mark.parametrize("name", ["tensorboardx", "torch"])
def test_what_add_scalars_wrote_into_folders_is_of_the_run(name: str) -> None:
    logged, _, _ = read(DATA / name)
    assert [(found["both/a"], found["both/b"]) for found in logged.values()] == [(s, 2 * s) for s in EXPECTED]


def test_scalars_in_the_new_style_are_read() -> None:
    logged, _, _ = read(DATA / "torch")
    assert [found["tensor/double"] for found in logged.values()] == [step / 3 for step in EXPECTED]
    assert [found["tensor/single"] for found in logged.values()] == [pytest.approx(step / 3) for step in EXPECTED]


def test_texts_are_no_scalars() -> None:
    logged, _, _ = read(DATA / "torch")
    assert not [key for found in logged.values() for key in found if "note" in key]


def test_what_wandb_adds_is_left_out() -> None:
    logged, _, _ = read(DATA / "by-0.31.0.wandb")
    assert not [key for found in logged.values() for key in found if key.startswith("_")]


def test_all_runs_of_a_folder_are_found() -> None:
    found = sorted((run.name, run.kind, len(run.files)) for run in runs.find(DATA))
    assert found == [
        ("recorded", "wandb", 2),  # of one id: it was resumed
        ("tensorboardx", "tensorboard", 3),
        ("torch", "tensorboard", 3),
    ]


def test_a_folder_of_json_lines_has_a_run_for_each_file(tmp_path: Path) -> None:
    for name in ("a.jsonl", "ppo-1/a.jsonl", "ppo-2/a.ndjson", "ppo-3/result.json", "c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}\n")
    found = [(run.name, run.kind) for run in runs.find(tmp_path)]
    assert found == [("a", "jsonl"), ("ppo-1/a", "jsonl"), ("ppo-2/a", "jsonl"), ("ppo-3", "jsonl")]
    assert [run.name for run in runs.find(tmp_path / "ppo-3")] == ["ppo-3"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("nothing", None, "nothing: there is no such file or folder"),
        (
            "notes.txt",
            b"x",
            (
                "notes.txt can't be imported: it is none of *.jsonl, *.ndjson, result.json (JSON lines), *.wandb "
                "(W&B offline) and *.tfevents.* (TensorBoard)"
            ),
        ),
        ("run.wandb", b"never a run", "run.wandb is no file of a W&B run"),
    ],
)
def test_what_is_no_run_is_said(tmp_path: Path, name: str, content: bytes | None, problem: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(Unreadable) as raised:
        runs.find(tmp_path / name)
    assert str(raised.value) == f"{tmp_path}/{problem}"


def test_an_empty_folder_has_no_run(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="has no TensorBoard event files, no W&B offline runs"):
        runs.find(tmp_path)


RECORDED = {
    "events": DATA / "tensorboardx" / f"events.out.tfevents.{int(BEGAN)}.recorded",
    "wandb": DATA / "by-0.31.0.wandb",
}


@pytest.mark.parametrize("kind", RECORDED)
@given(cut=st.floats(0.05, 0.99))
def test_a_file_that_breaks_off_is_read_as_far_as_it_goes(
    tmp_path_factory: pytest.TempPathFactory, kind: str, cut: float
) -> None:
    whole = RECORDED[kind].read_bytes()
    path = tmp_path_factory.mktemp("cut") / RECORDED[kind].name
    path.write_bytes(whole[: round(len(whole) * cut)])
    logged, _, losses = read(path)
    complete, _, _ = read(RECORDED[kind])
    assert [complete[step].items() >= found.items() for step, found in logged.items()] == [True] * len(logged)
    assert losses.lines == 0
    assert len(losses.torn) <= 1


@pytest.mark.parametrize("kind", RECORDED)
@given(data=st.binary(max_size=300), at=st.integers(8, 2000))
def test_a_damaged_file_is_no_error(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: bytes, at: int
) -> None:
    whole = bytearray(RECORDED[kind].read_bytes())
    whole[at : at + len(data)] = data
    path = tmp_path_factory.mktemp("damaged") / RECORDED[kind].name
    path.write_bytes(whole)
    read(path)


def test_lines_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"timestamp": 1790000000, "step": 1, "a": NaN}\n{"a": 1}\n[]\nnonsense\n\n{"timestamp": 179')
    logged, _, losses = read(path)
    assert list(logged) == [1]
    assert losses == Losses(lines=3, untimed=1)


def test_a_table_may_say_which_keys_have_time_and_step(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps({"when": "2026-09-21T14:13:20Z", "timestamp": 5, "step": 7, "i": 2, "a": 1}) + "\n")
    table = Table(time="when", step="i")
    (record,) = runs.read(Run("x", "jsonl", (path,), tmp_path), table, Losses())
    assert (record.time, record.step) == (1790000000.0, None)
    assert record.values["i"] == 2


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (1_790_000_000, 1.79e9),
        (1_790_000_000.25, 1_790_000_000.25),
        (1_790_000_000_250, 1_790_000_000.25),
        (1_790_000_000_250_000, 1_790_000_000.25),
        (1_790_000_000_250_000_000, 1_790_000_000.25),
        ("2026-09-21T14:13:20+00:00", 1.79e9),
        ("2026-09-21 16:13:20.5+02:00", 1_790_000_000.5),
        (12.5, None),  # a length of time
        (True, None),
        (float("nan"), None),
        (float("inf"), None),
        (1e300, None),
        (-1.79e9, None),
        ("9999-12-31T23:59:59", None),
        ("1960-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00Z", None),
        ("yesterday", None),
        (None, None),
        ([1], None),
    ],
)
def test_moments_are_understood_in_whatever_unit(written: object, seconds: float | None) -> None:
    assert moment(written) == (None if seconds is None else pytest.approx(seconds))
    assert (time_of({"time": written}, None) is None) == (seconds is None)


@given(values=st.lists(st.floats(allow_nan=False, width=32), min_size=1, max_size=5))
def test_event_files_are_read_whatever_is_in_them(
    tmp_path_factory: pytest.TempPathFactory, values: list[float]
) -> None:
    path = tmp_path_factory.mktemp("made") / "events.out.tfevents.1.x"
    event = message("Event")(wall_time=1.79e9, step=3)
    for number, value in enumerate(values):
        event.summary.value.add(tag=b"v%d" % number, simple_value=value)
    path.write_bytes(record_of(event.SerializeToString()))
    logged, _, losses = read(path)
    assert logged == {3: {f"v{number}": value for number, value in enumerate(values)}}
    assert losses == Losses()


@pytest.mark.parametrize("wall_time", [0.0, 3.0, -1.79e9, 1e300, float("nan"), float("inf")])
def test_an_event_without_a_moment_is_left_out(tmp_path: Path, wall_time: float) -> None:
    path = tmp_path / "events.out.tfevents.1.x"
    event = message("Event")(wall_time=wall_time, step=3)
    event.summary.value.add(tag=b"v", simple_value=1.0)
    path.write_bytes(record_of(event.SerializeToString()))
    logged, _, losses = read(path)
    assert logged == {}
    assert losses == Losses(untimed=1)


@pytest.mark.parametrize("step", ["null", '"three"', "NaN", "[1]", "true", "1e30"])
@pytest.mark.parametrize("moment", ["1790000000", "NaN", "true", "1e300"])
def test_a_step_of_wandbs_that_is_none_is_no_error(tmp_path: Path, step: str, moment: str) -> None:
    history = message("Record")()
    for key, value in (("_step", step), ("_timestamp", moment), ("a", "1")):
        history.history.item.add(key=key.encode(), value_json=value.encode())
    body = history.SerializeToString()
    checksum = zlib.crc32(b"\x01" + body)
    path = tmp_path / "run.wandb"
    path.write_bytes(b":W&B\xe1\xbe\0" + struct.pack("<IHB", checksum, len(body), 1) + body)
    losses = Losses()
    found = [(record.time, record.values) for record in runs.read(runs.find(path)[0], Table(), losses)]
    assert found == ([(1.79e9, {"a": 1})] if moment == "1790000000" else [])
    assert losses == Losses(untimed=1 - len(found))


# With the packages themselves, where they are.


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("package", ["tensorboardX", "torch.utils.tensorboard"])
def test_tensorboard_reads_the_same(package: str, tmp_path: Path) -> None:
    module = pytest.importorskip(package, reason=f"{package} is not installed")
    loader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="tensorboard is not installed"
    )
    events(tmp_path, module)
    logged, _, _ = read(tmp_path)
    theirs = loader.EventAccumulator(str(tmp_path), {loader.SCALARS: 0})
    theirs.Reload()
    tags = theirs.Tags()["scalars"]
    assert set(values(1)) <= set(tags)
    for tag in tags:
        found = {event.step: event.value for event in theirs.Scalars(tag)}
        assert {step: values_[tag] for step, values_ in logged.items()} == found


@pytest.mark.filterwarnings("default")
def test_a_run_of_the_installed_wandb_is_read(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    began = time.time()
    offline_run(tmp_path, dated=False)
    logged, times, losses = read(tmp_path)
    assert only(logged, EXPECTED) == {step: pytest.approx(found) for step, found in EXPECTED.items()}
    assert [began <= at <= time.time() for at in times.values()] == [True] * STEPS
    assert losses == Losses()
