"""Programs with one line of ours, in processes of their own: what they did arrives, and they end as they would."""

import signal
import socket
from contextlib import ExitStack

import pytest

from rlotel.capture import Capture
from rlotel.receiver import Receiver
from rlotel.semconv import attributes as attr
from rlotel.semconv import metrics as m
from tests.export.conftest import Program, TlsFiles, own_address

PROTOCOLS = ["grpc", "http/protobuf"]

TRAINING = """
import multiprocessing, os, signal, sys, threading, time
import rlotel

rlotel.instrument(system="mine", algorithm="GRPO", environment="arithmetic", run_id="r1")

def train(samples=10, iteration=0):
    with rlotel.loop(iteration=iteration):
        with rlotel.sample() as sample:
            sample.add(samples=samples)

def wait():
    print("ready", flush=True)
    while True:
        time.sleep(0.01)

train()
"""


def environment(receiver: Receiver, protocol: str) -> dict[str, str]:
    url = receiver.grpc_endpoint if protocol == "grpc" else receiver.http_endpoint
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
        "OTEL_METRIC_EXPORT_INTERVAL": "500",
    }


def samples(captured: Capture) -> float:
    """Over all processes, as a backend would sum them up."""
    return sum(point.value or 0.0 for point in captured.latest(m.SAMPLE_SAMPLES))


def state(captured: Capture) -> list[object]:
    """What the run's status is in the end."""
    return [p.attributes[attr.RUN_STATE.name] for p in captured.latest(m.RUN_STATUS) if p.value == 1]


def loops(captured: Capture) -> int:
    return len(captured.spans("rl.loop"))


def environments(tls: TlsFiles, receivers: ExitStack) -> dict[str, tuple[Receiver, dict[str, str]]]:
    """The ones that must deliver, with where they deliver to."""

    def plain() -> Receiver:
        return receivers.enter_context(Receiver())

    def secret() -> Receiver:
        files = (tls.cert, tls.key)
        return receivers.enter_context(Receiver(tls=files, require_headers={"authorization": "Bearer t0ken"}))

    address = own_address()
    gke = receivers.enter_context(Receiver(grpc_port=4317, host=address))
    managed, generic, insecure, own = plain(), plain(), plain(), plain()
    grpc, http = secret(), secret()
    token = {
        "OTEL_EXPORTER_OTLP_CERTIFICATE": tls.ca,
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20t0ken",
    }
    return {
        "GKE tutorial": (
            gke,
            {
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"{address}:4317",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{address}:4317",
                "OTEL_RESOURCE_ATTRIBUTES": "service.name=rl",
            },
        ),
        "http/protobuf": (managed, environment(managed, "http/protobuf")),
        "grpc": (generic, environment(generic, "grpc")),
        "insecure": (
            insecure,
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"127.0.0.1:{insecure.grpc_port}",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_INSECURE": "1",
            },
        ),
        "ours wins": (
            own,
            {"RLOTEL_ENDPOINT": own.http_endpoint, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
        ),
        "TLS and token, grpc": (grpc, {**environment(grpc, "grpc"), **token}),
        "TLS and token, http": (http, {**environment(http, "http/protobuf"), **token}),
    }


def test_a_program_delivers_in_every_environment(tls_files: TlsFiles) -> None:
    with ExitStack() as receivers:
        places = environments(tls_files, receivers)
        running = {name: (receiver, Program(TRAINING, environ)) for name, (receiver, environ) in places.items()}
        ended = {name: (receiver, program.end()) for name, (receiver, program) in running.items()}
    outcomes = {
        name: (end.code, end.err, samples(r.capture), loops(r.capture), state(r.capture), r.refused)
        for name, (r, end) in ended.items()
    }
    assert outcomes == dict.fromkeys(places, (0, "", 10.0, 1, ["completed"], []))


