"""What the official clients raise when the service refuses: the exception's status and its message."""

import base64

import pytest
from faces import over_grpc, over_http

HANDLE_TEXT = r"'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t"


def invalid_args(detail):
    return rf"failed to register shared memory region 'r': invalid args: .*{detail}"


def test_a_name_that_is_taken(face, memory):
    face.register("r", memory, byte_size=64)
    with face.refusal("ALREADY_EXISTS", r"shared memory region 'r' already in manager$"):
        face.register("r", memory, byte_size=128)
    assert face.regions() == {"r": (0, 64)}


@pytest.mark.parametrize("byte_size", [5001, 2**53 + 1, 2**64 - 1])
def test_more_bytes_than_the_allocation_has(face, memory, byte_size):
    with face.refusal("INVALID_ARGUMENT", invalid_args(rf"{byte_size}.*5000")):
        face.register("r", memory, byte_size=byte_size)
    assert face.regions() == {}


def test_no_bytes(face, memory):
    with face.refusal("INVALID_ARGUMENT", invalid_args("byte_size must be at least 1")):
        face.register("r", memory, byte_size=0)


@over_http
@pytest.mark.parametrize("byte_size", [2**64, -1, 64.0, "64", True, None])
def test_sizes_that_are_no_64_bit_number(face, memory, byte_size):
    text = r"attempt to access JSON non-unsigned-integer as unsigned-integer"
    with face.refusal("INVALID_ARGUMENT", text):
        face.call("register_cuda_shared_memory", "r", memory.raw_handle, 0, byte_size)


@pytest.mark.parametrize("device_id", [2, 99, 2**31, 2**32, 2**63 - 1])
def test_devices_that_are_not_there(face, memory, device_id):
    with face.refusal("INVALID_ARGUMENT", invalid_args(rf"{device_id}.*0.*1")):
        face.register("r", memory, device_id=device_id)


def test_device_minus_one(face, memory):
    text = r"attempt to access JSON non-unsigned-integer" if face.is_http else invalid_args("-1.*0.*1")
    with face.refusal("INVALID_ARGUMENT", text):
        face.register("r", memory, device_id=-1)


@pytest.mark.parametrize("length", [0, 1, 63, 65, 128])
def test_handles_that_are_not_64_bytes_long(face, memory, length):
    handle = base64.b64encode(b"h" * length).decode()
    with face.refusal("INVALID_ARGUMENT", HANDLE_TEXT if face.is_http else invalid_args(length)):
        face.register("r", memory, raw_handle=handle)


def test_a_handle_that_was_encoded_twice(face, memory):
    twice = base64.b64encode(memory.raw_handle.encode()).decode()
    with face.refusal("INVALID_ARGUMENT", HANDLE_TEXT if face.is_http else invalid_args("88 .*base64")):
        face.register("r", memory, raw_handle=twice)


@over_http
@pytest.mark.parametrize("raw_handle", [5, True, {"b64": "x"}], ids=str)
def test_handles_that_are_no_text(face, memory, raw_handle):
    with face.refusal("INVALID_ARGUMENT", r"attempt to access JSON non-string as string"):
        face.register("r", memory, raw_handle=raw_handle)


@pytest.mark.parametrize("fill", [b"\0", b"\xff"])
def test_64_bytes_that_are_no_handle(face, memory, fill):
    handle = base64.b64encode(fill * 64).decode()
    with face.refusal("INVALID_ARGUMENT", invalid_args(r"CUDA_ERROR_INVALID_VALUE \(1\): \w+")):
        face.register("r", memory, raw_handle=handle)
    assert face.regions() == {}


@pytest.fixture(scope="module")
def stale(allocate):
    exporter = allocate(64)
    exporter.kill()
    return exporter


def test_the_handle_of_a_process_that_is_gone(face, stale):
    with face.refusal("INVALID_ARGUMENT", invalid_args(r"CUDA_ERROR_INVALID_VALUE \(1\): \w+")):
        face.register("r", stale)


