"""What Google Cloud's metadata server says about this machine: project, place and cluster.

Twenty lines instead of a dependency on the resource detector for Google Cloud, which asks by name (a lookup that
nothing bounds), waits seconds where packets are swallowed, and knows no `location`.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path

DMI_PRODUCT = Path("/sys/class/dmi/id/product_name")
"""What the firmware calls the machine; "Google Compute Engine" in Google's virtual machines and their pods."""

ADDRESS = "169.254.169.254"
"""The same everywhere. By number, because a lookup of its name is not bounded by a timeout."""

HOST_VARIABLE = "GCE_METADATA_HOST"
"""Google's own libraries take the server's `host[:port]` from here."""

_QUESTIONS = (
    "project/project-id",
    "instance/zone",
    "instance/attributes/cluster-name",
    "instance/attributes/cluster-location",
)
_TIMEOUT = 1.0
_LONGEST = 1024


def on_google_cloud(environ: Mapping[str, str], *, dmi_product: Path = DMI_PRODUCT) -> bool:
    """Whether there is a metadata server to ask. Asks no network."""
    if environ.get(HOST_VARIABLE):
        return True
    try:
        return "Google" in dmi_product.read_text("utf-8")
    except (OSError, ValueError):
        return False


def gcp_facts(environ: Mapping[str, str], *, dmi_product: Path = DMI_PRODUCT) -> dict[str, str]:
    """Resource attributes of this machine; empty where this is not Google Cloud. Never raises.

    Waits for each of up to four answers 1 s at most, and for no other once one did not come: for a thread of its
    own. In GKE the place is the cluster's, which is what GKE's own metrics are stored under: a region for
    a regional cluster. Elsewhere it is the machine's zone.
    """
    if not on_google_cloud(environ, dmi_product=dmi_product):
        return {}
    answers = dict.fromkeys(_QUESTIONS, "")
    try:
        for question in _QUESTIONS:
            answers[question] = _ask(environ.get(HOST_VARIABLE) or ADDRESS, question)
    except (OSError, HTTPException, ValueError):
        pass  # what was answered before is true all the same
    if not any(answers.values()):
        return {}
    project, zone_path, cluster, cluster_location = answers.values()
    zone = zone_path.rpartition("/")[2]  # of projects/123456/zones/us-central1-a
    in_gke = bool(cluster or environ.get("KUBERNETES_SERVICE_HOST"))
    facts = {
        "cloud.provider": "gcp",
        "cloud.platform": "gcp_kubernetes_engine" if in_gke else "gcp_compute_engine",
        "cloud.account.id": project,
        "cloud.region": zone.rpartition("-")[0],
        "cloud.availability_zone": zone,
        "gcp.project_id": project,
        "k8s.cluster.name": cluster,
        "location": cluster_location or zone,
    }
    return {name: value for name, value in facts.items() if value}


def _ask(server: str, what: str) -> str:
    """One value, empty if the server has none.

    Raises:
        OSError: no answer, or not from a metadata server.
    """
    request = urllib.request.Request(
        f"http://{server}/computeMetadata/v1/{what}", headers={"Metadata-Flavor": "Google"}
    )
    # No proxy: one would answer for another machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_TIMEOUT) as answer:
            if answer.headers.get("Metadata-Flavor") != "Google":
                raise OSError("this is no metadata server")
            return str(answer.read(_LONGEST).decode("utf-8")).strip()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return ""
        raise
