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
    elif operation in ("readRegionContents", "writeRegionContents"):
        fit_range(case)


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


def fit_range(case):
    free_name(case)
    answer = requests.post(region_url(case, "register"), json=exported)
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
    requests.post(region_url(case, "unregister"))


def region_url(case, last):
    name = quote(unquote(str(case.path_parameters["region_name"])), safe="")
    return f"{url}/v2/cudasharedmemory/region/{name}/{last}"


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
