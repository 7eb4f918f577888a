"""Drives every method of the waiting rooms of Cloudflare's SDK: writes at one node, reads at another.

Arguments: the address of the API at each of the two nodes, and a token.
"""

import sys
import time
import urllib.request

from cloudflare import (
    APIStatusError,
    AuthenticationError,
    BadRequestError,
    Cloudflare,
    NotFoundError,
    PermissionDeniedError,
)

one_address, other_address, token = sys.argv[1:]
# Without retries: an error has to be right at once.
one = Cloudflare(api_token=token, base_url=one_address, max_retries=0)
other = Cloudflare(api_token=token, base_url=other_address, max_retries=0)
calls = 0


def call(method, *arguments, **named):
    global calls
    calls += 1
    return method(*arguments, **named)


def expect(error, code, method, *arguments, pointer=None, **named):
    """Expects an error of this class, with this code and the place of the mistake."""
    try:
        call(method, *arguments, **named)
    except error as found:
        first = found.body["errors"][0]
        assert first["code"] == code, first
        if pointer:
            assert first["source"]["pointer"] == pointer, first
        return first["message"]
    raise AssertionError(f"{method} was not refused")


def same(found, expected):
    assert found == expected, f"found {found!r}, expected {expected!r}"


# Zones are sites, found by their name or one of their hosts.
zones = list(call(one.zones.list))
same([zone.name for zone in zones], ["shop", "blog"])
zone = zones[0].id
same([z.id for z in call(other.zones.list, name="www.shop.example")], [zone])
same(call(other.zones.get, zone_id=zone).name, "shop")
same(call(one.user.tokens.verify).status, "active")
account = list(call(one.accounts.list))[0].id

# Rooms.
rooms = one.waiting_rooms
limits = {"total_active_users": 200, "new_users_per_minute": 200}
wanted = {
    "zone_id": zone,
    "name": "sale",
    "host": "shop.example",
    "path": "/sale",
    "queueing_method": "fifo",
    "session_duration": 1,
    "description": "For friends",
    "turnstile_mode": "off",
    **limits,
}
sale = call(rooms.create, **wanted)
same((sale.name, sale.path, sale.description), ("sale", "/sale", "For friends"))
same((sale.session_duration, sale.queueing_status_code), (1, 200))
same(sale.cookie_attributes.samesite, "auto")
same((sale.enabled_origin_commands, sale.additional_routes), ([], []))
assert len(sale.id) == 32 and sale.created_on == sale.modified_on
# The same request again returns the same room.
again = call(rooms.create, **wanted)
same(again.id, sale.id)
found = call(other.waiting_rooms.get, sale.id, zone_id=zone)
same(found, sale)
for number in range(7):
    call(rooms.create, zone_id=zone, name=f"r{number}", host="shop.example", path=f"/r{number}", **limits)
listed = [room.name for room in call(other.waiting_rooms.list, zone_id=zone, per_page=5)]
same(listed, ["checkout", "sale", *(f"r{number}" for number in range(7))])
page = call(other.waiting_rooms.list, zone_id=zone, per_page=5)
same((len(page.result), page.result_info.total_count), (5, 9))
same(len(list(call(other.waiting_rooms.list, account_id=account))), 9)
message = expect(
    BadRequestError, 1002, rooms.create, zone_id=zone, name="bad", host="shop.example",
    path="/bad", total_active_users=0, new_users_per_minute=1, pointer="/total_active_users",
)
assert "allowed: an integer from 1" in message, message
expect(
    BadRequestError, 1002, rooms.create, zone_id=zone, name="sale2", host="shop.example",
    path="/sale", pointer="/path", **limits,
)
expect(
    BadRequestError, 1002, rooms.create, zone_id=zone, name="x", host="other.example",
    pointer="/host", **limits,
)
expect(
    BadRequestError, 1034, rooms.create, zone_id=zone, name="x", host="shop.example",
    turnstile_mode="visible_managed", pointer="/turnstile_mode", **limits,
)
updated = call(
    rooms.update, sale.id, zone_id=zone, name="sale", host="shop.example", path="/sale",
    total_active_users=300, new_users_per_minute=250, json_response_enabled=True,
    custom_page_html="<p>{{waitTime}}</p>", default_template_language="de-DE",
)
same((updated.total_active_users, updated.description, updated.session_duration), (300, "", 5))
same((updated.custom_page_html, updated.default_template_language), ("<p>{{waitTime}}</p>", "de-DE"))
edited = call(
    rooms.edit, sale.id, zone_id=zone, name="sale-2", host="shop.example",
    total_active_users=310, new_users_per_minute=250, suspended=True,
)
same((edited.name, edited.path, edited.suspended), ("sale-2", "/sale", True))
same(edited.json_response_enabled, True)
same(edited.created_on, sale.created_on)
assert edited.modified_on > sale.modified_on

