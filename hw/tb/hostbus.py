"""The host behind the card's writers: accepts descriptors and their words, and writes them to a memory of bytes."""


class Memory:
    """Bytes by address; every write is recorded in order, and must be inside a registered range."""

    def __init__(self):
        self.bytes, self.regions, self.writes = {}, [], []

    def register(self, address, length):
        self.regions.append((address, length))

    def write(self, address, data, source=None):
        assert any(start <= address and address + len(data) <= start + length for start, length in self.regions), \
            f"{len(data)} B outside of registered memory, at {address:#x}"
        self.writes.append((source, address, data))
        for offset, byte in enumerate(data):
            self.bytes[address + offset] = byte

    def read(self, address, length):
        return bytes(self.bytes[address + offset] for offset in range(length))


class Writes:
    """One writer's descriptor and words, checked by the rules of interfaces.md."""

    def __init__(self, memory, source=None):
        self.memory, self.source, self.descriptor, self.data, self.tlast_due = memory, source, None, b"", 0

    def descriptor_taken(self, address, length):
        assert self.descriptor is None and address % 4 == 0 and length % 4 == 0 and 0 < length <= 4096
        self.descriptor, self.data = (address, length), b""

    def word_taken(self, word, last):
        """True when that was the last word of the write."""
        address, length = self.descriptor
        self.data += word.to_bytes(32, "little")
        assert last == (len(self.data) >= length), "tlast and length disagree"
        if last:
            assert not any(self.data[length:]), "what is behind the end is not zero"
            self.memory.write(address, self.data[:length], self.source)
            self.descriptor = None
        return last
