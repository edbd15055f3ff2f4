# SPDX-License-Identifier: Apache-2.0
"""What idle sandboxes cost in memory, as the kernel counts it."""

_SHOWN = ("AnonPages", "Slab", "KernelStack", "PageTables", "Percpu", "VmallocUsed", "Shmem")


def meminfo():
    """kB by name, and `used`: all memory that is not free and not page cache. So it holds slabs,
    stacks, page tables, per-cpu memory, BPF programs, pages that drivers took, and all processes'
    anonymous memory: the daemons' growth and the agents' are in it."""
    values = {}
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            name, rest = line.split(":")
            values[name] = int(rest.split()[0])
    values["used"] = (values["MemTotal"] - values["MemFree"] - values["Buffers"]
                      - values["Cached"] + values["Shmem"])
    return values


def growth(before, after, count):
    """KiB per sandbox: all together, and the parts worth knowing."""
    total = (after["used"] - before["used"]) / count
    parts = {name: (after[name] - before[name]) / count for name in _SHOWN}
    return total, parts


def private(pid):
    """KiB that only this process has."""
    total = 0
    with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as file:
        for line in file:
            if line.startswith("Private_"):
                total += int(line.split()[1])
    return total
