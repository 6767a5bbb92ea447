"""Readers of InferScope's export formats that believe nothing: each checks what its format demands and gives the self time of every function,
called "name (file:line)" as in folded stacks. Python's own library only, so that every machine can check."""
import csv
import decimal
import gzip
import io
import json
import re
import struct

FORMATS = {"perfetto": "pftrace", "chrome": "chrome.json", "speedscope": "speedscope.json", "collapsed": "collapsed", "pprof": "pb.gz", "otlp": "otlp.pb.gz", "csv": "csv"}


class Wrong(Exception):
    pass


def demand(condition, what):
    if not condition:
        raise Wrong(what)


def label(name, file, line):
    return f"{name} ({file}:{line})" if file and line else f"{name} ({file})" if file else name


def add(table, key, value):
    table[key] = table.get(key, 0) + value


def text_of(path):
    text = path.read_bytes().decode("utf-8")
    demand(not any(ord(c) < 32 and c not in "\n\t" or 0x202A <= ord(c) <= 0x202E for c in text), "a control or override character")
    return text


def strict_json(text):
    def refuse(token):
        raise Wrong(f"{token} is not JSON")

    def unique(pairs):
        demand(len({key for key, _ in pairs}) == len(pairs), "a key is there twice")
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, parse_float=decimal.Decimal, object_pairs_hook=unique)


# What the others are measured by.

def read_report(path):
    report = strict_json(path.read_text())
    return {label(f["name"], f["file"] or "", f["line"]): f for f in report["functions"]}


# Folded stacks.

def read_collapsed(path):
    own = {}
    for line in text_of(path).splitlines():
        match = re.fullmatch(r"(InferScope wall ns: [^;]+);([^;]+(?:;[^;]+)+) ([1-9][0-9]*)", line)
        demand(match, f"no folded stack: {line[:200]}")
        add(own, match[2].split(";")[-1], int(match[3]))
    return own


# speedscope: what its file-format-spec.ts says (1.25), and no field that it does not know.

SPEEDSCOPE_FRAME = {"name": str, "file": str, "line": int, "col": int}
SPEEDSCOPE_PROFILE = {"type": str, "name": str, "unit": str, "startValue": int, "endValue": int, "samples": list, "weights": list}
SPEEDSCOPE_FILE = {"$schema": str, "exporter": str, "name": str, "activeProfileIndex": int, "shared": dict, "profiles": list}


def demand_fields(thing, known, needed, what):
    demand(isinstance(thing, dict) and set(needed) <= set(thing) <= set(known) and all(type(thing[key]) is known[key] for key in thing), f"no {what}: {str(thing)[:200]}")


def read_speedscope(path):
    document = strict_json(text_of(path))
    demand_fields(document, SPEEDSCOPE_FILE, SPEEDSCOPE_FILE, "file")
    demand_fields(document["shared"], {"frames": list}, ["frames"], "shared part")
    demand(document["$schema"] == "https://www.speedscope.app/file-format-schema.json", "another $schema")
    demand(document["exporter"].startswith("inferscope@"), "another exporter")
    frames = document["shared"]["frames"]
    for frame in frames:
        demand_fields(frame, SPEEDSCOPE_FRAME, ["name"], "frame")
        demand(frame["name"], f"no name: {frame}")
    names = [label(frame["name"], frame.get("file", ""), frame.get("line", 0)) for frame in frames]
    own = {}
    demand(document["profiles"] and 0 <= document["activeProfileIndex"] < len(document["profiles"]), "no active profile")
    for profile in document["profiles"]:
        demand_fields(profile, SPEEDSCOPE_PROFILE, SPEEDSCOPE_PROFILE, "profile")
        demand(profile["type"] == "sampled" and profile["unit"] == "nanoseconds" and profile["startValue"] == 0, f"no sampled profile in ns from 0: {profile['name']}")
        samples, weights = profile["samples"], profile["weights"]
        demand(len(samples) == len(weights), f"{len(samples)} samples and {len(weights)} weights")
        demand(profile["endValue"] == sum(weights), "the end is not the sum of the weights")
        for sample, weight in zip(samples, weights):
            demand(sample and all(isinstance(frame, int) and 0 <= frame < len(frames) for frame in sample), f"no stack: {sample}")
            demand(isinstance(weight, int) and weight > 0, f"no weight: {weight}")
            add(own, names[sample[-1]], weight)
    return own


