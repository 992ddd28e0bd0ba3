// What the model calls for its sanitizers. Without SANITIZE none of it is there.
#pragma once

#ifdef SANITIZE
#define HOOK(...) __VA_ARGS__
#include "bytes.h"
#else
#define HOOK(...)
#endif
