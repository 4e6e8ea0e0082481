#pragma once

#include "driver_api.h"

namespace cudashm::emulated {

/** What every call is refused with, whatever it asks: the process is exiting, was forked, or had a sticky fault. */
CUresult standing_refusal();

bool initialised();
void set_initialised();

/** Results after which a real context is lost: from then on every call answers the first of them. */
void note_if_sticky(CUresult result);

}  // namespace cudashm::emulated
