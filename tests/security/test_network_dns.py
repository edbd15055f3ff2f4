# SPDX-License-Identifier: Apache-2.0
"""The resolver between a sandbox that wants to carry data out, or in, by names, and name servers that lie."""

import time

import pytest

from cella_server import wait_until
from network_inside import Box
from world import CUT_OFF, ECHO, EVIL, HOST, METADATA, OTHER, WEB


@pytest.fixture(scope="module")
def zone(world):
    """An allowed name, and an allowed wildcard under which everything has an address."""
    return {"good": world.name(WEB, label="good"), "wild": world.zone("*.wild.example", A=[WEB])[2:]}


@pytest.fixture(scope="module")
def box(world_server, zone):
    made = world_server.create(network={"mode": "allowlist", "allow": [zone["good"], "*." + zone["wild"]]})
    yield Box(made)
    made.delete()


def assert_resolves(world, box):
    """A name that nobody has asked for yet; what came before may have used up its share for a moment."""
    world.zone(fresh := f"n{world.now()}.wild.example", A=[OTHER])
    wait_until(lambda: box.do("addresses(fresh, timeout=10)", fresh=fresh) == [OTHER], 60, "an answer")


# --- carrying data out ---


def test_names_that_are_not_allowed_are_not_asked_for(world, box, zone):
    """The question itself would carry the data: it must not leave the machine."""
    since = world.now()
    secret = "c2VjcmV0LWRhdGE"
    world.zone("*.tunnel.example", A=[EVIL])
    asked = [f"{secret}.tunnel.example", f"{secret}.{zone['good']}", f"{secret}.example", secret, f"x.{zone['good']}",
             f"{zone['good']}.{secret}.tunnel.example", f"{secret}.in-addr.arpa", "7.7.7.7.in-addr.arpa", "localhost",
             "wild.example", "metadata.google.internal"]
    got = box.do("together([lambda n=n, k=k, t=t: ask(n, k, over_tcp=t, timeout=10) for n in names for k, t in "
                 "(('A', 0), ('A', 1), ('AAAA', 0))])", names=asked)
    assert [each for each in got if each.get("answers")] == []
    assert_resolves(world, box)
    assert [met["name"] for met in world.met(since, kind="dns") if not met["name"].endswith(".wild.example")] == []


@pytest.mark.parametrize("kind", ["TXT", "NULL", "ANY", "MX", "SRV", "NS", "SOA", "HTTPS", "PTR", 252, 251, 41, 65280])
def test_types_that_carry_data(world, box, zone, kind):
    """Under an allowed wildcard, too: addresses are all that is needed. HTTPS would bring the keys that
    hide names."""
    name = f"t{world.now()}.{zone['wild']}"
    raw = {"TXT": "05" + b"hello".hex(), "NULL": b"hello".hex(), "HTTPS": "00010000010003026833"}
    world.zone(name, A=[WEB], raw=raw)
    got = box.do("ask(name, kind, timeout=10)", name=name, kind=kind)
    assert [each for each in got.get("answers", []) if each[0] not in ("A", "CNAME")] == []
    assert b"hello".hex() not in str(got)


def test_long_names_under_a_wildcard(world, box, zone):
    """As long as DNS allows and longer: malformed ones are refused, none is passed on as it is not."""
    since = world.now()
    names = [f"{'a' * 63}.{zone['wild']}", ".".join(["b" * 60] * 3) + f".{zone['wild']}",
             ".".join(["c" * 63] * 4) + f".{zone['wild']}", ".".join("d" * 120) + f".{zone['wild']}"]
    box.do("together([lambda n=n: ask(n, timeout=10) for n in names])", names=names)
    assert_resolves(world, box)
    for met in world.met(since, kind="dns"):
        assert len(met["name"]) <= 253 and met["name"].endswith(zone["wild"]), met


QUESTIONS = """
sent = 0
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.connect((resolver(), 53))
    sock.setblocking(False)
    print("ready", flush=True)
    while sent < 10000:
        try:
            sock.send(world_dns.query(f"f{sent}." + wild))
        except OSError:
            pass
        sent += 1
print("sent", flush=True)
time.sleep(1000)
"""