def test_without_a_collector_a_program_ends_in_5_seconds_and_as_it_would() -> None:
    source = TRAINING + "time.sleep(1.5)\nprint('done', flush=True)\nsys.exit(3)"
    with socket.socket() as dead, socket.socket() as black_hole:
        dead.bind(("127.0.0.1", 0))
        black_hole.bind(("127.0.0.1", 0))
        black_hole.listen()  # connections are made, and never served
        running = {
            (kind, protocol): Program(
                source,
                {"RLOTEL_ENDPOINT": f"http://127.0.0.1:{place.getsockname()[1]}", "RLOTEL_PROTOCOL": protocol},
            )
            for kind, place in (("dead", dead), ("black hole", black_hole))
            for protocol in PROTOCOLS
        }
        ended = {name: program.end() for name, program in running.items()}
    assert {end.code for end in ended.values()} == {3}
    # The promise is 5 s; the rest is for the interpreter's own end on a busy machine.
    assert max(end.seconds_after_done for end in ended.values()) < 7, ended
    assert {end.err.count("metrics do not reach") for end in ended.values()} <= {0, 1}
    assert not [end.err for end in ended.values() if "Traceback" in end.err]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nothing_else_is_printed_about_a_failure(
    receiver: Receiver, program: type[Program], protocol: str
) -> None:
    plain = environment(receiver, protocol)
    tls = {**plain, "OTEL_EXPORTER_OTLP_ENDPOINT": plain["OTEL_EXPORTER_OTLP_ENDPOINT"].replace("http:", "https:")}
    ended = program(TRAINING + "time.sleep(2)", tls).end()
    said = ended.err.splitlines()
    assert sorted(line.partition(" do not reach ")[0] for line in said) == ["rlotel: metrics", "rlotel: traces"]
    assert all("not TLS: use http://" in line for line in said)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_sigterm_delivers_what_was_recorded_last(
    receiver: Receiver, program: type[Program], protocol: str
) -> None:
    running = program(TRAINING + "wait()", environment(receiver, protocol))
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    ended = running.end()
    assert ended.code == -signal.SIGTERM
    assert (samples(receiver.capture), state(receiver.capture)) == (10.0, ["preempted"])


def test_sigterm_delivers_and_then_runs_the_users_handler(receiver: Receiver, program: type[Program]) -> None:
    # This handler leaves no chance to do anything after it.
    handler = "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: os._exit(5))\n"
    running = program(handler + TRAINING + "wait()", environment(receiver, "grpc"))
    running.wait_for("ready")
    running.send(signal.SIGTERM)
    ended = running.end()
    assert ended.code == 5
    assert (samples(receiver.capture), state(receiver.capture)) == (10.0, ["preempted"])


@pytest.mark.parametrize(
    ("ending", "code", "expected"),
    [
        ("sys.exit(3)", 3, "failed"),
        ("raise ValueError", 1, "failed"),
        ("raise KeyboardInterrupt", -2, "cancelled"),
    ],
)
def test_the_run_status_says_how_it_ended(
    receiver: Receiver, program: type[Program], ending: str, code: int, expected: str
) -> None:
    ended = program(TRAINING + ending, environment(receiver, "http/protobuf")).end()
    assert (ended.code, state(receiver.capture)) == (code, [expected])


FORKS = {
    "os.fork": """
if os.fork() == 0:
    train(1)
    sys.exit(4)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 4
""",
    "multiprocessing": """
child = multiprocessing.get_context("fork").Process(target=train, args=(1,))
child.start()
child.join()
assert child.exitcode == 0
""",
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("way", FORKS)
def test_a_fork_does_not_count_twice(receiver: Receiver, program: type[Program], way: str, protocol: str) -> None:
    ended = program(TRAINING + "time.sleep(1.2)\n" + FORKS[way], environment(receiver, protocol)).end()
    assert (ended.code, ended.err) == (0, "")
    assert samples(receiver.capture) == 11.0
    assert loops(receiver.capture) == 2
    assert len({span.resource["service.instance.id"] for span in receiver.capture.spans()}) == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_children_forked_while_other_threads_record_do_not_hang(
    receiver: Receiver, program: type[Program], protocol: str
) -> None:
    source = """
stop = threading.Event()

def hammer():
    while not stop.is_set():
        with rlotel.sample() as sample:
            sample.add(samples=1)

threads = [threading.Thread(target=hammer) for _ in range(3)]
for thread in threads:
    thread.start()
children = []
for _ in range(12):
    pid = os.fork()
    if pid == 0:
        train(1)
        os._exit(0)
    children.append(pid)
deadline = time.monotonic() + 15
left = set(children)
while left and time.monotonic() < deadline:
    left -= {pid for pid in left if os.waitpid(pid, os.WNOHANG)[0]}
    time.sleep(0.01)
stop.set()
for pid in left:
    os.kill(pid, signal.SIGKILL)
print("hung", len(left), flush=True)
"""
    ended = program(TRAINING + source, environment(receiver, protocol)).end()
    assert (ended.out, ended.code) == ("hung 0\n", 0), ended.err


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pythons_development_mode_has_nothing_to_complain_of(
    receiver: Receiver, program: type[Program], protocol: str
) -> None:
    flushed = TRAINING + "rlotel.instrument().flush(5)\ntrain(iteration=1)"
    ended = program(flushed, {**environment(receiver, protocol), "PYTHONDEVMODE": "1"}).end()
    assert (ended.code, ended.err) == (0, "")
    assert samples(receiver.capture) == 20
