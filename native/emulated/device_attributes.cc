#include "device_attributes.h"

namespace cudashm::emulated {

int pci_bus(int physical_index) { return physical_index + 1; }

int attribute_value(int attribute, int physical_index, bool has_ipc) {
  switch (attribute) {
    case 1: return 1024;         // MAX_THREADS_PER_BLOCK
    case 2: return 1024;         // MAX_BLOCK_DIM_X
    case 3: return 1024;         // MAX_BLOCK_DIM_Y
    case 4: return 64;           // MAX_BLOCK_DIM_Z
    case 5: return 2147483647;   // MAX_GRID_DIM_X
    case 6: return 65535;        // MAX_GRID_DIM_Y
    case 7: return 65535;        // MAX_GRID_DIM_Z
    case 8: return 49152;        // MAX_SHARED_MEMORY_PER_BLOCK, bytes
    case 9: return 65536;        // TOTAL_CONSTANT_MEMORY, bytes
    case 10: return 32;          // WARP_SIZE
    case 11: return 2147483647;  // MAX_PITCH, bytes
    case 12: return 65536;       // MAX_REGISTERS_PER_BLOCK
    case 13: return 1000000;     // CLOCK_RATE, kHz
    case 14: return 512;         // TEXTURE_ALIGNMENT, bytes
    case 15: return 1;           // GPU_OVERLAP
    case 16: return 1;           // MULTIPROCESSOR_COUNT
    case 19: return 1;           // CAN_MAP_HOST_MEMORY
    case 31: return 1;           // CONCURRENT_KERNELS
    case 33: return pci_bus(physical_index);  // PCI_BUS_ID
    case 36: return 1000000;     // MEMORY_CLOCK_RATE, kHz
    case 37: return 64;          // GLOBAL_MEMORY_BUS_WIDTH, bits
    case 39: return 2048;        // MAX_THREADS_PER_MULTIPROCESSOR
    case 40: return 1;           // ASYNC_ENGINE_COUNT
    case 41: return 1;           // UNIFIED_ADDRESSING
    case 75: return 8;           // COMPUTE_CAPABILITY_MAJOR
    case 76: return 0;           // COMPUTE_CAPABILITY_MINOR
    case 78: return 1;           // STREAM_PRIORITIES_SUPPORTED
    case 81: return 49152;       // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, bytes
    case 82: return 65536;       // MAX_REGISTERS_PER_MULTIPROCESSOR
    case 125: return has_ipc ? 1 : 0;  // IPC_EVENT_SUPPORTED, the nearest there is to "has memory IPC"
    default: return 0;
  }
}

}  // namespace cudashm::emulated
