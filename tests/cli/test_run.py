"""`rlotel run`: any command, its own exit code, and telemetry from every Python in it."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlotel import autostart
from rlotel.receiver import Receiver

Rlotel = Callable[..., subprocess.CompletedProcess[str]]

LOOP = """
import rlotel
with rlotel.loop(iteration=1):
    with rlotel.train() as train:
        train.add(steps=1)
"""
"""A training program that starts nothing of rlotel itself."""


def script(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return str(file)


def runs(receiver: Receiver) -> set[object]:
    return {span.resource["rl.run.id"] for span in receiver.capture.spans("rl.loop")}


def test_a_script_is_observed_without_a_line_of_code(rlotel: Rlotel, receiver: Receiver, tmp_path: Path) -> None:
    train = script(tmp_path, "train.py", LOOP)
    endpoint = ("--endpoint", receiver.http_endpoint)
    result = rlotel("run", *endpoint, "--run-id", "r1", "--algorithm", "GRPO", "--", sys.executable, train)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert receiver.capture.latest("rl.train.steps")[0].value == 1
    assert receiver.capture.latest("rl.train.steps")[0].attributes["rl.algorithm"] == "GRPO"
    assert runs(receiver) == {"r1"}


def test_a_module_is_observed(rlotel: Rlotel, receiver: Receiver, tmp_path: Path) -> None:
    script(tmp_path, "trainer/__init__.py", "")
    script(tmp_path, "trainer/main.py", LOOP)
    result = rlotel("run", "--endpoint", receiver.http_endpoint, "--", sys.executable, "-m", "trainer.main")
    assert (result.returncode, result.stderr) == (0, "")
    assert len(receiver.capture.spans("rl.loop")) == 1


def test_all_ranks_below_a_launcher_are_observed_as_one_run(
    rlotel: Rlotel, receiver: Receiver, tmp_path: Path
) -> None:
    rank = script(tmp_path, "rank.py", LOOP)
    launch = f"""
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, {rank!r}], env={{**os.environ, "RANK": str(i)}}) for i in range(2)]
sys.exit(max(rank.wait() for rank in ranks))
"""
    launcher = script(tmp_path, "launch.py", launch)
    result = rlotel("run", "--endpoint", receiver.http_endpoint, "--", sys.executable, launcher)
    assert (result.returncode, result.stderr) == (0, "")
    loops = receiver.capture.spans("rl.loop")
    assert sorted(str(span.resource["rl.worker.rank"]) for span in loops) == ["0", "1"]
    assert len({span.resource["service.instance.id"] for span in loops}) == 2
    assert len(runs(receiver)) == 1


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_the_children_of_a_pool_are_observed_to_their_end(
    rlotel: Rlotel, receiver: Receiver, tmp_path: Path, method: str
) -> None:
    pool = f"""
import multiprocessing
import rlotel

def score(number):
    with rlotel.reward():
        return number

if __name__ == "__main__":
    with rlotel.loop(), multiprocessing.get_context({method!r}).Pool(2) as pool:
        assert sorted(pool.map(score, range(6))) == list(range(6))
        pool.close()
        pool.join()
"""
    train = script(tmp_path, "train.py", pool)
    result = rlotel("run", "--endpoint", receiver.http_endpoint, "--", sys.executable, train)
    assert (result.returncode, result.stderr) == (0, "")
    assert sum(point.count or 0 for point in receiver.capture.latest("rl.worker.duration")) == 6
    assert len(receiver.capture.spans("rl.reward")) == 6


def test_a_program_that_replaces_itself_is_still_the_launcher(
    rlotel: Rlotel, receiver: Receiver, tmp_path: Path
) -> None:
    again = """
import os, sys
if len(sys.argv) == 1:
    os.execv(sys.executable, [sys.executable, __file__, "again"])
