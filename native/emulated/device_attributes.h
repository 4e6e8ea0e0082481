#pragma once

namespace cudashm::emulated {

int pci_bus(int physical_index);

/** A plausible value for the CUdevice_attribute of this number; 0 for what the device does not have or know. */
int attribute_value(int attribute, int physical_index, bool has_ipc);

}  // namespace cudashm::emulated
