"""`rlotel doctor`: every way in which telemetry does not arrive is named, on real sockets."""

import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rlotel.doctor import advice
from rlotel.doctor.inventory import OTHERS, Gpu, gpu
from rlotel.doctor.trial import Trial
from rlotel.endpoint import Destination
from rlotel.receiver import Receiver, Reply
from tests.export.conftest import TlsFiles

Rlotel = Callable[..., subprocess.CompletedProcess[str]]

METRICS_ONLY = {"OTEL_TRACES_EXPORTER": "none"}
PROTOCOLS = ("http/protobuf", "grpc")


def examined(rlotel: Rlotel, *arguments: str, **environ: str) -> tuple[int, Any]:
    """The exit code and the report as data."""
    result = rlotel("doctor", "--json", *arguments, **environ)
    assert "Traceback" not in result.stderr
    return result.returncode, json.loads(result.stdout)


def failure(rlotel: Rlotel, *arguments: str, **environ: str) -> dict[str, str]:
    """The trial of the metric, which must have failed."""
    code, report = examined(rlotel, *arguments, **environ)
    assert code == 1
    assert report["delivers"] is False
    trial: dict[str, str] = report["trials"][0]
    assert trial["signal"] == "metrics"
    assert trial["outcome"] in {"failed", "rejected"}
    assert trial["cause"] in report["next_steps"][0]
    return trial


def endpoint(receiver: Receiver, protocol: str) -> str:
    return receiver.grpc_endpoint if protocol == "grpc" else receiver.http_endpoint


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_arrives_is_said_and_can_be_told_from_a_run(
    rlotel: Rlotel, receiver: Receiver, protocol: str
) -> None:
    code, report = examined(
        rlotel,
        *("--endpoint", endpoint(receiver, protocol), "--protocol", protocol, "--run-id", "r1"),
        OTEL_RESOURCE_ATTRIBUTES="team=a",
    )
    assert (code, report["delivers"]) == (0, True)
    assert [(trial["signal"], trial["outcome"]) for trial in report["trials"]] == [
        ("metrics", "arrived"),
        ("traces", "arrived"),
    ]
    assert {request.protocol for request in receiver.requests} == {protocol}
    (point,) = receiver.capture.points()
    (span,) = receiver.capture.spans()
    assert (point.name, point.value, point.attributes["rl.run.id"]) == (
        "rlotel.export.failures",
        0,
        "rlotel-doctor",
    )
    assert span.name == "rlotel doctor"
    for resource in (point.resource, span.resource):
        assert (resource["service.name"], resource["rl.run.id"]) == ("rlotel-doctor", "rlotel-doctor")
        assert resource["team"] == "a"


def test_a_refused_connection(rlotel: Rlotel) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    trial = failure(rlotel, "--endpoint", f"http://127.0.0.1:{port}")
    assert (trial["failed_at"], trial["cause"]) == ("connection", "connection refused: nothing listens there")


def test_a_name_that_nobody_knows(rlotel: Rlotel) -> None:
    trial = failure(rlotel, "--endpoint", "http://no-such-host.invalid:4318")
    assert trial["failed_at"] == "name"
    assert "DNS" in trial["cause"]


@pytest.fixture
def full_server() -> Iterator[int]:
    """A port whose queue of connections is full: it drops what comes, as a firewall does."""
    with ExitStack() as opened:
        server = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(2):
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield server.getsockname()[1]


