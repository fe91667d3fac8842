"""The capture file: whole lines, up to a limit, whatever the disk and other writers do."""

import errno
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from rlotel import otlp_json
from rlotel.capture import Capture, CaptureFile, read
from tests.export.messages import gauge, span


def _read(*requests: otlp_json.ExportRequest) -> Capture:
    return read([otlp_json.to_line(request) for request in requests])


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "not" / "there yet" / "capture.jsonl"
    metrics = gauge("é\u2028")
    spans = span()
    with CaptureFile(path) as file:
        assert (file.write(metrics), file.write(spans)) == (True, True)
        assert read(path) == _read(metrics, spans)  # in the file at once: nothing waits for a close
    with CaptureFile(str(path)) as file:
        assert file.write(metrics)
    assert read(str(path)) == _read(metrics, spans, metrics)


def test_a_capture_file_stops_at_its_limit(tmp_path: Path) -> None:
    small = gauge()
    large = gauge("l" * 200)
    size = len(otlp_json.to_line(small)) + 1
    path = tmp_path / "capture.jsonl"
    with CaptureFile(path, limit_bytes=3 * size) as file:
        # After a first refusal there is room for a small one, but a capture with holes would mislead.
        assert [file.write(r) for r in (small, small, large, small)] == [True, True, False, False]
        assert (file.full, file.error) == (True, None)
    with CaptureFile(path, limit_bytes=3 * size) as file:
        assert [file.write(small), file.write(small)] == [True, False]
    assert path.stat().st_size == 3 * size


def test_a_full_disk_is_told_and_not_raised() -> None:
    with CaptureFile("/dev/full") as file:
        assert not file.write(ExportMetricsServiceRequest())
        assert file.error is not None
        assert (file.error.errno, file.full) == (errno.ENOSPC, False)


def test_a_place_that_cannot_be_written_is_told_and_not_raised(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with CaptureFile(tmp_path / "file" / "capture.jsonl") as file:
        assert not file.write(ExportMetricsServiceRequest())
        assert isinstance(file.error, NotADirectoryError | FileExistsError)


def test_a_closed_file_refuses(tmp_path: Path) -> None:
    file = CaptureFile(tmp_path / "capture.jsonl")
    file.close()
    file.close()
    assert not file.write(ExportMetricsServiceRequest())


DISK_THAT_FILLS_UP = """
import resource, sys
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from rlotel.capture import CaptureFile

request = ExportMetricsServiceRequest()
request.resource_metrics.add().scope_metrics.add().metrics.add(name="loss").gauge.data_points.add(as_int=1)
file = CaptureFile(sys.argv[1])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
before = file.write(request)
resource.setrlimit(resource.RLIMIT_FSIZE, (file.path.stat().st_size * 3 // 2, hard))
filling = file.write(request)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
after = file.write(request)
assert (before, filling, after, type(file.error)) == (True, False, True, OSError), (before, filling, after)
"""


def test_after_a_disk_was_cleared_writing_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    subprocess.run([sys.executable, "-c", DISK_THAT_FILLS_UP, str(path)], check=True)
    capture = read(path)
    assert ([p.value for p in capture.points("loss")], capture.unreadable) == ([1, 1], 1)


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    requests = [gauge(f"m{n}") for n in range(8)]

    def write(request: ExportMetricsServiceRequest) -> None:
        for _ in range(25):
            file.write(request)

    with CaptureFile(path) as file:
        threads = [threading.Thread(target=write, args=(request,)) for request in requests]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    capture = read(path)
    assert capture.unreadable == 0
    assert Counter(point.name for point in capture.points()) == {f"m{n}": 25 for n in range(8)}


FORKS_DURING_WRITES = """
import os, sys, threading, time
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from rlotel.capture import CaptureFile

request = ExportMetricsServiceRequest()
request.resource_metrics.add().scope_metrics.add().metrics.add(name="loss").gauge.data_points.add(as_int=1)
file = CaptureFile(sys.argv[1])
stop = threading.Event()
writer = threading.Thread(target=lambda: all(file.write(request) for _ in iter(stop.is_set, True)))
writer.start()
children = []
for _ in range(10):
    child = os.fork()
    if not child:
        os._exit(0 if file.write(request) else 3)
    children.append(child)
deadline = time.monotonic() + 20
ended = {}
while len(ended) < len(children) and time.monotonic() < deadline:
    for child in set(children) - set(ended):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            ended[child] = status
    time.sleep(0.01)
for child in set(children) - set(ended):
    os.kill(child, 9)
stop.set()
writer.join()
assert [ended.get(child, "hangs") for child in children] == [0] * 10, ended
"""


def test_a_fork_during_a_write_does_not_block_the_child(tmp_path: Path) -> None:
    path = tmp_path / "capture.jsonl"
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS_DURING_WRITES, str(path)], check=True)
    assert read(path).unreadable == 0
