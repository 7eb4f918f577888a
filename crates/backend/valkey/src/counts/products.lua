-- Products, which may be larger than what a double keeps exact: wide numbers, as two values
-- `high, low`. Below 2^53 that is 0 and the number; from there on high * 2^32 + low, with low below
-- 2^32. Each number has one such form, so that comparing high first compares them.

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

local function less(a_high, a_low, b_high, b_low)
  return a_high < b_high or (a_high == b_high and a_low < b_low)
end
