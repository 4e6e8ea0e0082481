"""tritonclient.utils.cuda_shared_memory as it comes, with memory of this process that the service maps."""

import base64
import json
import os
import subprocess

import numpy as np
import pytest
import tritonclient.utils.cuda_shared_memory as cuda_shared_memory
from memory import HelperMemory
from tritonclient.utils import serialize_byte_tensor

FLOATS = np.arange(16, dtype=np.float32)
PEER = os.path.join(os.path.dirname(__file__), "peer.py")


def run_peer(python, raw_handle, offset, write):
    """Has another process change the memory; gives what it found there."""
    request = {"raw_handle": raw_handle, "offset": offset, "write": base64.b64encode(write).decode()}
    ended = subprocess.run([python, PEER], input=json.dumps(request), text=True, capture_output=True)
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout)
    return {**answer, "read": base64.b64decode(answer["read"])}


@pytest.mark.parametrize(
    ("python", "version"),
    [("TEST_CLIENTS_PYTHON", "12.8."), ("TEST_NEWEST_PYTHON", "13.")],
    ids=["cuda-bindings 12.8", "newest cuda-bindings"],
)
def test_three_processes_share_a_region(face, contents, python, version):
    with HelperMemory("shared", FLOATS.nbytes) as memory:
        cuda_shared_memory.set_shared_memory_region(memory.region, [FLOATS])
        face.register("shared", memory)
        assert face.regions() == {"shared": (0, FLOATS.nbytes)}
        assert contents("shared", 0, FLOATS.nbytes) == FLOATS.tobytes()

        found = run_peer(os.environ[python], memory.raw_handle, offset=8, write=np.float32(-1.5).tobytes())
        assert found["version"].startswith(version)
        assert found["byte_size"] == FLOATS.nbytes
        assert found["read"] == np.float32(2).tobytes()

        changed = FLOATS.copy()
        changed[2] = -1.5
        seen = cuda_shared_memory.get_contents_as_numpy(memory.region, np.float32, [4, 4])
        np.testing.assert_array_equal(seen, changed.reshape(4, 4))
        assert contents("shared", 0, FLOATS.nbytes) == changed.tobytes()
        face.unregister("shared")
        assert face.regions() == {}
    assert cuda_shared_memory.allocated_shared_memory_regions() == []


def test_the_service_writes_what_the_client_reads(face, service, put_contents):
    with HelperMemory("written", 64) as memory:
        face.register("written", memory)
        put_contents("written", 4, np.int32([7, 8]).tobytes())
        seen = cuda_shared_memory.get_contents_as_numpy(memory.region, np.int32, [4])
        np.testing.assert_array_equal(seen, [0, 7, 8, 0])
        face.unregister("written")


def test_several_arrays_lie_one_after_the_other(face, contents):
    with HelperMemory("several", 1024) as memory:
        texts = serialize_byte_tensor(np.array([b"one", b"three"], dtype=object))
        cuda_shared_memory.set_shared_memory_region(memory.region, [np.int64([1, -1]), texts])
        face.register("several", memory)
        assert contents("several", 0, 32) == np.int64([1, -1]).tobytes() + texts.item()
        face.unregister("several")


def test_arrays_of_bytes(face, contents):
    with HelperMemory("bytes", 64) as memory:
        values = np.array([b"one", b"", b"three"], dtype=object)
        cuda_shared_memory.set_shared_memory_region(memory.region, [serialize_byte_tensor(values)])
        face.register("bytes", memory)
        seen = cuda_shared_memory.get_contents_as_numpy(memory.region, np.object_, [3])
        np.testing.assert_array_equal(seen, values)
        assert contents("bytes", 0, 20) == b"\3\0\0\0one\0\0\0\0\5\0\0\0three"
        face.unregister("bytes")


def test_dlpack(face, contents):
    with HelperMemory("dlpack", FLOATS.nbytes) as memory:
        cuda_shared_memory.set_shared_memory_region_from_dlpack(memory.region, [FLOATS])
        tensor = cuda_shared_memory.as_shared_memory_tensor(memory.region, "FP32", [16])
        assert tensor.__dlpack_device__() == (2, 0)
        face.register("dlpack", memory)
        assert contents("dlpack", 0, FLOATS.nbytes) == FLOATS.tobytes()
        face.unregister("dlpack")


def test_the_second_device(face, contents):
    with HelperMemory("second", 64, device_id=1) as memory:
        cuda_shared_memory.set_shared_memory_region(memory.region, [FLOATS])
        face.register("second", memory, device_id=1)
        assert face.regions() == {"second": (1, 64)}
        assert contents("second", 0, 64) == FLOATS.tobytes()
        face.unregister("second")


def test_a_region_outlives_the_clients_free_until_it_is_unregistered(face, contents):
    with HelperMemory("freed", FLOATS.nbytes) as memory:
        cuda_shared_memory.set_shared_memory_region(memory.region, [FLOATS])
        face.register("freed", memory)
    assert contents("freed", 0, FLOATS.nbytes) == FLOATS.tobytes()
    face.unregister("freed")
    assert face.regions() == {}
    with face.refusal("INVALID_ARGUMENT", r"failed to register shared memory region 'late': invalid args: "):
        face.register("late", memory)


def test_memory_comes_back(face):
    # Twice as much as the device has, one after the other.
    half = 4 << 30
    for _ in range(4):
        with HelperMemory("half", half) as memory:
            face.register("half", memory)
            assert face.regions() == {"half": (0, half)}
            face.unregister("half")


@pytest.mark.parametrize(("byte_size", "device_id"), [(-1, 0), (1 << 62, 0), (64, 99)])
def test_regions_that_cannot_be_created(byte_size, device_id):
    with pytest.raises(cuda_shared_memory.CudaSharedMemoryException, match="unable to create cuda"):
        cuda_shared_memory.create_shared_memory_region("none", byte_size, device_id)
    assert cuda_shared_memory.allocated_shared_memory_regions() == []


def test_a_write_past_the_region_is_refused():
    with HelperMemory("small", 8) as memory:
        with pytest.raises(cuda_shared_memory.CudaSharedMemoryException, match="unable to set values"):
            cuda_shared_memory.set_shared_memory_region(memory.region, [FLOATS])
