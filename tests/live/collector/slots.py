"""Where a library has slots for malloc and its kin."""
import struct

NAMES = ('malloc', 'calloc', 'realloc', 'free', 'posix_memalign', 'aligned_alloc')


def slots_of(path):
    """[(offset from the library's beginning, name)] of its relocations JUMP_SLOT for each of NAMES."""
    with open(path, 'rb') as file:
        elf = file.read()
    start, = struct.unpack_from('<Q', elf, 32)
    headers = [struct.unpack_from('<IIQQQQQQ', elf, start + 56 * i) for i in range(struct.unpack_from('<H', elf, 56)[0])]

    def offset(address):
        return next(address - h[3] + h[2] for h in headers if h[0] == 1 and h[3] <= address < h[3] + h[5])
    at, size = next((h[2], h[5]) for h in headers if h[0] == 2)
    dynamic = dict(struct.unpack_from('<QQ', elf, at + 16 * i) for i in range(size // 16))
    symbols, strings, table = offset(dynamic[6]), offset(dynamic[5]), offset(dynamic[23])
    found = []
    for i in range(dynamic[2] // 24):
        slot, info, _ = struct.unpack_from('<QQq', elf, table + 24 * i)
        name = strings + struct.unpack_from('<I', elf, symbols + 24 * (info >> 32))[0]
        name = elf[name:elf.index(b'\0', name)].decode()
        if name in NAMES:
            found.append((slot, name))
    assert len(found) == len(NAMES), found
    return found
