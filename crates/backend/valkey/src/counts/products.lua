-- Products, which may exceed the exact range of a double: wide numbers, as two values `high, low`.
-- Below 2^53 that is 0 and the number; from there on high * 2^32 + low, with low below 2^32. Each
-- number has one such form, so comparing high first compares them.

-- Multiplies a below 2^53 by b below 2^32.
local function product(a, b)
  -- A product of at least 2^53 remains so after rounding.
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