def test_a_flood_of_questions_is_held_back(world, box, boxes, zone):
    """Data in names at any speed is not possible, and a neighbour's names are resolved meanwhile."""
    other, since, began = boxes("allowlist", allow=["*." + zone["wild"]]), world.now(), time.monotonic()
    with box.doing(QUESTIONS, wild=zone["wild"]) as output:
        assert_resolves(world, other)
        wait_until(lambda: "sent" in output(), 60, output)
    passed = len([met for met in world.met(since, kind="dns") if met["name"].startswith("f")])
    assert passed <= 300 + 40 * (time.monotonic() - began)
    assert_resolves(world, box)


# --- questions that are none ---

MALFORMED = {
    "a byte": "12", "a head": "1234010000010000000000" + "00", "no question": "123401000000000000000000",
    "two questions": "123401000002000000000000" + "0161076578616d706c650000010001" * 2,
    "a thousand questions": "1234010003e8000000000000" + "0161076578616d706c650000010001",
    "an answer": "123481800001000000000000" + "0161076578616d706c650000010001",
    "opcode update": "123428000001000000000000" + "0161076578616d706c650000060001",
    "opcode notify": "123424000001000000000000" + "0161076578616d706c650000060001",
    "a pointer to itself": "123401000001000000000000" + "c00c00010001",
    "a pointer ahead": "123401000001000000000000" + "c0ff00010001",
    "two pointers": "123401000001000000000000" + "c00ec00c00010001",
    "a label without its end": "123401000001000000000000" + "3f6161",
    "a long label": "123401000001000000000000" + "7f" + "61" * 127 + "0000010001",
    "another class": "123401000001000000000000" + "0161076578616d706c650000010003",
    "a name of 300": "123401000001000000000000" + ("3f" + "61" * 63) * 5 + "0000010001",
    "a NUL in it": "123401000001000000000000" + "03610062076578616d706c650000010001",
    "a dot in it": "123401000001000000000000" + "03612e62076578616d706c650000010001",
    "more behind it": "123401000001000000000001" + "0161076578616d706c650000010001" + "ff" * 400,
    "an OPT of 64 KiB": "123401000001000000000001" + "0161076578616d706c650000010001" + "00002900ff00000000ffff",
}


def test_malformed_questions(world, box):
    since = world.now()
    raws = list(MALFORMED.values())
    box.do("""together([lambda r=r, t=t: ask('', raw=r, timeout=QUICK, over_tcp=t) for r in raws for t in (0, 1)] +
           [lambda: tcp(resolver(), 53, [b'\\xff\\xff' + b'x' * 65000], QUICK),
            lambda: tcp(resolver(), 53, [b'\\0'], QUICK), lambda: tcp(resolver(), 53, [b'\\0\\0' * 100], QUICK)])
           """, raws=raws)
    assert_resolves(world, box)
    assert [met for met in world.met(since, kind="dns") if not met["name"].endswith("wild.example")] == []


# --- name servers that lie ---


@pytest.mark.parametrize("lie", ["wrong-id", "wrong-question", "garbage", "foreign", "flood"])
def test_a_lie_beside_the_truth(world, box, zone, lie):
    """What does not fit the question is passed over, and the answer is found."""
    name = f"l{world.now()}.{zone['wild']}"
    world.zone(name, A=[OTHER], lie=lie, evil=EVIL)
    got = box.do("ask(name)", name=name)
    assert EVIL not in str(got), got
    if lie != "flood":  # which may fill a buffer before the truth comes
        assert [text for _, _, text in got["answers"]] == [OTHER]
    assert "bank.example" not in str(got)
    assert_resolves(world, box)


@pytest.mark.parametrize("lie", ["short", "huge", "many", "truncate"])
def test_answers_of_every_size(world, box, zone, lie):
    """Too long for UDP, endless, cut off: answered in bounds or not at all, and nobody falls over."""
    name = f"s{world.now()}.{zone['wild']}"
    world.zone(name, A=[OTHER], lie=lie)
    got = box.do("ask(name, timeout=20)", name=name)
    assert got.get("size", 0) <= 4096, got
    if lie == "truncate":
        assert [text for _, _, text in got["answers"]] == [OTHER]
    assert box.do("ask(name, timeout=20, over_tcp=1)", name=name).get("size", 0) <= 65535
    assert_resolves(world, box)