def test_an_address_that_swallows_connections(rlotel: Rlotel, full_server: int) -> None:
    trial = failure(rlotel, "--endpoint", f"http://127.0.0.1:{full_server}", **METRICS_ONLY)
    assert trial["failed_at"] == "connection"
    assert trial["cause"].startswith("no connection within 5 s")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_server_that_takes_the_connection_and_never_answers(rlotel: Rlotel, protocol: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        trial = failure(rlotel, "--endpoint", address, "--protocol", protocol, **METRICS_ONLY)
    assert trial["failed_at"] == "answer"
    assert trial["cause"] == "no answer within 5 s"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tls_spoken_to_a_plaintext_server(rlotel: Rlotel, receiver: Receiver, protocol: str) -> None:
    address = endpoint(receiver, protocol).replace("http://", "https://")
    trial = failure(rlotel, "--endpoint", address, "--protocol", protocol)
    assert trial["cause"] == "it speaks plaintext, not TLS: use http://"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plaintext_spoken_to_a_tls_server(rlotel: Rlotel, tls_files: TlsFiles, protocol: str) -> None:
    with Receiver(tls=(tls_files.cert, tls_files.key)) as receiver:
        address = endpoint(receiver, protocol).replace("https://", "http://")
        trial = failure(rlotel, "--endpoint", address, "--protocol", protocol)
    assert trial["cause"] == "it expects TLS, and was spoken to in plaintext: use https://"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_certificate_that_is_not_trusted_until_its_ca_is_named(
    rlotel: Rlotel, tls_files: TlsFiles, protocol: str
) -> None:
    with Receiver(tls=(tls_files.cert, tls_files.key)) as receiver:
        arguments = ("--endpoint", endpoint(receiver, protocol), "--protocol", protocol)
        trial = failure(rlotel, *arguments)
        assert "certificate is not trusted" in trial["cause"]
        assert "OTEL_EXPORTER_OTLP_CERTIFICATE" in trial["cause"]
        code, _ = examined(rlotel, *arguments, OTEL_EXPORTER_OTLP_CERTIFICATE=tls_files.ca)
    assert code == 0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503])
def test_a_refusal_is_shown_with_its_status_and_its_words(rlotel: Rlotel, receiver: Receiver, status: int) -> None:
    receiver.reply = Reply(http_status=status, message="quota of project 42")
    trial = failure(rlotel, "--endpoint", receiver.http_endpoint)
    assert trial["failed_at"] == "answer"
    assert f"HTTP {status}: quota of project 42" in trial["cause"]
    assert trial["cause"].startswith("not allowed") == (status in {401, 403})


def test_a_refusal_over_grpc_is_shown_with_its_code_and_its_words(rlotel: Rlotel, receiver: Receiver) -> None:
    receiver.reply = Reply(http_status=403, message="no such permission")
    trial = failure(rlotel, "--endpoint", receiver.grpc_endpoint, "--protocol", "grpc")
    assert "PERMISSION_DENIED: no such permission" in trial["cause"]


def test_a_token_that_is_missing(rlotel: Rlotel) -> None:
    with Receiver(require_headers={"x-token": "secret"}) as receiver:
        arguments = ("--endpoint", receiver.http_endpoint)
        assert "OTEL_EXPORTER_OTLP_HEADERS" in failure(rlotel, *arguments)["cause"]
        code, report = examined(rlotel, *arguments, "--headers", "x-token=secret")
    assert code == 0
    assert report["destinations"][0]["headers"] == ["x-token"]
    assert "secret" not in json.dumps(report)


def test_a_wrong_path(rlotel: Rlotel, receiver: Receiver) -> None:
    environ = {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"{receiver.http_endpoint}/otlp", **METRICS_ONLY}
    trial = failure(rlotel, **environ)
    assert trial["cause"].startswith("no OTLP receiver at this path")
    assert trial["place"].endswith("/otlp")


def test_http_spoken_to_a_grpc_port(rlotel: Rlotel, receiver: Receiver) -> None:
    trial = failure(rlotel, "--endpoint", receiver.grpc_endpoint, "--protocol", "http/protobuf")
    assert trial["cause"].startswith("it speaks gRPC, not HTTP/1: set RLOTEL_PROTOCOL=grpc")


def test_grpc_spoken_to_an_http_port(rlotel: Rlotel, receiver: Receiver) -> None:
    trial = failure(rlotel, "--endpoint", receiver.http_endpoint, "--protocol", "grpc")
    assert trial["cause"].startswith("it speaks HTTP/1, not gRPC: set RLOTEL_PROTOCOL=http/protobuf")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_success_that_is_none_is_shown_with_its_words(rlotel: Rlotel, receiver: Receiver, protocol: str) -> None:
    receiver.reply = Reply(rejected=1, message="no label rl.run.id, please")
    trial = failure(rlotel, "--endpoint", endpoint(receiver, protocol), "--protocol", protocol)
    assert (trial["outcome"], trial["cause"]) == ("rejected", "no label rl.run.id, please")


def test_a_success_with_a_remark_is_a_success(rlotel: Rlotel, receiver: Receiver) -> None:
    receiver.reply = Reply(message="use gzip")
    code, report = examined(rlotel, "--endpoint", receiver.http_endpoint)
    assert code == 0
    assert [(trial["outcome"], trial["cause"]) for trial in report["trials"]] == [("arrived", "use gzip")] * 2


