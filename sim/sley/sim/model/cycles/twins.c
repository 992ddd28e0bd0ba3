// The twin that runs beside its gateware in a test. A generated header includes its header and has its TWIN.

#include "chosen.h"
