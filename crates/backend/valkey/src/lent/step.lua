-- Lends to one client in one piece, where nothing is unusual: the epoch is the one that the node
-- knows, the client was lent by the same limit in it, or not at all yet, and no time lies ahead.
-- Answers what was there before, how many calls are lent, and the time. Otherwise it writes nothing
-- and answers both records and the time, as a load does. Before it stand what is left of a limit,
-- `calls_left`, and what becomes of its state when so many are lent, `charged`: it answers as those
-- do by which calls are counted.
-- KEYS[1] the epoch, KEYS[2] the client.
-- ARGV[2] token of the epoch, ARGV[3] when it began, ARGV[4] token of this write.
-- ARGV[5] what the record must begin with, ARGV[6] the record of a client who has none.
-- ARGV[7] to ARGV[9] the least that is of use, for how many somebody waits, and the most that is
-- wanted.
-- ARGV[10] what part of what is left is lent ahead. ARGV[11] for how many us a record is kept at
-- least.
-- ARGV[12] the letter of the state, and from then on the settings of the limit.
local TOKEN = 16
local epoch, client = call('GET', KEYS[1]), call('GET', KEYS[2])

local function held_of(remaining)
  local least, wants, most = ARGV[7] + 0, ARGV[8] + 0, ARGV[9] + 0
  if least > remaining then return 0 end
  local ahead = min(most, floor(remaining / ARGV[10]))
  return min(max(ahead, wants, least), remaining)
end

local function lend()
  local record = client and string.sub(client, TOKEN + 1) or ARGV[6]
  local head, letter = ARGV[5], ARGV[12]
  if string.sub(record, 1, #head) ~= head then return 0 end
  local as_of, nothing_until, state = match(record, '^(%d+) (%d+);([^;]*);$', #head + 1)
  if not state or now < max(as_of + 0, nothing_until + 0, ARGV[3] + 0) then return 0 end
  local settings = {}
  for n = 13, #ARGV do settings[n - 12] = ARGV[n] + 0 end
  local remaining = calls_left(letter, state, unpack(settings))
  local held = remaining and held_of(remaining) or 0
  if held > 0 then
    local _, _, after, idle_at = charged(letter, state, held, unpack(settings))
    local value = {ARGV[4], head, format('%.0f', now), ' ', nothing_until, ';', after, ';'}
    write(KEYS[2], table.concat(value), max(idle_at, now + ARGV[11]))
  end
  return held
end

local held = 0
if epoch and string.sub(epoch, 1, TOKEN) == ARGV[2] then held = lend() end
return {client, held > 0 and held or epoch, now}
