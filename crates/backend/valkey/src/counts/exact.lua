-- Common part of all algorithms: exact numbers, and values by their key.
--
-- ARGV[1] the time in us, '' for the server's own. A test passes its time; values are kept for
-- longer then. The last part of a text describes the other arguments.
--
-- All of this runs in every call, so unused definitions cost time, too. So a call gets the text of
-- the algorithms that it needs only, functions of the server are locals, and single numbers are not
-- put into tables.
--
-- Numbers are doubles, whole and exact below 2^53: times and windows in us are, and so are counts.
-- In that range rounding down and % are exact, too: a / b is rounded by less than the 1 / b that
-- separates it from the next whole number.
local WORD, HALF, EXACT = 4294967296, 65536, 9007199254740992
-- 142 years. A client whose state is valid for longer never expires.
local LONGEST_US = 4503599627370496
local call, pcall = redis.call, redis.pcall
local floor, max, min = math.floor, math.max, math.min
local format, match = string.format, string.match

-- One function for each way of counting in this text. Arguments: the letter of the algorithm, the
-- prior state, the cost and the settings. It returns whether the limit admits, the prior state (''
-- if it was invalid), and, if something is to be written, the value ('' to delete it) and the end
-- of its validity.
local counters, paced, token_bucket
-- The function for a log, which is a list. It takes the key instead of the state, and returns a
-- function that writes.
local sliding_log

local now = ARGV[1]
-- Extra ms for which a value is kept: the server rounds, and its clock may be adjusted a little. It
-- costs a second's memory; tests take less than an hour.
local slack = 1000
if now == '' then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
else
  now, slack = now + 0, 3600000
end

-- Returns the reply of a command; nil if there is no value, or one of another type.
local function read(command, key, place)
  local reply
  if place then reply = pcall(command, key, place) else reply = pcall(command, key) end
  if type(reply) == 'table' then
    if string.find(reply.err, 'WRONGTYPE', 1, true) then return nil end
    -- Repeat it for the original error of the server.
    if place then return call(command, key, place) end
    return call(command, key)
  end
  return reply or nil
end

-- Returns the ms to keep a value that is valid until idle_at; nil for no expiry.
local function kept_ms(idle_at)
  local us = max(idle_at - now, 0)
  if us > LONGEST_US then return nil end
  return math.ceil(us / 1000) + slack
end

local function write(key, value, idle_at)
  local ms = kept_ms(idle_at)
  if ms then return call('SET', key, value, 'PX', ms) end
  return call('SET', key, value)
end
