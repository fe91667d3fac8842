"""Stand-in: what is watched of Ray's queues."""

from typing import Any

from openrlhf.script import play


class Queue:
    def put(self, item: Any, block: bool = True, timeout: Any = None) -> Any:
        return play("Queue.put", locals())

    def get(self, block: bool = True, timeout: Any = None) -> Any:
        return play("Queue.get", locals())
