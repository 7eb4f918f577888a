-- What all algorithms need: exact numbers, and values by their key.
--
-- ARGV[1] the time in us, '' for the server's own; a test brings it along, and values are kept for
-- longer then. What else is asked, the last part of a text says.
--
-- All of this runs for every call: what is defined here and never used costs, too. So a call is
-- sent the text of those algorithms that it needs; functions of the server are locals; and what is
-- one number is not put into a table.
--
-- Numbers here are doubles, whole and exact below 2^53: times and windows in us are, and so are
-- calls. There rounding down and % are exact too: a / b is rounded by less than the 1 / b that it
-- is from the next whole number.
local WORD, HALF, EXACT = 4294967296, 65536, 9007199254740992
-- 142 years. Whoever is remembered for longer is not forgotten.
local LONGEST_US = 4503599627370496
local call, pcall = redis.call, redis.pcall
local floor, max, min = math.floor, math.max, math.min
local format, match = string.format, string.match

-- One for each way of counting, as far as this text has it: a function of the letter of the
-- algorithm, what is remembered, the cost and the settings. It returns whether that admits, what
-- was remembered if it could be read ('' if not), and, if something is to be written, what ('' if
-- it is to be deleted) and until when that says anything.
local counters, paced, token_bucket
-- The same of a log, which is a list: a function of its key instead. It returns a function that
-- writes.
local sliding_log

local now = ARGV[1]
-- For how many ms more than needed a value is kept: the server rounds, and its clock may be set a
-- little. It costs a second's memory; tests take less than an hour.
local slack = 1000
if now == '' then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
else
  now, slack = now + 0, 3600000
end

-- What a command answers; nil if there is nothing, or something of another kind.
local function read(command, key, place)
  local answer
  if place then answer = pcall(command, key, place) else answer = pcall(command, key) end
  if type(answer) == 'table' then
    if string.find(answer.err, 'WRONGTYPE', 1, true) then return nil end
    -- Once more, for the error as the server words it.
    if place then return call(command, key, place) end
    return call(command, key)
  end
  return answer or nil
end

-- For how many ms a value is kept that says nothing any more from idle_at on; nil if for ever.
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
