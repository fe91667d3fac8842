"""`rlotel gpu`."""

import json
import sys

import pytest
from click.testing import CliRunner

from rlotel.cli import main
from rlotel.semconv import metrics as m
from tests.collectors.conftest import Driver


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return CliRunner()


def test_the_nodes_gpus_are_a_table(driver: Driver, runner: CliRunner) -> None:
    driver.set(count=3)
    driver.gpu(clock_reasons=0x8)
    driver.returns("nvmlDeviceGetUtilizationRates", 15, 1)
    driver.gpu(2, gpm=0)
    result = runner.invoke(main, ["gpu"], env={"CUDA_VISIBLE_DEVICES": "2,0"})
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.output.splitlines()]
    assert " ".join(rows[0]).startswith("GPU model state busy SM tensor memory power")
    model = "NVIDIA H100 80GB HBM3"
    memory = "55.9 / 79.6 GiB 650 / 700 W 61 °C 1755 MHz hw_slowdown"
    assert " ".join(rows[1]) == f"GPU 0 {model} degraded 97% 88% 50% {memory} 1"
    assert " ".join(rows[2]) == f"GPU 1 {model} failed"
    assert " ".join(rows[3]) == f"GPU 2 {model} degraded 97% {memory} 0"
    assert "left empty: NVMLError_GpuIsLost" in result.output


def test_all_that_was_read_is_there_as_json(driver: Driver, runner: CliRunner) -> None:
    driver.set(count=2)
    driver.gpu(1, mig=1)
    driver.gpu("1.mig1", mem_used=1_000)
    result = runner.invoke(main, ["gpu", "--json"])
    assert result.exit_code == 0, result.output
    first, second, cut = json.loads(result.output)
    assert (first["name"], first["uuid"], first["model"], first["state"], first["parent"]) == (
        "GPU 0",
        "GPU-00000000-fa4e-4000-8000-000000000000",
        "NVIDIA H100 80GB HBM3",
        "ok",
        None,
    )
    assert first["metrics"]["hw.power"] == [{"value": 650.0, "unit": "W"}]
    assert {"value": 1755e6, "unit": "Hz", "attributes": {"rl.gpu.clock": "sm"}} in first["metrics"][
        "rl.gpu.clock.frequency"
    ]
    assert cut["parent"] == second["uuid"]
    assert cut["metrics"]["hw.gpu.memory.usage"] == [{"value": 1000.0, "unit": "By"}]
    assert set(first["metrics"]) <= m.BY_NAME.keys()


def test_watching_goes_on_until_it_is_interrupted(
    driver: Driver, runner: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.set(count=1)
    naps = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        driver.gpu(util=len(naps))
        if len(naps) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("rlotel.cli.gpu.time.sleep", nap)
    result = runner.invoke(main, ["gpu", "--watch"])
    assert result.exit_code == 0, result.output
    assert naps == [0.25, 1, 1, 1]
    assert "3%" in result.output


def test_without_a_driver_it_says_what_to_look_at(driver: Driver, runner: CliRunner) -> None:
    driver.returns("nvmlInitWithFlags", 9)
    result = runner.invoke(main, ["gpu"])
    assert result.exit_code == 1
    assert "no GPU can be read: nvmlInit: Driver Not Loaded" in result.output
    assert "nvidia-smi" in result.output


def test_without_a_gpu_it_says_so(driver: Driver, runner: CliRunner) -> None:
    driver.set(count=0)
    result = runner.invoke(main, ["gpu"])
    assert result.exit_code == 1
    assert "shows no GPU" in result.output


def test_the_table_and_json_exclude_each_other(runner: CliRunner) -> None:
    assert runner.invoke(main, ["gpu", "--watch", "--json"]).exit_code == 2


def test_without_the_package_it_names_the_extra(runner: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    result = runner.invoke(main, ["gpu"])
    assert result.exit_code == 1
    assert "pip install 'rlotel[gpu]'" in result.output
