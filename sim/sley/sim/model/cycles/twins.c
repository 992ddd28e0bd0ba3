// All twins, for tests that run them beside their gateware.

#include "semaphores.h"
#include "sequencer.h"
#include "unit_front.h"

TWIN(Semaphores, semaphores, SEMAPHORES_PORTS)
TWIN(Sequencer, sequencer, SEQUENCER_PORTS)
TWIN(UnitFront, unit_front, UNIT_FRONT_PORTS)
