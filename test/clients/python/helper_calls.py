"""Uses all of tritonclient.utils.cuda_shared_memory once, so that the driver's call log shows what it calls."""

import numpy as np
import tritonclient.utils.cuda_shared_memory as cuda_shared_memory

values = np.arange(16, dtype=np.float32)
region = cuda_shared_memory.create_shared_memory_region("region", values.nbytes, 0)
assert len(cuda_shared_memory.get_raw_handle(region)) == 88
cuda_shared_memory.set_shared_memory_region(region, [values])
np.testing.assert_array_equal(cuda_shared_memory.get_contents_as_numpy(region, np.float32, [16]), values)
cuda_shared_memory.set_shared_memory_region_from_dlpack(region, [values + 1])
np.testing.assert_array_equal(cuda_shared_memory.get_contents_as_numpy(region, np.float32, [16]), values + 1)
assert cuda_shared_memory.as_shared_memory_tensor(region, "FP32", [16]).__dlpack__() is not None
assert cuda_shared_memory.allocated_shared_memory_regions() == [region]
cuda_shared_memory.destroy_shared_memory_region(region)