# A room of the file: values that can be overridden, and nothing else.
checkout = next(iter(call(other.waiting_rooms.list, zone_id=zone)))
changed = call(
    rooms.edit, checkout.id, zone_id=zone, name="checkout", host="shop.example",
    total_active_users=60, new_users_per_minute=30,
)
same(changed.total_active_users, 60)
expect(
    PermissionDeniedError, 1100, rooms.edit, checkout.id, zone_id=zone, name="renamed",
    host="shop.example", **limits,
)
expect(PermissionDeniedError, 1100, rooms.delete, checkout.id, zone_id=zone)

# Status.
status = call(other.waiting_rooms.statuses.get, sale.id, zone_id=zone)
same((status.status, status.event_id), ("suspended", ""))
call(rooms.edit, sale.id, zone_id=zone, name="sale-2", host="shop.example", suspended=False, **limits)
status = call(one.waiting_rooms.statuses.get, sale.id, zone_id=zone)
same((status.status, status.estimated_queued_users), ("not_queueing", 0))

# Events.
events = rooms.events
event = call(
    events.create, sale.id, zone_id=zone, name="doors",
    prequeue_start_time="2040-05-01T09:00:00.000Z", event_start_time="2040-05-01T10:00:00.000Z",
    event_end_time="2040-05-01T12:00:00.000Z", shuffle_at_event_start=True,
    queueing_method="fifo", total_active_users=400, new_users_per_minute=300,
)
same(event.event_start_time, "2040-05-01T10:00:00.000Z")
same((event.shuffle_at_event_start, event.session_duration), (True, None))
room = call(other.waiting_rooms.get, sale.id, zone_id=zone)
same(room.next_event_start_time, "2040-05-01T10:00:00.000Z")
same(room.next_event_prequeue_start_time, "2040-05-01T09:00:00.000Z")
expect(
    BadRequestError, 1002, events.create, sale.id, zone_id=zone, name="overlaps",
    event_start_time="2040-05-01T11:00:00Z", event_end_time="2040-05-01T13:00:00Z",
)
expect(
    BadRequestError, 1002, events.create, sale.id, zone_id=zone, name="short",
    event_start_time="2040-06-01T11:00:00Z", event_end_time="2040-06-01T11:00:30Z",
    pointer="/event_end_time",
)
same([e.id for e in call(other.waiting_rooms.events.list, sale.id, zone_id=zone)], [event.id])
same(call(other.waiting_rooms.events.get, event.id, zone_id=zone, waiting_room_id=sale.id), event)
details = call(
    other.waiting_rooms.events.details.get, event.id, zone_id=zone, waiting_room_id=sale.id
)
same((details.session_duration, details.total_active_users), (5, 400))
changed = call(
    events.update, event.id, zone_id=zone, waiting_room_id=sale.id, name="doors",
    event_start_time="2040-05-01T10:00:00Z", event_end_time="2040-05-01T12:00:00Z",
    session_duration=3,
)
same((changed.prequeue_start_time, changed.session_duration), (None, 3))
changed = call(
    events.edit, event.id, zone_id=zone, waiting_room_id=sale.id, name="doors-2",
    event_start_time="2040-05-01T10:00:00Z", event_end_time="2040-05-01T13:00:00Z",
)
same((changed.name, changed.session_duration, changed.id), ("doors-2", 3, event.id))
same(call(events.delete, event.id, zone_id=zone, waiting_room_id=sale.id).id, event.id)
expect(
    NotFoundError, 1001, other.waiting_rooms.events.get, event.id, zone_id=zone,
    waiting_room_id=sale.id,
)

