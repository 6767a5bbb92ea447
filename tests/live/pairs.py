"""Work with hooks on against work with hooks off, in turns inside one attach (`attach --alternate`). tests/bench/worker.py tells what it did, the report when the turns were."""
import bisect
import math
import random
import statistics
import struct

ROW = struct.Struct("<QQQ")  # units of work since the row before, CLOCK_MONOTONIC, CPU time, ns
EDGE = 0.1  # of a turn, left out at both ends: the switch itself, and rows that reach over it
ROWS_LEAST = 2


def rows_of(path):
    with open(path, "rb") as f:
        data = f.read()
    return list(ROW.iter_unpack(data[:len(data) // ROW.size * ROW.size]))


def rate(rows, start, end):
    """Units per CPU second and per second of the rows inside, or None when there are too few."""
    inside = [i for i in range(1, len(rows)) if rows[i - 1][1] >= start and rows[i][1] <= end]
    if len(inside) < ROWS_LEAST:
        return None
    units, before, last = sum(rows[i][0] for i in inside), rows[inside[0] - 1], rows[inside[-1]]
    cpu, wall = last[2] - before[2], last[1] - before[1]
    return (units / cpu, units / wall) if units and cpu else None


def ratios(rows, turns):
    """TURNS: (start, end, on), in order. Each turn with hooks against the mean of its neighbours without: two lists, by CPU time and by time."""
    rates, out, at = [], ([], []), 0
    for start, end, on in turns:
        edge = (end - start) * EDGE
        while at < len(rows) and rows[at][1] < start:
            at += 1
        last = at
        while last < len(rows) and rows[last][1] <= end:
            last += 1
        rates.append((on, rate(rows[max(at - 1, 0):last], start + edge, end - edge)))
    for before, here, after in zip(rates, rates[1:], rates[2:]):
        if here[0] and not before[0] and not after[0] and None not in (before[1], here[1], after[1]):
            for by in range(2):
                out[by].append(2 * here[1][by] / (before[1][by] + after[1][by]))
    return out


def made_up(start_ns, turn_ns, pairs):
    """Turns while nothing is attached: what the machine's own noise looks like."""
    return [(start_ns + i * turn_ns, start_ns + (i + 1) * turn_ns, i % 2 == 0) for i in range(2 * pairs)]


def turns_of(report):
    """From a JSON report's throttle history."""
    budget = report["budget"]
    changes = [(budget["windows_start_monotonic_ns"] + row["at_ns"], row["what"] == "turn_on") for row in budget["history"] if row["what"] in ("turn_on", "turn_off")]
    return [(a[0], b[0], a[1]) for a, b in zip(changes, changes[1:])]


def durations(rows, turns):
    """How long each row took: (with hooks, without), a list for each turn."""
    ends, out = [row[1] for row in rows], ([], [])
    for start, end, on in turns:
        edge = (end - start) * EDGE
        first, last = bisect.bisect_left(ends, start + edge), bisect.bisect_right(ends, end - edge)
        out[0 if on else 1].append([b - a for a, b in zip(ends[first:last], ends[first + 1:last])])
    return out


def p99(turns):
    values = sorted(value for turn in turns for value in turn)
    return values[len(values) * 99 // 100]


def gap(turns):
    """The longest of a turn, of half of them."""
    return statistics.median(max(turn) for turn in turns)


def tail_ratio(durations, tail):
    """The ratio of both TAILs (p99, gap), and its 95 % interval by drawing turns; turns too short for two rows tell nothing."""
    durations = [[turn for turn in turns if turn] for turns in durations]
    if not all(durations):
        return math.nan, (math.nan, math.nan)
    rng = random.Random(1)
    drawn = sorted(tail(rng.choices(durations[0], k=len(durations[0]))) / tail(rng.choices(durations[1], k=len(durations[1]))) for _ in range(200))
    return tail(durations[0]) / tail(durations[1]), (drawn[4], drawn[-5])


def bootstrap(values):
    """The 95 % interval of their median."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(500))
    return medians[12], medians[-13]
