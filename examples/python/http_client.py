"""Owns GPU memory, fills it from numpy and registers it over HTTP, all with NVIDIA's own client.

    pip install "tritonclient[http]" cuda-bindings==12.8.0
    python examples/python/http_client.py [host:port]

On a machine without a GPU, start it on the emulated driver:

    LD_LIBRARY_PATH="$(npx cudashm emulated-driver)" python examples/python/http_client.py
"""

import sys

import numpy as np
import tritonclient.http
import tritonclient.utils.cuda_shared_memory as cuda_shared_memory

address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:8000"
device_id = 0
values = np.arange(1024, dtype=np.float32)

client = tritonclient.http.InferenceServerClient(address)

# A cudaMalloc of its own: the service maps whole allocations.
region = cuda_shared_memory.create_shared_memory_region("python-http", values.nbytes, device_id)
try:
    # The copy is finished when this returns, so whoever maps the memory sees it.
    cuda_shared_memory.set_shared_memory_region(region, [values])
    raw_handle = cuda_shared_memory.get_raw_handle(region)

    # The HTTP clients do not escape a slash, so the name has none.
    client.register_cuda_shared_memory("python-http", raw_handle, device_id, values.nbytes)
    try:
        print("registered:", client.get_cuda_shared_memory_status("python-http"))
        seen = cuda_shared_memory.get_contents_as_numpy(region, np.float32, [1024])
        print("sum of what is in the memory:", seen.sum())
    finally:
        # Before the memory is freed: until then the service keeps it on the GPU.
        client.unregister_cuda_shared_memory("python-http")
finally:
    cuda_shared_memory.destroy_shared_memory_region(region)
    del region  # the memory itself is freed with the last reference
print("regions left:", client.get_cuda_shared_memory_status())
