// All twins, for tests that run them beside their gateware.

#include "axi_lite.h"
#include "block_scheduler.h"
#include "bus_counters.h"
#include "command_processor.h"
#include "command_queue.h"
#include "copy_engine.h"
#include "core_counters.h"
#include "list_addresses.h"
#include "copy_scheduler.h"
#include "executor.h"
#include "interrupts.h"
#include "load_unit.h"
#include "memory_gateway.h"
#include "memory_port.h"
#include "hazards.h"
#include "mesh.h"
#include "matrix_unit.h"
#include "memory_reader.h"
#include "memory_writer.h"
#include "node_port.h"
#include "packet_check.h"
#include "queue_records.h"
#include "read_combiner.h"
#include "register_bank.h"
#include "router.h"
#include "scrub.h"
#include "semaphores.h"
#include "sequencer.h"
#include "store_unit.h"
#include "sram.h"
#include "translated_port.h"
#include "transposer.h"
#include "unit_front.h"
#include "vector_unit.h"
#include "word_access.h"

TWIN(AxiLite, axi_lite, AXI_LITE_PORTS)
TWIN(BlockScheduler, block_scheduler, BLOCK_SCHEDULER_PORTS)
TWIN(BusCounters, bus_counters, BUS_COUNTERS_PORTS)
TWIN(CommandProcessor, command_processor, COMMAND_PROCESSOR_PORTS)
TWIN(CommandQueue, command_queue, COMMAND_QUEUE_PORTS)
TWIN(CopyEngine, copy_engine, COPY_ENGINE_PORTS)
TWIN(CoreCounters, core_counters, CORE_COUNTERS_PORTS)
TWIN(ListAddresses, list_addresses, LIST_ADDRESSES_PORTS)
TWIN(CopyScheduler, copy_scheduler, COPY_SCHEDULER_PORTS)
TWIN(Executor, executor, EXECUTOR_PORTS)
TWIN(Interrupts, interrupts, INTERRUPTS_PORTS)
TWIN(LoadUnit, load_unit, LOAD_UNIT_PORTS)
TWIN(MemoryGateway, memory_gateway, MEMORY_GATEWAY_PORTS)
TWIN(MemoryPort, memory_port, MEMORY_PORT_PORTS)
TWIN(Hazards, hazards, HAZARDS_PORTS)
TWIN(MatrixUnit, matrix_unit, MATRIX_UNIT_PORTS)
TWIN(MemoryReader, memory_reader, MEMORY_READER_PORTS)
TWIN(MemoryWriter, memory_writer, MEMORY_WRITER_PORTS)
TWIN(Mesh, mesh, MESH_PORTS)
TWIN(NodePort, node_port, NODE_PORT_PORTS)
TWIN(PacketCheck, packet_check, PACKET_CHECK_PORTS)
TWIN(QueueRecords, queue_records, QUEUE_RECORDS_PORTS)
TWIN(ReadCombiner, read_combiner, READ_COMBINER_PORTS)
TWIN(RegisterBank, register_bank, REGISTER_BANK_PORTS)
TWIN(Router, router, ROUTER_PORTS)
TWIN(Scrub, scrub, SCRUB_PORTS)
TWIN(Semaphores, semaphores, SEMAPHORES_PORTS)
TWIN(Sequencer, sequencer, SEQUENCER_PORTS)
TWIN(StoreUnit, store_unit, STORE_UNIT_PORTS)
TWIN(Sram, sram, SRAM_PORTS)
TWIN(TranslatedPort, translated_port, TRANSLATED_PORT_PORTS)
TWIN(Transposer, transposer, TRANSPOSER_PORTS)
TWIN(UnitFront, unit_front, UNIT_FRONT_PORTS)
TWIN(VectorUnit, vector_unit, VECTOR_UNIT_PORTS)
TWIN(WordAccess, word_access, WORD_ACCESS_PORTS)