"""
    train = script(tmp_path, "train.py", again + LOOP)
    result = rlotel("run", "--endpoint", receiver.http_endpoint, "--", sys.executable, train)
    assert (result.returncode, result.stderr) == (0, "")
    states = receiver.capture.latest("rl.run.status")
    assert [point.attributes["rl.run.state"] for point in states if point.value] == ["completed"]


def test_pythons_in_a_shell_script_are_observed_as_one_run(
    rlotel: Rlotel, receiver: Receiver, tmp_path: Path
) -> None:
    train = script(tmp_path, "train.py", LOOP)
    shell = script(tmp_path, "train.sh", f"{sys.executable} {train}\n{sys.executable} {train}\n")
    result = rlotel("run", "--endpoint", receiver.http_endpoint, "--", "sh", shell)
    assert (result.returncode, result.stderr) == (0, "")
    assert len(receiver.capture.spans("rl.loop")) == 2
    assert len(runs(receiver)) == 1


def test_the_exit_code_is_the_commands(rlotel: Rlotel) -> None:
    assert rlotel("run", "--", "sh", "-c", "exit 7").returncode == 7


def test_the_process_id_is_the_commands_so_a_signal_reaches_it(command: str, environment: dict[str, str]) -> None:
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    process = subprocess.Popen(
        [command, "run", "--", sys.executable, "-c", program],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == -signal.SIGTERM


def test_every_option_is_a_variable_of_the_command_and_the_rest_is_left_alone(rlotel: Rlotel) -> None:
    show = (
        "import os; print(*(f'{k}={v}' for k, v in sorted(os.environ.items()) if k[:7] in ('RLOTEL_', 'OTEL_SE')))"
    )
    result = rlotel(
        *("run", "--run-id", "r", "--headers", "a=b", "--gpus", "8", "--enabled", "no"),
        *("--", sys.executable, "-S", "-c", show),
        OTEL_SERVICE_NAME="mine",
        RLOTEL_CAPTURE="c",
        RLOTEL_RUN_ID="overruled",
    )
    assert result.stdout.split() == [
        "OTEL_SERVICE_NAME=mine",
        "RLOTEL_CAPTURE=c",
        "RLOTEL_ENABLED=no",
        "RLOTEL_GPUS=8",
        "RLOTEL_HEADERS=a=b",
        "RLOTEL_RUN_ID=r",
    ]


def test_options_of_the_command_are_its_own_with_and_without_the_dashes(rlotel: Rlotel) -> None:
    show = "import sys; print(sys.argv[1:])"
    for dashes in ([], ["--"]):
        result = rlotel("run", *dashes, sys.executable, "-c", show, "--model", "x", "--help")
        assert result.stdout == "['--model', 'x', '--help']\n"


def test_the_users_sitecustomize_runs_too_and_is_the_one_that_is_imported(rlotel: Rlotel, tmp_path: Path) -> None:
    theirs = script(tmp_path, "theirs/sitecustomize.py", "print('theirs ran')\nMARK = 1\n")
    show = (
        "import sitecustomize; from rlotel.session import recorder; "
        "print(sitecustomize.__file__, recorder() is not None)"
    )
    result = rlotel("run", "--", sys.executable, "-c", show, PYTHONPATH=str(Path(theirs).parent))
    # Once in the Python of `rlotel` itself, once in the program's.
    assert result.stdout == f"theirs ran\ntheirs ran\n{theirs} True\n"


def test_an_error_in_the_users_sitecustomize_is_shown_as_without_rlotel(rlotel: Rlotel, tmp_path: Path) -> None:
    theirs = script(tmp_path, "theirs/sitecustomize.py", "raise RuntimeError('their own')\n")
    path = str(Path(theirs).parent)
    result = rlotel("run", "--", sys.executable, "-c", "print('ran')", PYTHONPATH=path)
    assert result.stdout == "ran\n"
    assert "RuntimeError: their own" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "environ", "names"),
    [
        (["--gpus", "none"], {}, "--gpus"),
        ([], {"RLOTEL_GPUS": "none"}, "RLOTEL_GPUS"),
        (["--endpoint", "ftp://host"], {}, "--endpoint"),
        ([], {"OTEL_EXPORTER_OTLP_ENDPOINT": "ftp://host"}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        (["--protocol", "thrift"], {}, "--protocol"),
        (["--frameworks", "no_such"], {}, "--frameworks"),
        (["--no-such-option"], {}, "--no-such-option"),
    ],
)
def test_what_is_wrong_is_named_before_the_command_starts(
    rlotel: Rlotel, tmp_path: Path, arguments: list[str], environ: dict[str, str], names: str
) -> None:
    result = rlotel("run", *arguments, "--", "touch", str(tmp_path / "started"), **environ)
    assert result.returncode == 2
    assert names in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "started").exists()


def test_a_command_that_is_not_there_is_said_with_the_code_of_a_shell(rlotel: Rlotel) -> None:
    result = rlotel("run", "--", "no-such-command")
    assert result.returncode == 127
    assert result.stderr == "Error: there is no command 'no-such-command'\n"


def test_a_script_without_its_python_is_said_with_what_to_do(rlotel: Rlotel, tmp_path: Path) -> None:
    train = script(tmp_path, "train.py", LOOP)
    result = rlotel("run", "--", train)
    assert result.returncode == 126
    assert f"did you mean `rlotel run -- python {train}`?" in result.stderr


def test_no_command_at_all_is_said_with_the_usage(rlotel: Rlotel) -> None:
    result = rlotel("run")
    assert result.returncode == 2
    assert "COMMAND" in result.stderr


def test_switched_off_nothing_of_rlotel_is_imported(rlotel: Rlotel) -> None:
    show = "import sys; print('rlotel' in sys.modules, 'opentelemetry' in sys.modules)"
    assert rlotel("run", "--enabled", "false", "--", sys.executable, "-c", show).stdout == "False False\n"
    below = ("env", "RLOTEL_ENABLED=0", sys.executable, "-c", show)
    assert rlotel("run", "--", *below).stdout == "False False\n"


def test_a_python_without_rlotel_runs_its_program_and_says_one_line(rlotel: Rlotel, tmp_path: Path) -> None:
    broken = script(tmp_path, "other/rlotel.py", "raise ImportError('another Python')\n")
    path = f"PYTHONPATH={autostart.FOLDER}:{Path(broken).parent}"
    result = rlotel("run", "--", "env", path, sys.executable, "-c", "print('ran')")
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("rlotel is not started: ")


def test_a_setting_that_turns_wrong_below_the_command_is_said_in_one_line_and_the_program_runs(
    rlotel: Rlotel,
) -> None:
    result = rlotel("run", "--", "env", "RLOTEL_GPUS=many", sys.executable, "-c", "print('ran')")
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert result.stderr.count("\n") == 1
    assert "RLOTEL_GPUS" in result.stderr


def test_rlotels_own_command_does_not_observe_itself(rlotel: Rlotel, receiver: Receiver, command: str) -> None:
    result = rlotel("run", "--endpoint", receiver.http_endpoint, "--", command, "--version")
    assert (result.returncode, result.stderr) == (0, "")
    assert receiver.requests == []
