"""The embedded receiver's answers: good, bad on demand, late, and none."""

import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
import requests
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)

from rlotel import capture, otlp_json
from rlotel.receiver import Receiver, Reply
from tests.export.messages import SOON, Send, both_protocols, gauge, one_of_each


def test_json_over_http_arrives_and_is_answered_in_json(receiver: Receiver) -> None:
    receiver.reply = Reply(rejected=2, message="two too many")
    answers = [
        requests.post(
            f"{receiver.http_endpoint}/v1/{otlp_json.signal_of(request)}",
            otlp_json.to_line(request),
            headers={"Content-Type": "application/json; charset=utf-8"},
            timeout=SOON,
        )
        for request in one_of_each()
    ]
    assert [(r.protocol, r.message) for r in receiver.requests] == [("http/json", r) for r in one_of_each()]
    assert [(a.status_code, a.headers["Content-Type"]) for a in answers] == [(200, "application/json")] * 3
    assert [a.json()["partialSuccess"] for a in answers] == [
        {"rejectedDataPoints": "2", "errorMessage": "two too many"},
        {"rejectedSpans": "2", "errorMessage": "two too many"},
        {"rejectedLogRecords": "2", "errorMessage": "two too many"},
    ]


@both_protocols
def test_a_plain_success_has_an_empty_answer(send: Send, receiver: Receiver, protocol: str) -> None:
    assert [send(receiver, protocol, request).text for request in one_of_each()] == ["", "", ""]


@both_protocols
def test_a_required_header_must_be_there_and_right(send: Send, protocol: str) -> None:
    with Receiver(require_headers={"Authorization": "Bearer s3cret"}) as receiver:
        answers = [
            send(receiver, protocol, gauge(), headers)
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Bearer s3cret"})
        ]
        no, yes = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.OK) if protocol == "grpc" else (401, 200)
        assert [answer.code for answer in answers] == [no, no, yes]
        assert answers[0].text == "header authorization is missing or wrong"
        assert (len(receiver.requests), len(receiver.refused)) == (1, 2)


BAD = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.UNIMPLEMENTED,
    418: grpc.StatusCode.UNKNOWN,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
}


@both_protocols
@pytest.mark.parametrize("status", BAD)
def test_it_answers_badly_on_demand(send: Send, receiver: Receiver, protocol: str, status: int) -> None:
    receiver.reply = Reply(http_status=status, message="says who?")
    answer = send(receiver, protocol, gauge())
    assert (answer.code, answer.text) == (BAD[status] if protocol == "grpc" else status, "says who?")
    assert [(r.signal, r.message) for r in receiver.refused] == [("metrics", gauge())]
    assert (receiver.requests, receiver.capture) == ([], capture.Capture())
    receiver.reply = Reply()
    assert send(receiver, protocol, gauge()).code in (200, grpc.StatusCode.OK)
    assert [p.name for p in receiver.capture.points()] == ["loss"]


def test_the_two_protocols_may_be_answered_differently(send: Send, receiver: Receiver) -> None:
    receiver.reply = Reply(grpc_status=grpc.StatusCode.DEADLINE_EXCEEDED, message="too late")
    assert send(receiver, "grpc", gauge())[:2] == (grpc.StatusCode.DEADLINE_EXCEEDED, "too late")
    assert send(receiver, "http/protobuf", gauge()).code == 200
    assert [r.protocol for r in receiver.refused + receiver.requests] == ["grpc", "http/protobuf"]


def test_a_busy_answer_says_when_to_come_back(send: Send, receiver: Receiver) -> None:
    receiver.reply = Reply(http_status=429, retry_after=7)
    assert send(receiver, "http/protobuf", gauge()).headers["Retry-After"] == "7"
    receiver.reply = Reply(http_status=429)
    assert "Retry-After" not in send(receiver, "http/protobuf", gauge()).headers


@both_protocols
def test_a_partial_success_is_taken_and_says_what_was_not(send: Send, receiver: Receiver, protocol: str) -> None:
    receiver.reply = Reply(rejected=3, message="too old")
    answer = send(receiver, protocol, gauge())
    said = ExportMetricsServiceResponse()
    said.partial_success.rejected_data_points = 3
    said.partial_success.error_message = "too old"
    if protocol == "grpc":
        assert answer.text == str(said)
    else:
        assert ExportMetricsServiceResponse.FromString(answer.text.encode()) == said
    assert receiver.capture.names() == ["loss"]


@both_protocols
def test_a_late_answer_comes(send: Send, receiver: Receiver, protocol: str) -> None:
    receiver.reply = Reply(delay=0.05)
    assert send(receiver, protocol, gauge()).code in (200, grpc.StatusCode.OK)


@both_protocols
@pytest.mark.parametrize(("reply", "taken"), [(Reply(delay=600), True), (Reply(silent=True), False)])
def test_a_client_may_give_up_before_the_answer(
    send: Send, receiver: Receiver, protocol: str, reply: Reply, taken: bool
) -> None:
    receiver.reply = reply
    if protocol == "grpc":
        assert send(receiver, protocol, gauge(), timeout=0.5).code is grpc.StatusCode.DEADLINE_EXCEEDED
    else:
        with pytest.raises(requests.exceptions.ReadTimeout):
            send(receiver, protocol, gauge(), timeout=0.5)
    assert receiver.wait_for(lambda _: receiver.requests or receiver.refused, SOON)
    assert (len(receiver.requests), len(receiver.refused)) == ((1, 0) if taken else (0, 1))


@both_protocols
def test_it_closes_at_once_with_requests_in_flight(send: Send, protocol: str) -> None:
    receiver = Receiver(reply=Reply(silent=True))
    with ThreadPoolExecutor(12) as pool:
        # More than a pool of the usual size would serve at a time.
        calls = [pool.submit(send, receiver, protocol, gauge(), timeout=60) for _ in range(12)]
        assert receiver.wait_for(lambda _: len(receiver.refused) == 12, SOON)
        before = time.monotonic()
        receiver.close()
        assert time.monotonic() - before < 5
        for call in calls:
            if protocol == "grpc":
                assert call.result(SOON).code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
            else:
                assert isinstance(call.exception(SOON), requests.exceptions.ConnectionError)
    receiver.close()
