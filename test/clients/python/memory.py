"""GPU memory to register: of another process, held by `cudashm allocate`, or of this one."""

import json
import subprocess

import tritonclient.utils.cuda_shared_memory as cuda_shared_memory


class Exporter:
    """One allocation and the process that owns it; the process ends when it is closed."""

    def __init__(self, command, byte_size):
        self._process = subprocess.Popen(
            [*command, "--bytes", str(byte_size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        body = json.loads(self._process.stdout.readline())
        self.raw_handle = body["raw_handle"]["b64"]
        self.byte_size = body["byte_size"]

    def kill(self):
        """Ends the process as a crash would, so that its handle is stale."""
        self._process.kill()
        self.close()

    def close(self):
        """Ends the process, which frees the memory, unless it has ended already."""
        self._process.communicate()


class HelperMemory:
    """Memory of this process, made and destroyed by tritonclient's own helper."""

    def __init__(self, name, byte_size, device_id=0):
        self.region = cuda_shared_memory.create_shared_memory_region(name, byte_size, device_id)
        self.raw_handle = cuda_shared_memory.get_raw_handle(self.region).decode()
        self.byte_size = byte_size

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # The memory is freed with the last reference to the region.
        cuda_shared_memory.destroy_shared_memory_region(self.region)
        del self.region
