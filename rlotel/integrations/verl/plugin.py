"""What verl loads in each of its processes: importing it starts rlotel where `RLOTEL_ENABLED` says so.

From 0.9 on verl finds it by the entry point `verl.plugins`; from 0.6 on it can be named in
`VERL_USE_EXTERNAL_MODULES`.
"""

from __future__ import annotations

import os

from rlotel import autostart
from rlotel.handover import ENABLED

if os.environ.get(ENABLED, "").strip():
    autostart.start()
