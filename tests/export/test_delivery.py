"""Over real sockets: what arrives, and where it goes without a collector."""

import importlib
import logging
import random
from pathlib import Path

import pytest

from rlotel import capture
from rlotel.receiver import Receiver, Reply
from tests.export.conftest import TlsFiles, own_address
from tests.export.sending import (
    PROTOCOLS,
    TOKEN,
    Failures,
    endpoint,
    everything,
    lines,
    record,
    sending,
)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "extra",
    [{}, {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, {"OTEL_EXPORTER_OTLP_INSECURE": "1"}],
    ids=["plain", "gzip", "insecure"],
)
def test_both_signals_arrive(receiver: Receiver, failures: Failures, protocol: str, extra: dict[str, str]) -> None:
    with sending(failures, {**endpoint(receiver, protocol), **extra}) as built:
        assert built.flush(5)
    assert receiver.wait_for(everything, 5)
    assert {request.protocol for request in receiver.requests} == {protocol}
    assert receiver.capture.points("test.counter")[-1].value == 3.0
    assert failures.counted == {"metrics": 0, "traces": 0}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tls_with_a_private_ca_and_a_token_in_a_header(
    tls_files: TlsFiles, failures: Failures, protocol: str
) -> None:
    with Receiver(tls=(tls_files.cert, tls_files.key), require_headers={"Authorization": TOKEN}) as receiver:
        environ = {
            **endpoint(receiver, protocol),
            "OTEL_EXPORTER_OTLP_CERTIFICATE": tls_files.ca,
            "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20t0ken",
        }
        with sending(failures, environ) as built:
            assert built.flush(5)
        assert receiver.wait_for(everything, 5)
        assert receiver.refused == []


def test_the_gke_tutorials_environment_delivers(failures: Failures) -> None:
    address = own_address()
    with Receiver(grpc_port=4317, host=address) as receiver:
        environ = {
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": f"{address}:4317",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{address}:4317",
        }
        with sending(failures, environ) as built:
            assert built.flush(5)
        assert receiver.wait_for(everything, 5)
        assert {request.protocol for request in receiver.requests} == {"grpc"}


def test_without_an_endpoint_both_signals_go_to_a_file_and_one_line_says_so(
    failures: Failures, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "new" / "run.jsonl"
    with sending(failures, {"RLOTEL_CAPTURE": str(file)}) as built:
        assert built.flush(5)
    assert everything(capture.read(file))
    (said,) = [record.getMessage() for record in caplog.records]
    assert str(file) in said
    assert "RLOTEL_ENDPOINT=" in said


def test_a_file_that_cannot_be_written_is_said_once_and_counted(
    failures: Failures, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with sending(failures, {"RLOTEL_CAPTURE": str(tmp_path)}) as built:
        assert not built.flush(5)
        assert not built.flush(5)
    assert len(lines(caplog, "metrics")) == 2  # where it goes, and that it does not get there
    assert failures.counted["metrics"] >= 2


def test_the_console_shows_what_would_be_sent(failures: Failures, capfd: pytest.CaptureFixture[str]) -> None:
    with sending(failures, {"OTEL_METRICS_EXPORTER": "console", "OTEL_TRACES_EXPORTER": "console"}) as built:
        assert built.flush(5)
    shown = capfd.readouterr().out
    assert "test.counter" in shown
    assert "test.span" in shown


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_programs_random_numbers_are_its_own(receiver: Receiver, failures: Failures, protocol: str) -> None:
    receiver.reply = Reply(http_status=429, retry_after=1)
    state = random.getstate()
    with sending(failures, endpoint(receiver, protocol)) as built:
        built.flush(0.5)
        receiver.reply = Reply()
        with built.tracer_provider.get_tracer("test").start_as_current_span("outer"):
            record(built)
        assert built.flush(5)
    assert random.getstate() == state


def test_a_provider_of_credentials_that_fails_is_explained_and_asked_again(
    receiver: Receiver,
    failures: Failures,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    package = tmp_path / "tokens-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: tokens\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[opentelemetry_otlp_credential_provider]\ntokens = tokens:Session\n"
    )
    (tmp_path / "tokens.py").write_text(
        "import requests\n"
        "class RefreshError(Exception): pass\n"
        "class Session(requests.Session):\n"
        "    expired = True\n"
        "    def request(self, *args, **kwargs):\n"
        "        if Session.expired: raise RefreshError('the token cannot be renewed')\n"
        "        return super().request(*args, **kwargs)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER", "tokens")
    with sending(failures, endpoint(receiver, "http/protobuf")) as built:
        assert not built.flush(5)
        for signal in ("metrics", "traces"):
            (line,) = lines(caplog, signal)
            assert "RefreshError: the token cannot be renewed" in line
        monkeypatch.setattr(importlib.import_module("tokens").Session, "expired", False)
        record(built)
        assert built.flush(5)
    assert receiver.capture.latest("test.counter")[0].value == 6


def test_a_log_handler_that_raises_does_not_end_the_export(receiver: Receiver, failures: Failures) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("disk full")

    handler = Broken()
    logging.getLogger("rlotel").addHandler(handler)
    try:
        receiver.reply = Reply(http_status=403)
        with sending(failures, endpoint(receiver, "http/protobuf")) as built:
            assert not built.flush(5)
            receiver.reply = Reply()
            record(built)
            assert built.flush(5)
    finally:
        logging.getLogger("rlotel").removeHandler(handler)
    assert receiver.capture.latest("test.counter")[0].value == 6
    assert len(receiver.capture.spans("test.span")) == 1