def test_a_server_that_does_not_answer_holds_nobody_up(world, box, zone):
    world.zone("*.silent." + zone["wild"], A=[WEB], lie="drop")
    with box.doing("print('ready', flush=True)\n"
                   "together([lambda n=n: ask(f'd{n}.silent.{wild}', timeout=20) for n in range(20)])",
                   wild=zone["wild"]):
        assert_resolves(world, box)


def test_a_slow_answer_is_waited_for(world, box, zone):
    name = f"slow{world.now()}.{zone['wild']}"
    world.zone(name, A=[OTHER], delay=1)
    assert box.do("addresses(name)", name=name) == [OTHER]


def test_aliases(world, box, zone):
    """The name that was asked for is allowed, and where it leads is looked at by address alone; circles end."""
    chain = f"c{world.now()}.{zone['wild']}"
    world.zone(chain, cname=world.name(OTHER))
    assert box.do("addresses(name)", name=chain) == [OTHER]
    circle = f"o{world.now()}.{zone['wild']}"
    world.zone(circle, cname=circle)
    assert box.do("addresses(name, timeout=20)", name=circle) == []
    inner = f"i{world.now()}.{zone['wild']}"
    world.zone(inner, cname=world.name(METADATA))
    assert box.do("addresses(name, timeout=20)", name=inner) == []
    assert_resolves(world, box)


# --- rebinding ---


def test_answers_that_lead_inside(world, box, zone):
    """Every range that is cut off, alone and beside an honest address; also from an alias's answer."""
    since, named = world.now(), {}
    for number, address in enumerate(CUT_OFF.values()):
        if address == HOST:
            continue
        named[address] = world.zone(f"r{since}-{number}.{zone['wild']}", A=[address])
        world.zone(f"m{since}-{number}.{zone['wild']}", A=[WEB, address])
    alone = box.do("dict(zip(names, together([lambda n=n: ask(n, timeout=20) for n in names])))",
                   names=list(named.values()))
    assert {name: got["answers"] for name, got in alone.items() if got.get("answers")} == {}
    mixed = box.do("together([lambda n=n: ask(n, timeout=20) for n in names])",
                   names=[name.replace("r", "m", 1) for name in named.values()])
    for got in mixed:
        assert {text for _, _, text in got.get("answers", [])} <= {WEB}, got


def test_a_name_that_turns(world, box, zone):
    """Public when it is looked up, private when it is connected to: each is checked."""
    since, before = world.now(), world.host.now()
    for number, inner in enumerate((METADATA, "127.0.0.1", HOST)):
        name = f"turn{since}-{number}.{zone['wild']}"
        world.zone(name, ttl=0, sequence=[[WEB], [inner]])
        assert box.do("addresses(name)", name=name) == [WEB]
        got = box.do("[http(web, name, timeout=20), https(web, name, timeout=20), addresses(name, timeout=20)]",
                     web=WEB, name=name)
        assert got[2] in ([], [WEB]), got
    met = {each["address"] for each in world.met(since, kind="tcp")}
    assert met <= {WEB} and world.host.met(before) == []


# --- what an answer opens ---


def test_an_answer_admits_for_as_long_as_it_lives(world, boxes):
    """Other ports than 80 and 443: an address before its name was looked up is refused, afterwards it is
    open to whoever asked, at the port that is allowed, until its time is over."""
    address = "45.93.0.7"
    name = world.name(address, ttl=2)
    box, other = (boxes("allowlist", allow=[f"{name}:{ECHO}"]) for _ in range(2))
    tried = "echo(address, port, timeout=QUICK)['got']"
    assert box.do(tried, address=address, port=ECHO) == ""
    assert box.do("[addresses(name), echo(address, port)['got']]", name=name, address=address, port=ECHO) == [
        [address], "hello"]
    assert other.do(tried, address=address, port=ECHO) == "", "somebody else's answer"
    assert box.do("[addresses(name), echo(address, 22, timeout=QUICK)['got']]", name=name, address=address)[1] == ""
    wait_until(lambda: box.do(tried, address=address, port=ECHO) == "", 60, "the end of its time")
    # As often as it is asked for: the name is what is allowed.
    assert box.do("[addresses(name), echo(address, port)['got']]", name=name, address=address, port=ECHO)[1] == "hello"
