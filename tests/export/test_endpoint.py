"""Every way people write an endpoint leads to the same place, or to an error that names the variable."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rlotel.config import resolve as settle
from rlotel.endpoint import Destination, resolve
from rlotel.errors import SettingError

GENERIC = "OTEL_EXPORTER_OTLP_ENDPOINT"
METRICS = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
INSECURE = "OTEL_EXPORTER_OTLP_INSECURE"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"
GKE = "opentelemetry-collector.gke-managed-otel.svc.cluster.local"


def metrics(environ: Mapping[str, str], **arguments: object) -> Destination:
    return resolve("metrics", settle(arguments, environ), environ)


@pytest.mark.parametrize(
    ("environ", "protocol", "url"),
    [
        # The GKE tutorial's, plaintext as its collector is.
        ({METRICS: f"{GKE}:4317"}, "grpc", f"http://{GKE}:4317"),
        (
            {GENERIC: f"http://{GKE}:4318", PROTOCOL: "http/protobuf"},
            "http/protobuf",
            f"http://{GKE}:4318/v1/metrics",
        ),
        ({GENERIC: "127.0.0.1:4317"}, "grpc", "http://127.0.0.1:4317"),
        ({GENERIC: "http://h:4317"}, "grpc", "http://h:4317"),
        ({GENERIC: "http://h:4317/v1/metrics"}, "grpc", "http://h:4317"),
        ({GENERIC: "https://h:4317"}, "grpc", "https://h:4317"),
        ({GENERIC: "https://h", PROTOCOL: "grpc"}, "grpc", "https://h:443"),
        ({GENERIC: "h:4317", PROTOCOL: "http/protobuf"}, "http/protobuf", "http://h:4317/v1/metrics"),
        ({GENERIC: "h:4318"}, "http/protobuf", "http://h:4318/v1/metrics"),
        ({GENERIC: "h:4318", PROTOCOL: "grpc"}, "grpc", "http://h:4318"),
        ({GENERIC: "h"}, "http/protobuf", "http://h:4318/v1/metrics"),
        ({GENERIC: "h", PROTOCOL: "grpc"}, "grpc", "http://h:4317"),
        ({GENERIC: "http://h:4318/"}, "http/protobuf", "http://h:4318/v1/metrics"),
        ({GENERIC: "http://h:4318/v1/metrics"}, "http/protobuf", "http://h:4318/v1/metrics"),
        ({GENERIC: "http://h:4318/v1/traces/"}, "http/protobuf", "http://h:4318/v1/metrics"),
        ({GENERIC: "https://h/otlp"}, "http/protobuf", "https://h/otlp/v1/metrics"),
        ({METRICS: "http://h:4318"}, "http/protobuf", "http://h:4318/v1/metrics"),
        (
            {METRICS: "http://h:9090/api/v1/otlp/v1/metrics"},
            "http/protobuf",
            "http://h:9090/api/v1/otlp/v1/metrics",
        ),
        ({METRICS: "http://h:4318/own"}, "http/protobuf", "http://h:4318/own"),
        ({GENERIC: "[::1]:4317"}, "grpc", "http://[::1]:4317"),
        ({GENERIC: "http://[::1]:4318"}, "http/protobuf", "http://[::1]:4318/v1/metrics"),
        ({GENERIC: "dns:///h:4317"}, "grpc", "dns:///h:4317"),
        ({GENERIC: "HTTP://h:4318"}, "http/protobuf", "http://h:4318/v1/metrics"),
        ({GENERIC: "  http://h:4318  "}, "http/protobuf", "http://h:4318/v1/metrics"),
        ({METRICS: "", GENERIC: "http://h:4318"}, "http/protobuf", "http://h:4318/v1/metrics"),
        ({"OTEL_METRICS_EXPORTER": "otlp_proto_grpc", GENERIC: "http://h:9999"}, "grpc", "http://h:9999"),
    ],
)
def test_an_endpoint_is_understood(environ: dict[str, str], protocol: str, url: str) -> None:
    found = metrics(environ)
    assert (found.kind, found.protocol, found.url) == ("otlp", protocol, url)
    assert found.insecure == url.startswith(("http:", "dns:"))
    assert found.source == (METRICS if environ.get(METRICS) else GENERIC)


@pytest.mark.parametrize("yes", ["1", "true", "True", "yes", "on"])
def test_every_yes_makes_an_endpoint_without_scheme_plaintext(yes: str) -> None:
    assert metrics({GENERIC: "h:4317", INSECURE: yes, HEADERS: "a=b"}).url == "http://h:4317"


@pytest.mark.parametrize("no", ["0", "false", "no"])
def test_every_no_makes_an_endpoint_without_scheme_tls(no: str) -> None:
    assert metrics({GENERIC: "h:4317", INSECURE: no}).url == "https://h:4317"


def test_the_scheme_wins_over_insecure() -> None:
    assert metrics({GENERIC: "https://h:4317", INSECURE: "1"}).insecure is False
    assert metrics({GENERIC: "http://h:4317", INSECURE: "0"}).insecure is True


def test_secrets_are_not_sent_in_the_clear_because_a_scheme_was_forgotten(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.touch()
    assert metrics({GENERIC: "h:4317", HEADERS: "authorization=Bearer%20x"}).url == "https://h:4317"
    assert (
        metrics({GENERIC: "h:4318", "OTEL_EXPORTER_OTLP_CERTIFICATE": str(ca)}).url == "https://h:4318/v1/metrics"
    )


def test_ours_wins_over_opentelemetrys_and_the_signals_over_the_general() -> None:
    environ = {GENERIC: "http://general:1", METRICS: "http://signal:2", "RLOTEL_ENDPOINT": "http://ours:3"}
    assert metrics(environ, endpoint="http://argument:4").url == "http://argument:4/v1/metrics"
    assert metrics(environ).url == "http://ours:3/v1/metrics"
    assert metrics(environ).source == "RLOTEL_ENDPOINT"
    del environ["RLOTEL_ENDPOINT"]
    assert metrics(environ).url == "http://signal:2/v1/metrics"
    assert resolve("traces", settle({}, environ), environ).url == "http://general:1/v1/traces"


def test_headers_are_decoded_and_ours_win() -> None:
    environ = {GENERIC: "http://h:4318", HEADERS: "Authorization=Bearer%20a=b, x-team = rl ,"}
    assert metrics(environ).headers == {"authorization": "Bearer a=b", "x-team": "rl"}
    environ["RLOTEL_HEADERS"] = "x-token=1"
    assert metrics(environ).headers == {"x-token": "1"}


def test_nothing_set_is_a_local_capture() -> None:
    found = metrics({GENERIC: " "})
    assert (found.kind, found.describe(), found.source) == ("capture", "capture", "")


@pytest.mark.parametrize(
    ("exporter", "kind"),
    [("none", "off"), ("console", "console"), ("otlp", "otlp"), ("", "otlp"), ("console,otlp", "otlp")],
)
def test_the_exporter_variable_is_heeded(exporter: str, kind: str) -> None:
    found = metrics({"OTEL_METRICS_EXPORTER": exporter, GENERIC: "http://h:4318"})
    assert (found.kind, found.note) == (kind, "")


def test_an_exporter_that_is_not_ours_is_pointed_out_and_otlp_stays() -> None:
    found = metrics({"OTEL_METRICS_EXPORTER": "prometheus", GENERIC: "http://h:4318"})
    assert found.kind == "otlp"
    assert "OTEL_METRICS_EXPORTER=prometheus" in found.note


def test_a_description_hides_what_may_be_secret() -> None:
    found = metrics({GENERIC: "http://h:4318/otlp?key=secret", HEADERS: "token=secret"})
    assert found.url == "http://h:4318/otlp/v1/metrics?key=secret"
    assert "secret" not in found.describe() + repr(found).replace(found.url, "")


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        (GENERIC, "ftp://h:21", "use http://"),
        (GENERIC, "http://", "no host"),
        (GENERIC, ":4317", "no host"),
        (GENERIC, "http://h:99999", "no URL"),
        (GENERIC, "h:4x17", "no URL"),
        (GENERIC, "http://h:0", "port 0"),
        (GENERIC, "http://[::1", "no URL"),
        (GENERIC, "http://a b:1", "space"),
        (GENERIC, "http://user:secret@h", "headers"),
        (METRICS, "ftp://h", "use http://"),
        ("RLOTEL_ENDPOINT", "ftp://h", "use http://"),
        (PROTOCOL, "http/json", "http/protobuf"),
        (PROTOCOL, "thrift", "grpc or http/protobuf"),
        (INSECURE, "maybe", "neither true nor false"),
        (HEADERS, "authorization", "name=value"),
        (HEADERS, "a b=c", "no name of a header"),
        (HEADERS, "a=b%0d%0ac", "one line"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere.pem", "no file"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "seconds"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zip", "gzip"),
    ],
)
def test_what_is_wrong_names_the_variable_and_says_what_to_do(variable: str, value: str, words: str) -> None:
    with pytest.raises(SettingError) as caught:
        metrics({GENERIC: "h:4318", variable: value})
    assert str(caught.value).startswith(f"{variable}: ")
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


ANY_VALUE = st.text() | st.from_regex(
    r"(https?|grpc|dns)?(:/?/?)?[\w.\[\]:%-]{0,20}(:\d{0,6})?(/\S*)?", fullmatch=True
)


@given(
    st.dictionaries(
        st.sampled_from([GENERIC, METRICS, PROTOCOL, INSECURE, HEADERS, "OTEL_EXPORTER_OTLP_TIMEOUT"]), ANY_VALUE
    )
)
@example({GENERIC: "//"})
@example({GENERIC: "unix:"})
@example({GENERIC: "http://\udc80"})
def test_any_text_is_understood_or_refused_by_name(environ: dict[str, str]) -> None:
    found, refused = None, None
    try:
        found = metrics(environ)
    except SettingError as error:
        refused = error.setting
    assert refused in environ if found is None else found.kind == "capture" or found.target