# Rules: every call returns all of them.
rules = rooms.rules


def rule(text):
    return {"action": "bypass_waiting_room", "expression": f'path == "/{text}"', "description": text}


for name in ["a", "b", "c"]:
    all_rules = list(call(rules.create, sale.id, zone_id=zone, rules=rule(name)))
same([r.description for r in all_rules], ["a", "b", "c"])
ids = {r.description: r.id for r in all_rules}
same([r.id for r in call(other.waiting_rooms.rules.get, sale.id, zone_id=zone)], list(ids.values()))


def moved(name, position):
    moving = call(
        rules.edit, ids[name], zone_id=zone, waiting_room_id=sale.id, position=position,
        action="bypass_waiting_room", expression=f'path == "/{name}"',
    )
    return "".join(r.description for r in moving)


same(moved("c", {"index": 1}), "cab")
same(moved("c", {"before": ids["b"]}), "acb")
same(moved("a", {"after": ids["b"]}), "cba")
same(moved("a", {"before": ""}), "acb")
same(moved("a", {"after": ""}), "cba")
off = call(
    rules.edit, ids["a"], zone_id=zone, waiting_room_id=sale.id, enabled=False,
    action="bypass_waiting_room", expression='path == "/a"',
)
same([r.enabled for r in off], [True, True, False])
message = expect(
    BadRequestError, 1002, rules.create, sale.id, zone_id=zone,
    rules={"action": "bypass_waiting_room", "expression": "path =="},
)
message = expect(
    BadRequestError, 1002, rules.create, sale.id, zone_id=zone, pointer="/expression",
    rules={"action": "bypass_waiting_room", "expression": "ip.src in {10.20.30.40}"},
)
assert message.endswith('address == "10.20.30.40"'), message
left = call(rules.delete, ids["b"], zone_id=zone, waiting_room_id=sale.id)
same([r.description for r in left], ["c", "a"])
expect(
    BadRequestError, 1002, rules.update, sale.id, zone_id=zone, pointer="/1/expression",
    rules=[rule("x"), {"action": "bypass_waiting_room"}],
)
replaced = call(rules.update, sale.id, zone_id=zone, rules=[rule("x"), rule("y")])
same([r.description for r in replaced], ["x", "y"])

# Settings and previews.
settings = rooms.settings
same(call(settings.get, zone_id=zone).search_engine_crawler_bypass, False)
call(settings.update, zone_id=zone, search_engine_crawler_bypass=False)
call(settings.edit, zone_id=zone, search_engine_crawler_bypass=False)
expect(
    APIStatusError, 1034, settings.update, zone_id=zone, search_engine_crawler_bypass=True,
    pointer="/search_engine_crawler_bypass",
)
html = "<h1>Shop</h1><p>{{waitTime}} minutes</p>"
preview = call(rooms.page.preview, zone_id=zone, custom_html=html)
with urllib.request.urlopen(f"{preview.preview_url}?waitTime=42") as response:
    assert b"42 minutes" in response.read()
    same(response.headers["content-security-policy"], "sandbox allow-scripts")

# Deletion, and what is not there.
same(call(rooms.delete, sale.id, zone_id=zone).id, sale.id)
expect(NotFoundError, 1001, other.waiting_rooms.get, sale.id, zone_id=zone)
expect(NotFoundError, 1001, rooms.delete, sale.id, zone_id=zone)
expect(NotFoundError, 7003, rooms.list, zone_id="0" * 32)
stranger = Cloudflare(api_token="not-a-valid-token", base_url=one_address, max_retries=0)
expect(AuthenticationError, 10000, stranger.waiting_rooms.list, zone_id=zone)
keyed = Cloudflare(
    api_key=token, api_email="ada@shop.example", base_url=one_address, max_retries=0
)
same(len(list(call(keyed.waiting_rooms.list, zone_id=zone))), 8)
print(f"{calls} calls")
