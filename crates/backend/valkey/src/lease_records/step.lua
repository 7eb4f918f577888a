-- Grants a lease to one client atomically in the usual case: the epoch is the one that the node
-- knows, the client has leases of the same limit in it or none yet, and no time is ahead of now.
-- Returns the prior record, the granted requests, and the time. Otherwise it writes nothing and
-- returns both records and the time, as a load does. The parts before this one define
-- `remaining_of`, the remaining requests of a limit, and `acquire`, its state after a grant;
-- `acquire` is the function that counts requests.
-- KEYS[1] the epoch, KEYS[2] the client.
-- ARGV[2] token of the epoch, ARGV[3] its start, ARGV[4] token of this write.
-- ARGV[5] required beginning of the record, ARGV[6] record of a client without one.
-- ARGV[7] to ARGV[9] least useful grant, waiting requests, and largest grant.
-- ARGV[10] divisor of the remaining requests that are leased ahead.
-- ARGV[11] least time to keep a record, in us.
-- ARGV[12] letter of the state, and then the settings of the limit.
local TOKEN = 16
local epoch, client = call('GET', KEYS[1]), call('GET', KEYS[2])

local function grant_of(remaining)
  local least, wants, most = ARGV[7] + 0, ARGV[8] + 0, ARGV[9] + 0
  if least > remaining then return 0 end
  local ahead = min(most, floor(remaining / ARGV[10]))
  return min(max(ahead, wants, least), remaining)
end

local function grant()
  local record = client and string.sub(client, TOKEN + 1) or ARGV[6]
  local head, letter = ARGV[5], ARGV[12]
  if string.sub(record, 1, #head) ~= head then return 0 end
  local as_of, nothing_until, state = match(record, '^(%d+) (%d+);([^;]*);$', #head + 1)
  if not state or now < max(as_of + 0, nothing_until + 0, ARGV[3] + 0) then return 0 end
  local settings = {}
  for n = 13, #ARGV do settings[n - 12] = ARGV[n] + 0 end
  local remaining = remaining_of(letter, state, unpack(settings))
  local granted = remaining and grant_of(remaining) or 0
  if granted > 0 then
    local _, _, after, idle_at = acquire(letter, state, granted, unpack(settings))
    local value = {ARGV[4], head, format('%.0f', now), ' ', nothing_until, ';', after, ';'}
    write(KEYS[2], table.concat(value), max(idle_at, now + ARGV[11]))
  end
  return granted
end

local granted = 0
if epoch and string.sub(epoch, 1, TOKEN) == ARGV[2] then granted = grant() end
return {client, granted > 0 and granted or epoch, now}
