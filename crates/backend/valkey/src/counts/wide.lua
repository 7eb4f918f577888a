-- Further arithmetic of wide numbers.

-- Adds a number to a wide number.
local function plus(high, low, number)
  local plain = low + number
  if high == 0 and plain < EXACT then return 0, plain end
  if high == 0 then high, low = floor(low / WORD), low % WORD end
  low = low + number % WORD
  return high + floor(number / WORD) + floor(low / WORD), low % WORD
end

-- Returns a - b, of wide numbers; zero if b is larger.
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

-- Divides a wide number by one below 2^45, a byte at a time so that no remainder grows too large.
-- Returns quotient (exact below 2^53, large above) and remainder.
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
