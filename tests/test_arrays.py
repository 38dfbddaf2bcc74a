from __future__ import annotations

import numpy as np

from boostlist.arrays import Room


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_serves_again_when_nobody_holds_it():
    room = Room(5)
    first = room.empty()
    assert (first.shape, first.dtype, first.flags.writeable, first.flags.c_contiguous) == ((5,), np.float64, True, True)
    place = address(first)
    del first
    assert address(room.empty()) == place


def test_memory_that_is_held_is_left_alone():
    room = Room(4, np.float32)
    held = room.empty()
    held[:] = 1
    part = held[1:3]
    del held
    for _ in range(3):  # a view holds all of it
        other = room.empty()
        assert not np.shares_memory(part, other)
        other[:] = 2
    assert part.tolist() == [1, 1]


def test_arrays_outlive_the_room():
    array = Room(3).empty()
    array[:] = 7
    assert array.tolist() == [7, 7, 7]
