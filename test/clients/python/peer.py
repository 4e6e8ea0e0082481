"""Another process on the driver API: opens a handle through cuda.bindings.driver, reads the memory and changes it.

Standard input is one JSON line {"raw_handle": base64, "offset": n, "write": base64}; it prints {"version", "byte_size",
"read": base64}, where `read` is what was there before the write.
"""

import base64
import ctypes
import importlib.metadata
import json
import sys

from cuda.bindings import driver


def check(answer):
    result, *values = answer
    if result != driver.CUresult.CUDA_SUCCESS:
        sys.exit(f"the driver answered {result}")
    return values[0] if len(values) == 1 else values


def main():
    request = json.loads(sys.stdin.readline())
    raw_handle, write = base64.b64decode(request["raw_handle"]), base64.b64decode(request["write"])
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device))))

    # Versions differ in how a handle's bytes are set, but all tell where they are.
    handle = driver.CUipcMemHandle()
    ctypes.memmove(int(handle.getPtr()), raw_handle, len(raw_handle))
    lazy = driver.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
    memory = check(driver.cuIpcOpenMemHandle(handle, lazy.value))
    _, byte_size = check(driver.cuMemGetAddressRange(memory))
    window = int(memory) + request["offset"]
    read = bytearray(len(write))
    check(driver.cuMemcpyDtoH(read, window, len(read)))
    check(driver.cuMemcpyHtoD(window, write, len(write)))
    check(driver.cuIpcCloseMemHandle(memory))
    check(driver.cuDevicePrimaryCtxRelease(device))

    version = importlib.metadata.version("cuda-bindings")
    answer = {"version": version, "byte_size": byte_size, "read": base64.b64encode(read).decode()}
    print(json.dumps(answer))


main()
