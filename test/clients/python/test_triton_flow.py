"""The steps of a Triton client that uses CUDA shared memory, in the order and in the wrong order."""

import base64
import json
import urllib.error
import urllib.request

import numpy as np
import pytest
import tritonclient.utils.cuda_shared_memory as cuda_shared_memory
from memory import HelperMemory

ONES = np.ones(16, dtype=np.int32)


@pytest.fixture
def dummy():
    """64 bytes of this process."""
    with HelperMemory("dummy", ONES.nbytes) as memory:
        yield memory


def test_create_set_and_register(face, dummy, contents):
    cuda_shared_memory.set_shared_memory_region(dummy.region, [ONES])
    face.register("dummy", dummy)
    assert face.regions() == {"dummy": (0, 64)}
    assert contents("dummy", 0, 64) == ONES.tobytes()


def test_unregister_before_register(face):
    face.unregister("dummy")
    assert face.regions() == {}


def test_unregister_after_register(face, dummy):
    face.register("dummy", dummy)
    face.unregister("dummy")
    assert face.regions() == {}


def test_register_again_after_unregister(face, dummy):
    for _ in range(3):
        face.register("dummy", dummy)
        face.unregister("dummy")
    face.register("dummy", dummy)
    assert face.regions() == {"dummy": (0, 64)}


def test_register_twice(face, dummy):
    face.register("dummy", dummy)
    with face.refusal("ALREADY_EXISTS", r"shared memory region 'dummy' already in manager$"):
        face.register("dummy", dummy)
    assert face.regions() == {"dummy": (0, 64)}


def test_unregister_all(face):
    names = ["input0", "input1", "output0", "output1"]
    memories = [HelperMemory(name, 64) for name in names]
    for name, memory in zip(names, memories):
        face.register(name, memory)
    assert sorted(face.regions()) == names
    face.unregister()
    assert face.regions() == {}
    for memory in memories:
        with memory:
            pass


def test_register_out_of_bounds_by_one_byte(face, dummy):
    with face.refusal("INVALID_ARGUMENT", r"failed to register shared memory region 'dummy': invalid args"):
        face.register("dummy", dummy, byte_size=65)
    assert face.regions() == {}
    face.register("dummy", dummy, byte_size=64)


def test_a_handle_that_is_too_small_over_http(service, dummy):
    raw_handle = base64.b64encode(base64.b64decode(dummy.raw_handle)[:-1]).decode()
    body = json.dumps({"raw_handle": {"b64": raw_handle}, "device_id": 0, "byte_size": 64}).encode()
    url = f"http://{service.http}/v2/cudasharedmemory/region/dummy/register"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url, body)
    with refused.value as answer:
        assert answer.status == 400
        error = json.loads(answer.read())["error"]
    assert error.startswith("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t")


def test_client_shared_memory_is_disabled(face_of, dummy):
    face = face_of("disabled")
    text = r"Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.$"
    with face.refusal("UNIMPLEMENTED", text):
        face.register("dummy", dummy)
    # What clients call before they register anything is still answered.
    face.call("unregister_system_shared_memory")
    face.unregister()
    assert face.regions() == {}
