"""What a schema cannot say, supplied to schemathesis: a handle that is live, a device that is there, a size that
fits the allocation, a range that fits the region. Cases that are meant to be wrong are left as they are.

CONTRACT_EXPORTED is the line that `cudashm allocate` printed, CONTRACT_URL is where the service listens, and
CONTRACT_TALLY the file that the tally of answers is written to.
"""

import atexit
import collections
import json
import os
from urllib.parse import quote, unquote

import requests
import schemathesis
from hypothesis import strategies

url = os.environ["CONTRACT_URL"]
exported = json.loads(os.environ["CONTRACT_EXPORTED"])
handle = exported["raw_handle"]["b64"]
allocated = exported["byte_size"]
tally = collections.Counter()

# Random base64 hardly ever has the 64 bytes of a handle.
schemathesis.openapi.format("byte", strategies.just(handle))


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    operation = operation_id(case)
    if operation == "cudaSharedMemoryRegister":
        fit_registration(case)
    elif operation in ("readRegionContents", "writeRegionContents", "checksumRegion"):
        fit_range(case)
    elif operation == "registerRegion":
        fit_region(case)
    elif operation in ("getRegion", "releaseRegion", "renewRegion"):
        fit_call_of_region(case)
    elif operation == "listRegions":
        without(case.query, "page_token")


def fit_registration(case):
    raw_handle = case.body.get("raw_handle") if isinstance(case.body, dict) else None
    if not isinstance(raw_handle, dict) or "b64" not in raw_handle:
        return
    free_name(case)
    case.body = {
        **case.body,
        "raw_handle": {**raw_handle, "b64": handle},
        "device_id": exported["device_id"],
        # To a schema 64.0 is an integer as well.
        "byte_size": int(min(max(case.body["byte_size"], 1), allocated)),
    }


def fit_region(case):
    body = case.body
    if not isinstance(body, dict) or "raw_handle" not in body:
        return
    free_name(case)
    # A device, a process and a generation that there are cannot be made up.
    without(body, "device_uuid", "exporter", "replace_generation")
    body["raw_handle"] = {"b64": handle}
    body["device_id"] = exported["device_id"]
    body["byte_size"] = int(min(max(body["byte_size"], 1), allocated))
    if "offset" in body:
        body["offset"] = int(min(body["offset"], allocated - body["byte_size"]))
    fit_lease(body)
    # A schema counts characters, the service bytes.
    for key, value in body.get("labels", {}).items():
        body["labels"][key] = value.encode()[:255].decode(errors="ignore")


def fit_call_of_region(case):
    free_name(case)
    with_lease = {**exported, "lease_seconds": 60}
    answer = requests.put(region_url(case), json=with_lease)
    assert answer.status_code == 200, answer.text
    without(case.query, "generation")
    if case.query and "wait" in case.query:
        case.query["wait"] = "300s"
    if isinstance(case.body, dict):
        without(case.body, "generation")
        fit_lease(case.body)


def fit_lease(body):
    # Not every multiple of 0.001 that a double holds is written with three decimals.
    if "lease_seconds" in body:
        body["lease_seconds"] = round(body["lease_seconds"])


def without(members, *names):
    for name in names:
        if members:
            members.pop(name, None)


def fit_range(case):
    free_name(case)
    answer = requests.post(triton_url(case, "register"), json=exported)
    assert answer.status_code == 200, answer.text
    query = {name: int(value) for name, value in (case.query or {}).items()}
    if case.method == "PUT":
        # The body's length is how much is written; no schema can tie a parameter to it.
        fitting = {"byte_size": body_length(case)}
    else:
        fitting = {"byte_size": min(query.get("byte_size", 0), allocated)}
    fitting["offset"] = min(query.get("offset", 0), allocated - fitting["byte_size"])
    case.query = {name: fitting[name] for name in query}


def free_name(case):
    requests.post(triton_url(case, "unregister"))


def triton_url(case, last):
    return f"{url}/v2/cudasharedmemory/region/{name_in_url(case)}/{last}"


def region_url(case):
    return f"{url}/v1/regions/{name_in_url(case)}"


def name_in_url(case):
    return quote(unquote(str(case.path_parameters["region_name"])), safe="")


def body_length(case):
    return len(case.as_transport_kwargs(base_url=url).get("data") or b"")


def operation_id(case):
    return case.operation.definition.raw["operationId"]


@schemathesis.hook
def after_call(context, case, response):
    words = [operation_id(case), str(response.status_code)]
    if response.content.startswith(b'[{"name":'):
        words.append("with regions")
    tally[" ".join(words)] += 1


@atexit.register
def write_tally():
    with open(os.environ["CONTRACT_TALLY"], "w") as file:
        json.dump(tally, file)
