-- Lends to one client in one piece, where nothing is unusual: the epoch is the one that the node knows, the client was lent
-- by the same limit in it, or not at all yet, and no time lies ahead. Answers what was there before, how many calls are
-- lent, and the time. Otherwise it writes nothing and answers both records and the time, as a load does.
-- KEYS[1] the epoch, KEYS[2] the client.
-- ARGV[1], ARGV[2] see exact.lua. ARGV[3] token of the epoch, ARGV[4] when it began, ARGV[5] token of this write.
-- ARGV[6] what the record must begin with, ARGV[7] the record of a client who has none.
-- ARGV[8] to ARGV[10] the least that is of use, for how many somebody waits, and the most that is wanted.
-- ARGV[11] what part of what is left is lent ahead. ARGV[12] for how many us a record is kept at least.
-- ARGV[13] the letter of the state, and from then on the settings of the limit.
local TOKEN = 16
local epoch, client = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])

local function held_of(remaining)
  local least, wants, most = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
  if least > remaining then return 0 end
  local ahead = math.min(most, whole(remaining, tonumber(ARGV[11])))
  return math.min(math.max(ahead, wants, least), remaining)
end

local function lend()
  local record = client and string.sub(client, TOKEN + 1) or ARGV[7]
  local head = ARGV[6]
  if string.sub(record, 1, #head) ~= head then return 0 end
  local as_of, nothing_until, state = string.match(record, '^(%d+) (%d+);([^;]*);$', #head + 1)
  if not state or now < math.max(tonumber(as_of), tonumber(nothing_until), tonumber(ARGV[4])) then
    return 0
  end
  local settings = {}
  for n = 14, #ARGV do settings[n - 13] = tonumber(ARGV[n]) end
  local remaining, charge = lender(state, ARGV[13], unpack(settings))
  local held = remaining and held_of(remaining) or 0
  if held > 0 then
    local charged_state, full_at = charge(held)
    local value = {ARGV[5], head, digits(now), ' ', nothing_until, ';', charged_state, ';'}
    write(KEYS[2], table.concat(value), math.max(full_at, now + tonumber(ARGV[12])))
  end
  return held
end

local held = 0
if epoch and string.sub(epoch, 1, TOKEN) == ARGV[3] then held = lend() end
return {client, held > 0 and held or epoch, digits(now)}
