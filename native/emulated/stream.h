#pragma once

#include "driver_api.h"

namespace cudashm::emulated {

/** Work on a stream is done before the call that orders it returns, so a stream is a name that can be checked. */
CUresult create_stream(CUstream* stream, unsigned flags);

/** 400 unless the stream exists; needs a current context. Null, 1 and 2 are CUDA's built-in streams. */
CUresult require_stream(CUstream stream);

CUresult destroy_stream(CUstream stream);

}  // namespace cudashm::emulated
