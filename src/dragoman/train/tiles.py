"""Processors on which a product in bfloat16 ends the process. No torch: whoever sets its variables must be earlier."""

import os
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
ISA_VARIABLE, WITHOUT_TILES = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16"
_TILE_LEAF = 0x1D  # of CPUID


def hides_its_tiles() -> bool:
    """Whether torch would die of a product in bfloat16, as of an illegal instruction.

    Some hypervisors show AMX among the processor's features, but not the leaf of CPUID that has the shape of its
    tiles. oneDNN then takes them to be of no size. What it may use can be set from outside.
    """
    if ISA_VARIABLE in os.environ or not CPU_INFO.exists():
        return False
    lines = (line.partition(":") for line in CPU_INFO.read_text().split("\n\n")[0].splitlines())
    facts = {name.strip(): value.split() for name, _, value in lines}
    level = int(facts.get("cpuid level", ["0"])[0])
    return "amx_tile" in facts.get("flags", []) and level < _TILE_LEAF
