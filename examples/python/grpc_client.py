"""Registers another process's GPU memory over gRPC. Needs no CUDA itself.

    pip install "tritonclient[grpc]"
    npx cudashm allocate --bytes 4096 | tee region.json     in one terminal: allocates, and holds until Ctrl-C
    python examples/python/grpc_client.py region.json       in another one

The service has to run; its host:port may follow as the second argument.
"""

import json
import sys

import tritonclient.grpc
from tritonclient.utils import InferenceServerException

file = sys.argv[1] if len(sys.argv) > 1 else "region.json"
address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1:8001"
name = "example/python gRPC"

with open(file) as lines:
    memory = json.load(lines)
# The client takes the handle as base64 over both protocols, and sends its 64 bytes.
arguments = (name, memory["raw_handle"]["b64"], memory["device_id"], memory["byte_size"])

with tritonclient.grpc.InferenceServerClient(address) as client:
    client.register_cuda_shared_memory(*arguments, client_timeout=10)
    try:
        # `as_json` would leave out zeros, such as device 0, and make texts of 64-bit numbers.
        status = client.get_cuda_shared_memory_status(name, client_timeout=10)
        for region in status.regions.values():
            print(f"registered: {region.name}, device {region.device_id}, {region.byte_size} bytes")
        client.register_cuda_shared_memory(*arguments, client_timeout=10)
    except InferenceServerException as refused:
        print(f"refused: {refused.status()}: {refused.message()}")
    finally:
        client.unregister_cuda_shared_memory(name, client_timeout=10)
    print(f"regions left: {len(client.get_cuda_shared_memory_status().regions)}")
