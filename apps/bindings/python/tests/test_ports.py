"""`ports` beside the kernel's own lists."""

import os

import pollux


def test_what_can_be_opened_is_listed():
    found = pollux.ports()
    specs = {entry["spec"]: entry for entry in found["ports"]}
    assert found["schema"] == 1
    assert specs["loopback"]["state"] == "usable"
    form = next(entry for entry in found["ports"] if entry["driver"] == "pcap")
    assert form["state"] == "form" and "rx" in form["why"]
    with pollux.open("loopback") as port:
        assert port.spec == "loopback"


def test_interfaces_are_those_of_the_kernel():
    found = pollux.ports()["interfaces"]
    assert sorted(entry["name"] for entry in found) == sorted(os.listdir("/sys/class/net"))
    for entry in found:
        with open(f"/sys/class/net/{entry['name']}/mtu", encoding="ascii") as file:
            assert entry["mtu"] == int(file.read())