# CSV.

def read_csv(path):
    own = {}
    rows = list(csv.reader(io.StringIO(text_of(path)), strict=True))
    demand(len({len(row) for row in rows}) == 1, "rows of different lengths")
    for cells in rows[1:]:
        demand(all(not cell or cell[0] not in "=+-@" for cell in cells), f"a cell that a spreadsheet runs: {cells}")
        row = dict(zip(rows[0], cells))
        if row["Category"] in ("python", "c", "native", "unknown"):
            file = row["File"].removeprefix("'") if row["File"][:2] in ("'=", "'+", "'-", "'@") else row["File"]
            name = row["Name"].removeprefix("'") if row["Name"][:2] in ("'=", "'+", "'-", "'@") else row["Name"]
            add(own, label(name, file, int(row["Line"] or 0)), int(row["Self Time (ns)"]))
    return own


# Slices of a row, in the order in which a viewer takes them, nest or follow one another; else it drops them.

def self_times(slices):
    """SLICES: (start, end, name) in order; gives name: self time."""
    own, stack = {}, []
    for start, end, name in slices:
        while stack and stack[-1][1] <= start:
            stack.pop()
        if stack:
            demand(end <= stack[-1][1], f"{name} {start}..{end} overlaps {stack[-1][2]} {stack[-1][0]}..{stack[-1][1]}")
            add(own, stack[-1][2], -(end - start))
        add(own, name, end - start)
        stack.append((start, end, name))
    return own


# Chrome.

def microseconds(value):
    ns = decimal.Decimal(value) * 1000
    demand(ns == int(ns) and ns >= 0, f"no whole ns: {value}")
    return int(ns)


def read_chrome(path):
    document = strict_json(text_of(path))
    demand(document["schemaVersion"] == 1 and document["displayTimeUnit"] == "ns" and isinstance(document["baseTimeNanoseconds"], int), "not Kineto's dialect")
    demand(document["notShown"] == 0, f"{document['notShown']} slices are not shown")
    rows, names, flows, own = {}, set(), {"s": [], "f": []}, {}
    counts = {}
    for event in document["traceEvents"]:
        add(counts, event["ph"], 1)
        place = event["pid"], event.get("tid", 0)
        if event["ph"] == "M":
            demand(event["name"] in ("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"), f"metadata {event['name']}")
            if event["name"] == "thread_name":
                demand(place not in names, f"row {place} is named twice")
                names.add(place)
        elif event["ph"] == "X":
            start = microseconds(event["ts"])
            rows.setdefault(place, []).append((start, start + microseconds(event["dur"]), event["name"] if event["cat"] in ("python_function", "c_function") else None))
        elif event["ph"] in "sf":
            flows[event["ph"]].append((event["id"], place, microseconds(event["ts"])))
    for place, slices in rows.items():
        demand(place in names, f"row {place} has no name")
        for name, ns in self_times(sorted(slices, key=lambda one: one[0])).items():  # stable: equal times as in the file
            if name is not None:
                match = re.fullmatch(r"(?:(.*?)(?:\((\d+)\))?: )?(.*)", name) if ": " in name else None
                add(own, label(match[3], match[1] or "", int(match[2] or 0)) if match else name, ns)
    launches = [flow[0] for flow in flows["s"]]
    demand(len(set(launches)) == len(launches), "two launches with one number")
    for _, place, at in flows["s"] + flows["f"]:
        demand(any(start <= at <= end for start, end, _ in rows.get(place, ())), f"an arrow from or to nowhere at {at}")
    return own, {"slices": counts.get("X", 0) + counts.get("i", 0), "flows": len(set(launches) & {flow[0] for flow in flows["f"]})}


# Protocol Buffers.

