#pragma once

namespace cudashm {

// Told when the main thread takes Node down. From then on nothing is closed: the kernel takes all of it back,
// while a close could race the driver's own exit handlers.
void MarkProcessEnding();
bool ProcessIsEnding();

}  // namespace cudashm
