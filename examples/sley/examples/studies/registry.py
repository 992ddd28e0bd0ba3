"""All studies, by name."""

from sley.examples.studies import (
    array_size,
    bandwidth,
    best_chip,
    own_operation,
    precision,
    scratchpad,
    stationary,
    vector_unit,
)

STUDIES = {
    module.STUDY.name: module.STUDY
    for module in (array_size, precision, stationary, scratchpad, bandwidth, vector_unit, own_operation, best_chip)
}
