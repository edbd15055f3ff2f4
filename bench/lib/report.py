# SPDX-License-Identifier: Apache-2.0
"""Samples in, a Markdown table out. Every absolute number stands next to a ratio."""

import os
import platform
import statistics

_HEADER = ("what", "ours", "floor", "ratio", "Docker", "times faster", "bar", "met?")

START, END = "<!-- bench:start -->", "<!-- bench:end -->"


def median(samples):
    return statistics.median(samples) if samples else None


def p90(samples):
    return sorted(samples)[int(len(samples) * 0.9)] if samples else None


def ms(ns):
    return "–" if ns is None else "%.*f ms" % (2 if ns < 1e8 else 0, ns / 1e6)


def _yes(met):
    return "not measured" if met is None else "yes" if met else "**no**"


class Report:
    """Rows with their verdicts; missed and unmeasured bars are counted."""

    def __init__(self):
        self.rows = []
        self.notes = []

    def row(self, what, ours, floor="", ratio="", docker="", faster="", bar="", met=()):
        self.rows.append((what, ours, floor, ratio, docker, faster, bar,
                          "; ".join(_yes(one) for one in met)))

    def latency(self, what, ours, floor, docker, most, least, docker_missing):
        """A row with two bars: at most `most` × the floor, at least `least` × faster than Docker."""
        ours, floor, docker = median(ours), median(floor), median(docker)
        ratio = ours / floor if ours and floor else None
        faster = docker / ours if ours and docker else None
        self.row(what, ms(ours), ms(floor), "%.2f ×" % ratio if ratio else "–",
                 ms(docker) if docker else docker_missing, "%.0f ×" % faster if faster else "–",
                 "≤ %g × the floor; ≥ %g × faster than Docker" % (most, least),
                 (None if ratio is None else ratio <= most,
                  None if faster is None else faster >= least))

    def throughput(self, what, ours, floor, size, least):
        """A row whose bar is a share of the floor's throughput."""
        ours, floor = median(ours), median(floor)
        share = floor / ours if ours and floor else None
        rate = lambda ns: "–" if ns is None else "%.0f MB/s" % (size / 1e6 / (ns / 1e9))
        self.row(what, rate(ours), rate(floor), "%.0f %%" % (share * 100) if share else "–",
                 bar="≥ %.0f %% of the floor" % (least * 100),
                 met=(None if share is None else share >= least,))

    def note(self, text):
        self.notes.append(text)

    def missed(self):
        return sum(row[-1].count("**no**") for row in self.rows)

    def markdown(self):
        lines = [_machine(), ""]
        lines.append("| " + " | ".join(_HEADER) + " |")
        lines.append("|" + "---|" * len(_HEADER))
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        if self.notes:
            lines.append("")
            lines += ["- " + note for note in self.notes]
        return "\n".join(lines) + "\n"


def _machine():
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return "Linux %s, %d cores, %.0f GiB. Medians of one run; the ratios are what counts." % (
        platform.release(), os.cpu_count(), memory)


def put_between_markers(path, text):
    """Replaces what is between the markers of a file; False when it has none."""
    with open(path, encoding="utf-8") as file:
        whole = file.read()
    before, start, rest = whole.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        return False
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + START + "\n" + text + END + after)
    return True