def test_a_proxy_in_between_is_named_without_its_password(rlotel: Rlotel) -> None:
    trial = failure(
        rlotel, "--endpoint", "http://collector.invalid:4318", http_proxy="http://me:secret@127.0.0.1:1"
    )
    assert trial["proxy"] == "127.0.0.1:1"
    assert "secret" not in json.dumps(trial)


def test_without_an_endpoint_it_is_kept_here_and_that_is_said(rlotel: Rlotel, tmp_path: Path) -> None:
    code, report = examined(rlotel)
    assert code == 0
    assert [trial["outcome"] for trial in report["trials"]] == ["kept", "kept"]
    assert report["trials"][0]["place"] == str(tmp_path / "capture.jsonl")
    assert "RLOTEL_ENDPOINT" in report["next_steps"][0]


def test_a_capture_file_that_cannot_be_written_is_a_failure(rlotel: Rlotel) -> None:
    trial = failure(rlotel, RLOTEL_CAPTURE="/dev/null/capture.jsonl")
    assert (trial["place"], trial["cause"]) == ("/dev/null/capture.jsonl", "it cannot be written")


@pytest.mark.parametrize("environ", [{"OTEL_SDK_DISABLED": "true"}, {"RLOTEL_ENABLED": "no"}])
def test_switched_off_nothing_is_sent_and_the_variable_is_named(
    rlotel: Rlotel, receiver: Receiver, environ: dict[str, str]
) -> None:
    code, report = examined(rlotel, "--endpoint", receiver.http_endpoint, **environ)
    (variable,) = environ
    assert (code, report["off"], report["trials"]) == (0, variable, [])
    assert report["next_steps"] == [f"Everything is switched off by {variable}: unset it to send telemetry."]
    assert receiver.requests == []


def test_a_folder_for_captures_that_cannot_be_written_is_a_failure(rlotel: Rlotel, tmp_path: Path) -> None:
    folder = tmp_path / f"rlotel-{os.getuid()}"
    folder.touch()
    trial = failure(rlotel, RLOTEL_CAPTURE="", TMPDIR=str(tmp_path))
    assert (trial["place"], trial["cause"]) == (str(folder), "it cannot be written")


def test_what_does_not_clearly_switch_opentelemetry_off_does_not(rlotel: Rlotel) -> None:
    code, report = examined(rlotel, OTEL_SDK_DISABLED="perhaps")
    assert (code, report["off"]) == (0, "")
    assert report["trials"] != []


@pytest.mark.parametrize(
    ("arguments", "environ", "setting"),
    [
        (["--endpoint", "ftp://x"], {}, "--endpoint"),
        ([], {"RLOTEL_ENDPOINT": "x:4318", "OTEL_EXPORTER_OTLP_TIMEOUT": "soon"}, "OTEL_EXPORTER_OTLP_TIMEOUT"),
        ([], {"RLOTEL_FRAMEWORKS": "no_such"}, "frameworks"),
    ],
)
def test_a_wrong_setting_is_named_in_words_and_in_json(
    rlotel: Rlotel, arguments: list[str], environ: dict[str, str], setting: str
) -> None:
    code, report = examined(rlotel, *arguments, **environ)
    assert (code, report["error"]["setting"]) == (2, setting)
    result = rlotel("doctor", *arguments, **environ)
    assert (result.returncode, result.stderr) == (2, f"Error: {report['error']['message']}\n")


def test_identity_resource_and_versions_are_what_a_run_would_send(rlotel: Rlotel, receiver: Receiver) -> None:
    _, report = examined(
        rlotel,
        *("--endpoint", receiver.http_endpoint, "--run-id", "r1", "--algorithm", "GRPO", "--location", "us-east1"),
        K8S_POD_NAME="p",
    )
    assert report["identity"] == {"rl.run.id": "r1", "rl.system": "custom", "rl.algorithm": "GRPO"}
    assert report["run_id_is_random"] is False
    wanted = {"k8s.pod.name": "p", "location": "us-east1", "rl.run.id": "r1", "service.name": "rl-training"}
    assert report["resource"].items() >= wanted.items()
    assert report["versions"].keys() >= {"rlotel", "python", "opentelemetry-api", "opentelemetry-sdk"}
    assert [where["source"] for where in report["destinations"]] == ["RLOTEL_ENDPOINT"] * 2