def fields(data):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            demand(at < len(data) and shift < 70, "a number is cut")
            value |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            length = {1: 8, 2: -1, 5: 4}[kind]
            length = varint() if length < 0 else length
            demand(at + length <= len(data), "a field is cut")
            value = data[at:at + length]
            at += length
        yield key >> 3, value


def message(data):
    out = {}
    for field, value in fields(data):
        out.setdefault(field, []).append(value)
    return out


def packed(data):
    return [value for _, value in fields(b"".join(b"\x08" + piece for piece in re.findall(rb"[\x80-\xff]*[\x00-\x7f]", data)))]


def one(parsed, field, default=0):
    demand(len(parsed.get(field, [0])) == 1, f"field {field} is there twice")
    return parsed.get(field, [default])[0]


# pprof.

def read_pprof(path):
    """Wall and CPU time of its own by function, and what else there is, by the name of its type."""
    raw = path.read_bytes()
    demand(raw[:4] == b"\x1f\x8b\x08\x10" and raw[10:21] == b"InferScope\0", "no gzip of InferScope's")
    profile = message(gzip.decompress(raw))
    strings = [value.decode("utf-8") for value in profile[6]]
    demand(strings[0] == "", "the first string is not empty")
    types = [(strings[one(message(value), 1)], strings[one(message(value), 2)]) for value in profile[1]]
    always = [("samples", "count"), ("calls", "count"), ("wall", "nanoseconds"), ("cpu", "nanoseconds")]
    demand(types[:4] == always and types[4:] in ([], [("gil", "nanoseconds")], [("gpu", "nanoseconds")], [("gil", "nanoseconds"), ("gpu", "nanoseconds")]), f"types {types}")
    demand(strings[one(profile, 14)] == "wall", "another default type")
    functions = {}
    for value in profile.get(5, []):
        function = message(value)
        functions[one(function, 1)] = label(strings[one(function, 2)], strings[one(function, 4)], one(function, 5))
    locations = {}
    for value in profile.get(4, []):
        location = message(value)
        demand(one(location, 2) == one(message(one(profile, 3)), 1), "a location in no mapping")
        locations[one(location, 1)] = functions[one(message(one(location, 4)), 1)]
    demand(len(functions) == len(profile.get(5, [])) and len(locations) == len(profile.get(4, [])) and 0 not in functions, "an id is used twice")
    own, cpu, more = {}, {}, {name: {} for name, _ in types[4:]}
    for value in profile.get(2, []):
        sample = message(value)
        values = packed(one(sample, 2))
        demand(len(values) == len(types), f"{len(values)} values")
        demand(values[3] <= values[2], "more CPU time than time")
        leaf = locations[packed(one(sample, 1))[0]]
        for tag in sample.get(3, []):
            demand(strings[one(message(tag), 1)] == "thread" and strings[one(message(tag), 2)], "no thread")
        if values[2]:
            add(own, leaf, values[2])
            add(cpu, leaf, values[3])
        for (name, _), value in list(zip(types, values))[4:]:
            if value:
                add(more.setdefault(name, {}), leaf, value)
    return own, cpu, more


# OTLP.

def read_otlp(path):
    """The same, but all kinds by the name of their type."""
    raw = path.read_bytes()
    demand(raw[:4] == b"\x1f\x8b\x08\x10" and raw[10:21] == b"InferScope\0", "no gzip of InferScope's")
    request = message(gzip.decompress(raw))
    tables = message(one(request, 2))
    strings = [value.decode("utf-8") for value in tables[5]]
    demand(strings[0] == "" and all(tables[table][0] == b"" for table in (1, 2, 3, 4, 6, 7)), "a table begins with something")
    functions = [label(strings[one(function, 1)], strings[one(function, 3)], one(function, 4)) for function in map(message, tables[3])]
    locations = [functions[one(message(one(location, 3)), 1)] for location in map(message, tables[2][1:])]
    demand(all(one(message(location), 1) == 1 for location in tables[2][1:]) and len(tables[1]) == 2, "a location in no mapping")
    stacks = [[locations[index - 1] for index in packed(one(stack, 1))] for stack in map(message, tables[7][1:])]
    resource = message(one(request, 1))
    names = [one(message(attribute), 1).decode() for attribute in message(one(resource, 1))[1]]
    demand(names == ["service.name", "process.pid", "process.command_line", "inferscope.quality"], f"{names}")
    kinds = {}
    for profile in map(message, message(one(resource, 2))[2]):
        own = kinds.setdefault(strings[one(message(one(profile, 1)), 1)], {})
        for sample in map(message, profile.get(2, [])):
            demand(all(0 < thread < len(tables[6]) for thread in packed(one(sample, 2, b""))), "no thread")
            add(own, stacks[one(sample, 1) - 1][0], packed(one(sample, 4))[0])
    demand(list(kinds)[:4] == ["samples", "calls", "wall", "cpu"], f"types {list(kinds)}")
    return kinds