def test_status_of_an_unknown_region(face):
    with face.refusal("NOT_FOUND", r"Unable to find cuda shared memory region: 'nobody'$"):
        face.regions("nobody")


def test_system_shared_memory_cannot_be_registered(face):
    with face.refusal("UNIMPLEMENTED", r".*CUDA shared memory only"):
        face.call("register_system_shared_memory", "s", "/s", 64)


def test_no_message_holds_the_handle(face, memory):
    with pytest.raises(Exception) as refused:
        face.register("r", memory, byte_size=5001)
    assert memory.raw_handle not in str(refused.value)
    assert base64.b64decode(memory.raw_handle).hex() not in str(refused.value)


@over_http
def test_a_body_over_the_limit(face, memory):
    limit = 1 << 20
    text = rf"request JSON size of \d+ bytes exceeds the maximum allowed input size of {limit} bytes"
    with face.refusal("INVALID_ARGUMENT", text):
        face.register("r", memory, raw_handle="A" * limit)
    assert face.regions() == {}


@over_grpc
def test_a_message_over_the_limit(face, memory):
    with face.refusal("RESOURCE_EXHAUSTED", r".*message"):
        face.register("r", memory, raw_handle="A" * (1 << 20))
    assert face.regions() == {}


def test_a_service_without_a_device(face_of, memory):
    face = face_of("without a device")
    with face.refusal("UNAVAILABLE", r".*CUDA_ERROR_NO_DEVICE \(100\)"):
        face.register("r", memory)
    assert face.call("is_server_live") is True
    assert face.call("is_server_ready") is False
    face.unregister("r")
    face.unregister()
    assert face.regions() == {}


def test_a_driver_that_fails_to_close(face_of, memory):
    face = face_of("whose every other close fails")
    face.register("r", memory)
    with face.refusal("INTERNAL", r"failed to close CUDA IPC handle: CUDA_ERROR_INVALID_HANDLE \(400\)"):
        face.unregister("r")
    assert face.regions() == {"r": (0, 5000)}
    face.unregister("r")
    assert face.regions() == {}


def test_a_service_that_wants_a_token(face_of, memory):
    face = face_of("that wants a token")
    with face.refusal("UNAUTHENTICATED", r"this service wants a token; send it as 'authorization: Bearer"):
        face.register("r", memory)
    wrong, right = ({"authorization": f"Bearer {token}"} for token in ("other", "ada-s3cret-token"))
    with face.refusal("UNAUTHENTICATED", r"the token is not one of this service's"):
        face.regions(headers=wrong)
    with face.refusal("UNAUTHENTICATED", r"this service wants a token"):
        face.unregister()
    face.register("r", memory, headers=right)
    assert face.regions(headers=right) == {"r": (0, 5000)}
    face.unregister(headers=right)
    assert face.regions(headers=right) == {}


def test_a_service_that_wants_a_header(face_of, memory):
    face = face_of("that wants a header")
    code, key, text = (
        ("PERMISSION_DENIED", "admin-key", r"This API is restricted, expecting header 'admin-key'$")
        if face.is_http
        # Triton's own code for this over gRPC.
        else ("UNAVAILABLE", "triton-grpc-protocol-admin-key", r"This protocol is restricted, expecting header")
    )
    with face.refusal(code, text):
        face.register("r", memory)
    headers = {key: "python-s3cret"}
    face.register("r", memory, headers=headers)
    assert face.regions(headers=headers) == {"r": (0, 5000)}
    face.unregister(headers=headers)
    assert face.regions(headers=headers) == {}


def test_more_regions_than_the_service_takes(face_of, memory):
    face = face_of("with room for one region")
    face.register("one", memory)
    text = r"failed to register shared memory region 'two': there are as many regions as this service takes \(1"
    with face.refusal("RESOURCE_EXHAUSTED", text):
        face.register("two", memory)
    face.unregister("one")
    face.register("two", memory)
    face.unregister()
    assert face.regions() == {}
