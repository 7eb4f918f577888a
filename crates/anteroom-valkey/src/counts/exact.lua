-- What all algorithms need: exact numbers, and values by their key.
--
-- KEYS[i] what is remembered of one client by one limit.
-- ARGV[1] the time in us, '' for the server's own. ARGV[2] for how many ms more than needed a value is kept.
-- ARGV[3] '1' to charge, '0' to say only what would become of it. After these seven for each key: algorithm,
-- cost (0 to peek, below zero to refund), calls, window in us, and three more of the algorithm.
--
-- Numbers here are doubles, whole and exact below 2^53: times and windows in us are, and so are calls. There rounding
-- down and % are exact too: a / b is rounded by less than the 1 / b that it is from the next whole number. Products
-- are kept as wide numbers {high, low}, which are high * 2^32 + low.
local WORD, HALF, EXACT = 4294967296, 65536, 9007199254740992
-- 142 years. Whoever is remembered for longer is not forgotten.
local LONGEST_US = 4503599627370496

local now, slack = ARGV[1], tonumber(ARGV[2])
if now == '' then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
else
  now = tonumber(now)
end

-- A number as text: tostring would round it.
local function digits(number)
  return string.format('%.0f', number)
end

-- a / b rounded down.
local function whole(a, b)
  return math.floor(a / b)
end

-- a below 2^53 times b below 2^32.
local function product(a, b)
  local low, b_low = a % WORD, b % HALF
  local middle = low * whole(b, HALF)
  local sum = low * b_low + (middle % HALF) * HALF
  return {whole(a, WORD) * b + whole(middle, HALF) + whole(sum, WORD), sum % WORD}
end

-- A wide number and a usual one.
local function plus(wide, number)
  local low = wide[2] + number % WORD
  return {wide[1] + whole(number, WORD) + whole(low, WORD), low % WORD}
end

local function less(a, b)
  return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2])
end

-- a - b, of wide numbers; zero if b is larger.
local function minus(a, b)
  if less(a, b) then return {0, 0} end
  local low = a[2] - b[2]
  if low < 0 then return {a[1] - b[1] - 1, low + WORD} end
  return {a[1] - b[1], low}
end

-- A wide number by one below 2^45, a byte at a time so that no remainder grows too large: quotient (which is exact
-- below 2^53, and large above) and remainder.
local function divide(wide, by)
  local quotient, rest = whole(wide[1], by), wide[1] % by
  local low, unit = wide[2], 16777216
  for _ = 1, 4 do
    local byte = whole(low, unit)
    low = low - byte * unit
    unit = unit / 256
    local sum = rest * 256 + byte
    quotient, rest = quotient * 256 + whole(sum, by), sum % by
  end
  return quotient, rest
end

-- What a command answers; nil if something of another kind is there.
local function read(command, key, ...)
  local answer = redis.pcall(command, key, ...)
  if type(answer) == 'table' and answer.err then
    if string.find(answer.err, 'WRONGTYPE', 1, true) then return nil end
    -- Once more, for the error as the server words it.
    return redis.call(command, key, ...)
  end
  return answer or nil
end

-- The numbers of a text such as 'g 17 3', if it begins with this letter and has nothing but numbers.
local function numbers(text, letter)
  if not text or string.sub(text, 1, 2) ~= letter .. ' ' or string.find(text, '[^%d ]', 3) then
    return nil
  end
  local found = {}
  for one in string.gmatch(text, '%d+') do
    found[#found + 1] = tonumber(one)
    if found[#found] >= EXACT then return nil end
  end
  return found
end

-- For how many ms a value is kept that says nothing any more from idle_at on; nil if for ever.
local function kept_ms(idle_at)
  local us = math.max(idle_at - now, 0)
  if us > LONGEST_US then return nil end
  return digits(math.ceil(us / 1000) + slack)
end

local function write(key, text, idle_at)
  local ms = kept_ms(idle_at)
  if ms then
    redis.call('SET', key, text, 'PX', ms)
  else
    redis.call('SET', key, text)
  end
end
