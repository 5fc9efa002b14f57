"""The digest of exported files: each changed byte is noticed."""

import pytest

from basedsl.export.metadata import MetadataError, opened, sealed


def test_every_flipped_byte_of_a_small_file_is_noticed():
    data = sealed(code := b"\x7fELF" + bytes(range(60)))
    assert opened(data) == code
    for at in range(len(data)):
        with pytest.raises(MetadataError):
            opened(data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :])
