-- What all algorithms need: exact numbers, and values by their key.
--
-- KEYS[i] what is remembered of one client by one limit.
-- ARGV[1] the time in us, '' for the server's own. ARGV[2] for how many ms more than needed a value is kept.
-- ARGV[3] '1' to charge, '0' to say only what would become of it. After these seven for each key: algorithm,
-- cost (0 to peek, below zero to refund), calls, window in us, and three more of the algorithm.
--
-- All of this runs for every call: what is defined here and never used costs, too. So a call is sent the text of those
-- algorithms that it needs; functions of the server are locals; and what is one number is not put into a table.
--
-- Numbers here are doubles, whole and exact below 2^53: times and windows in us are, and so are calls. There rounding
-- down and % are exact too: a / b is rounded by less than the 1 / b that it is from the next whole number. Products
-- may be larger, and are wide numbers: two values, `high, low`. Below 2^53 that is 0 and the number; from there on
-- high * 2^32 + low, with low below 2^32. Each number has one such form, so that comparing high first compares them.
local WORD, HALF, EXACT = 4294967296, 65536, 9007199254740992
-- 142 years. Whoever is remembered for longer is not forgotten.
local LONGEST_US = 4503599627370496
local call, floor, max, min = redis.call, math.floor, math.max, math.min
local format, match = string.format, string.match

-- One for each way of counting, as far as this text has it: a function of the letter of the algorithm, what is
-- remembered, the cost and the settings. It returns whether that admits, what was remembered if it could be read (''
-- if not), and, if something is to be written, what ('' if it is to be deleted) and until when that says anything.
local counters, paced, token_bucket
-- The same of a log, which is a list: a function of its key instead. It returns a function that writes.
local sliding_log

local now, slack = ARGV[1], ARGV[2] + 0
if now == '' then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
else
  now = now + 0
end

-- a below 2^53 times b below 2^32.
local function product(a, b)
  -- What is not below 2^53 is not after rounding either.
  local plain = a * b
  if plain < EXACT then return 0, plain end
  local low, b_low = a % WORD, b % HALF
  local middle = low * floor(b / HALF)
  local sum = low * b_low + (middle % HALF) * HALF
  return floor(a / WORD) * b + floor(middle / HALF) + floor(sum / WORD), sum % WORD
end

-- A wide number and a usual one.
local function plus(high, low, number)
  local plain = low + number
  if high == 0 and plain < EXACT then return 0, plain end
  if high == 0 then high, low = floor(low / WORD), low % WORD end
  low = low + number % WORD
  return high + floor(number / WORD) + floor(low / WORD), low % WORD
end

local function less(a_high, a_low, b_high, b_low)
  return a_high < b_high or (a_high == b_high and a_low < b_low)
end

-- a - b, of wide numbers; zero if b is larger.
local function minus(a_high, a_low, b_high, b_low)
  if less(a_high, a_low, b_high, b_low) then return 0, 0 end
  if a_high == 0 then return 0, a_low - b_low end
  if b_high == 0 then b_high, b_low = floor(b_low / WORD), b_low % WORD end
  local high, low = a_high - b_high, a_low - b_low
  if low < 0 then high, low = high - 1, low + WORD end
  local plain = high * WORD + low
  if plain < EXACT then return 0, plain end
  return high, low
end

-- A wide number by one below 2^45, a byte at a time so that no remainder grows too large: quotient (which is exact
-- below 2^53, and large above) and remainder.
local function divide(high, low, by)
  if high == 0 then return floor(low / by), low % by end
  local quotient, rest = floor(high / by), high % by
  local unit = 16777216
  for _ = 1, 4 do
    local byte = floor(low / unit)
    low = low - byte * unit
    unit = unit / 256
    local sum = rest * 256 + byte
    quotient, rest = quotient * 256 + floor(sum / by), sum % by
  end
  return quotient, rest
end

-- What a command answers; nil if something of another kind is there.
local function read(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if type(answer) == 'table' and answer.err then
    if string.find(answer.err, 'WRONGTYPE', 1, true) then return nil end
    -- Once more, for the error as the server words it.
    return call(command, key, ...)
  end
  return answer or nil
end

-- For how many ms a value is kept that says nothing any more from idle_at on; nil if for ever.
local function kept_ms(idle_at)
  local us = max(idle_at - now, 0)
  if us > LONGEST_US then return nil end
  return math.ceil(us / 1000) + slack
end
