"""What really listens at an address: TLS, HTTP/2 (gRPC) or HTTP/1, found out by one greeting."""

from __future__ import annotations

import socket
import ssl
from typing import Literal

Spoken = Literal["TLS", "HTTP/2", "HTTP/1"]

# The beginning of every HTTP/2 connection, and an empty settings frame. An HTTP/1 server takes it for a request
# with a wrong version, and TLS for nonsense: each answers in its own language.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
_SETTINGS = 4
_ALERT = b"\x15\x03"


def spoken(host: str, port: int, seconds: float) -> Spoken | None:
    """What is spoken there, None if nobody answers.

    Args:
        host: its name or address.
        port: its port.
        seconds: how long each of two attempts may take.
    """
    answer = b""
    try:
        with socket.create_connection((host, port), seconds) as connection:
            connection.sendall(_GREETING)
            answer = connection.recv(16)
    except OSError:
        pass  # some TLS servers hang up on nonsense
    if answer.startswith(_ALERT):
        return "TLS"
    if len(answer) > 3 and answer[3] == _SETTINGS:
        return "HTTP/2"
    if answer:
        return "HTTP/1"
    return "TLS" if _shakes_hands(host, port, seconds) else None


def _shakes_hands(host: str, port: int, seconds: float) -> bool:
    # Only whether it speaks TLS: nothing is sent, so it need not be trusted.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        with socket.create_connection((host, port), seconds) as connection, context.wrap_socket(connection):
            return True
    except ssl.SSLError as error:
        # One that asks for a certificate of ours speaks TLS, too.
        return "CERTIFICATE_REQUIRED" in str(error).upper()
    except OSError:
        return False