def test_a_framework_without_an_integration_is_found_without_importing_it(rlotel: Rlotel, tmp_path: Path) -> None:
    name = OTHERS[0]
    (tmp_path / f"{name}.py").write_text("raise RuntimeError('must not be imported')")
    code, report = examined(rlotel, PYTHONPATH=str(tmp_path))
    found = {framework["name"]: framework for framework in report["frameworks"]}[name]
    assert code == 0
    assert (found["present"], found["instrumented"], found["known"]) == (True, False, False)
    assert any(name in step and "rlotel.loop()" in step for step in report["next_steps"])


def test_a_framework_that_is_not_here_is_not_said_to_be_instrumented(rlotel: Rlotel, tmp_path: Path) -> None:
    (tmp_path / "verl.py").write_text("raise RuntimeError('must not be imported')")
    said = rlotel("doctor", PYTHONPATH=str(tmp_path)).stdout.splitlines()
    assert "  verl: will be instrumented" in said
    assert "  nemo_rl: not installed" in said


def test_the_words_have_all_sections_and_the_steps_are_numbered(rlotel: Rlotel, receiver: Receiver) -> None:
    result = rlotel("doctor", "--endpoint", receiver.http_endpoint)
    assert result.returncode == 0
    titles = [line for line in result.stdout.splitlines() if line and not line.startswith(" ")]
    assert titles == [
        "Installed",
        "Frameworks",
        "Identity, on every point and span",
        "Resource",
        "Where to",
        "Does it arrive",
        "GPUs",
        "What to do next",
    ]
    assert f"metrics: arrived at {receiver.http_endpoint}/v1/metrics" in result.stdout
    assert "\n  1. Start training: " in result.stdout


@pytest.mark.parametrize(
    "line",
    [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build  (builder@host)\n",
    ],
)
def test_the_driver_is_known_without_its_library(tmp_path: Path, line: str) -> None:
    version = tmp_path / "version"
    version.write_text(line)
    assert gpu(version).driver == "550.54.15"
    assert gpu(tmp_path / "none").driver is None


GOOGLE = Destination("metrics", "otlp", "RLOTEL_ENDPOINT", url="https://telemetry.googleapis.com/v1/metrics")
NO_GPU = Gpu(None, False, None, ())


def steps(trial: Trial, *, gpus: Gpu = NO_GPU, **resource: str) -> list[str]:
    return list(advice.next_steps("", [GOOGLE], [trial], resource, [], gpus))


def test_a_variable_that_is_no_setting_is_named_with_the_one_that_was_meant(rlotel: Rlotel) -> None:
    wrong = {"RLOTEL_ENDPONT": "http://collector:4318", "RLOTEL_COLOUR": "green"}
    _, report = examined(rlotel, **wrong, RLOTEL_RUN_ID="r1")
    assert report["next_steps"][:2] == [
        "RLOTEL_COLOUR is set, and is no setting: `rlotel run --help` lists what there is.",
        "RLOTEL_ENDPONT is set, and is no setting: did you mean RLOTEL_ENDPOINT?",
    ]
    _, report = examined(rlotel, RLOTEL_RUN_ID="r1")
    assert not any("no setting" in step for step in report["next_steps"])


def test_google_cloud_without_a_location_asks_for_one() -> None:
    arrived = Trial("metrics", GOOGLE.url, "arrived")
    assert "RLOTEL_LOCATION" in steps(arrived)[0]
    assert not any("RLOTEL_LOCATION" in step for step in steps(arrived, location="us-east1"))


def test_google_clouds_refusal_names_the_roles_that_are_missing() -> None:
    refused = Trial("metrics", GOOGLE.url, "failed", "not allowed (HTTP 403)", "answer")
    step = steps(refused, location="us-east1")[0]
    assert "roles/telemetry.writer" in step
    assert "roles/serviceusage.serviceUsageConsumer" in step


def test_a_driver_without_the_package_that_reads_it_says_what_to_install() -> None:
    arrived = Trial("metrics", GOOGLE.url, "arrived")
    found = steps(arrived, gpus=Gpu(None, True, "550.54.15", ()), location="us-east1")
    assert any("pip install 'rlotel[gpu]'" in step for step in found)