# Perfetto.

def read_perfetto(path):
    interned, tracks, packets, slices = {"category": {}, "name": {}, "place": {}}, {}, [], 0
    for field, value in fields(path.read_bytes()):
        demand(field == 1, "no packet")
        packet = message(value)
        demand(one(packet, 10) == 1 and one(packet, 13) == (2 if tracks or packets or interned["name"] else 1), "sequence or flags")
        for block in packet.get(12, []):
            block = message(block)
            for name, number in (("category", 1), ("name", 2), ("place", 4)):
                for entry in block.get(number, []):
                    entry = message(entry)
                    demand(one(entry, 1) not in interned[name], f"{name} {one(entry, 1)} is said twice")
                    interned[name][one(entry, 1)] = entry
        if 60 in packet:
            track = message(packet[60][0])
            demand(one(track, 1) and one(track, 1) not in tracks, "a track is described twice")
            demand(5 not in track or one(track, 5) in tracks, "a track without its parent")
            tracks[one(track, 1)] = track
        if 11 in packet:
            event = message(packet[11][0])
            demand(one(event, 11) in tracks, "an event of no track")
            name = None
            if one(event, 9) in (1, 3):
                slices += 1
                category = one(interned["category"][one(event, 3)], 2).decode()
                text = one(event, 23) if 23 in event else one(interned["name"][one(event, 10)], 2)
                text.decode("utf-8")
                if category in ("python_function", "c_function"):
                    place = interned["place"][one(event, 34)] if 34 in event else {}
                    name = label(one(interned["name"][one(event, 10)], 2).decode("utf-8"), one(place, 2, b"").decode("utf-8"), one(place, 4))
            packets.append((one(packet, 8), one(event, 11), one(event, 9), name, [struct.unpack("<Q", flow)[0] for flow in event.get(47, [])]))
    packets.sort(key=lambda packet: packet[0])  # stable, as the trace processor does
    stacks, own, flows = {}, {}, {}
    for at, track, kind, name, ids in packets:
        stack = stacks.setdefault(track, [])
        for flow in ids:
            add(flows, flow, 1)
        if kind == 1:
            stack.append((at, name))
        elif kind == 2:
            demand(stack, f"an end of nothing at {at}")
            start, name = stack.pop()
            if name is not None:
                add(own, name, at - start)
            if stack and stack[-1][1] is not None:
                add(own, stack[-1][1], -(at - start))
    demand(not any(stacks.values()), "a slice never ends")
    return own, {"slices": slices, "flows": sum(count == 2 for count in flows.values())}


def processes_of(data):
    """Threads by the name of the process that a Perfetto trace has them in; its pid is the threads', too."""
    tracks = [message(message(value)[60][0]) for field, value in fields(data) if 60 in message(value)]
    processes = {one(track, 1): message(track[3][0]) for track in tracks if 3 in track}
    demand(len({one(process, 1) for process in processes.values()}) == len(processes), "two processes with one pid")
    threads = {one(process, 6).decode(): [] for process in processes.values()}
    for track in tracks:
        if 4 in track:
            process, thread = processes[one(track, 5)], message(track[4][0])
            demand(one(thread, 1) == one(process, 1), "a thread in another's process")
            threads[one(process, 6).decode()].append(one(thread, 2))
    return threads
