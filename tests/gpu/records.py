"""Raw records of CUPTI as tests/fakecuda/client.c keeps them: read, summed up, and compared with what the doubles take for granted (layout.def)."""
import os
import re
import struct

LAYOUT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fakecuda", "layout.def")
NAME = 0xffffffff


def rows(macro):
    with open(LAYOUT) as f:
        return [[part.strip() for part in row.split(",")] for row in re.findall(r"^%s\((.*)\)$" % macro, f.read(), re.M)]


def read(path):
    """Lists of records, one list for each buffer: (kind, bytes)."""
    buffers, here = [], []
    with open(path, "rb") as f:
        data = f.read()
    at = 0
    while at + 4 <= len(data):
        length, = struct.unpack_from("<I", data, at)
        record = data[at + 4:at + 4 + length]
        at += 4 + length
        if length >= 4:
            here.append((struct.unpack_from("<I", record)[0], record))
        elif here:
            buffers.append(here)
            here = []
    return buffers + [here] if here else buffers


def summary(path):
    """By kind: how many, and their lengths; the first kinds of each of the first buffers; names."""
    buffers = read(path)
    kinds, names = {}, []
    for kind, record in (pair for buffer in buffers for pair in buffer):
        if kind == NAME:
            names.append(record[16:].decode(errors="replace"))
            continue
        row = kinds.setdefault(str(kind), {"count": 0, "bytes": [len(record), len(record)]})
        row["count"] += 1
        row["bytes"] = [min(row["bytes"][0], len(record)), max(row["bytes"][1], len(record))]
    return {"buffers": len(buffers), "kinds": kinds, "first_kinds": [[kind for kind, _ in buffer if kind != NAME][:12] for buffer in buffers[:4]], "names": names[:32]}


def differences(path, version):
    """Where records of CUPTI VERSION are not as layout.def says: lengths, and times, ids and names that cannot be."""
    numbers, sizes, fields, found = {}, {}, {}, []
    for name, number, _ in rows("KIND"):
        numbers[int(number)] = name
    for name, since, size in rows("SIZE"):
        if int(since) <= version:
            sizes[name] = int(size)
    for name, field, offset, size, since, _ in rows("FIELD"):
        if int(since) <= version:
            fields[name, field] = int(offset), int(size)
    pointers = set()
    for kind, record in (pair for buffer in read(path) for pair in buffer):
        name = numbers.get(kind)

        def value(field):
            offset, size = fields[name, field]
            return int.from_bytes(record[offset:offset + size], "little")
        if kind == NAME:
            pointers.add(struct.unpack_from("<Q", record, 8)[0])
        elif name is None:
            found.append("kind %d is not known" % kind)
        elif len(record) != sizes[name]:
            found.append("%s: %d bytes, not %d" % (name, len(record), sizes[name]))
        elif (name, "START") in fields and (name, "END") in fields and value("START") > value("END"):
            found.append("%s: from %d to %d" % (name, value("START"), value("END")))
        elif (name, "DEVICE") in fields and name != "MEMORY" and value("DEVICE") > 64:
            found.append("%s: device %d" % (name, value("DEVICE")))
        elif name == "KERNEL" and value("NAME") not in pointers:
            found.append("KERNEL: a name that nobody gave")
    return sorted(set(found))
