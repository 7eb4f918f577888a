-- GCRA (g) and leaky bucket (l): one point in time in us and its fraction, which has as many parts
-- as the limit has calls. A value is the letter and both.

-- How many parts the point lies ahead of now, as a wide number.
local function ahead_of_now(us, fraction, calls)
  if us < now then return 0, 0 end
  local high, low = product(us - now, calls)
  return plus(high, low, fraction)
end

-- A point so many parts, a wide number, later than another.
local function later(us, fraction, calls, high, low)
  high, low = plus(high, low, fraction)
  local more, rest = divide(high, low, calls)
  return us + more, rest
end

local function refunded(us, fraction, back, calls, window)
  local high, low = ahead_of_now(us, fraction, calls)
  if calls == 0 or (high == 0 and low == 0) then return us, fraction end
  return later(now, 0, calls, minus(high, low, product(window, back)))
end

-- What is remembered; nil if it cannot be read.
local function stored_point(letter, text, calls)
  local kind, us, fraction = match(text, '^(%l) (%d+) (%d+)$')
  us, fraction = (us or 0) + 0, (fraction or 0) + 0
  if kind ~= letter or us >= EXACT or fraction >= WORD then return nil end
  -- As it is read by a rate that has fewer parts.
  if fraction > 0 and fraction >= calls then return us + 1, 0 end
  return us, fraction
end

-- `burst` is the burst of a GCRA, and the queue of a leaky bucket.
function paced(letter, text, cost, calls, window, burst)
  local us, fraction = stored_point(letter, text, calls)
  if not us then
    if cost < 0 then return true, '' end
    text, us, fraction = '', 0, 0
  end
  if cost < 0 then
    us, fraction = refunded(us, fraction, -cost, calls, window)
  else
    -- A call goes through if what was charged lies no more than so many calls ahead.
    local asked, may_be = max(cost, 1), burst
    if letter == 'g' then
      if calls == 0 then return false, text end
      may_be = burst - asked
    elseif asked > calls then
      return false, text
    end
    if may_be < 0 then return false, text end
    local high, low = product(window, may_be)
    if less(high, low, ahead_of_now(us, fraction, calls)) then return false, text end
    if us < now then us, fraction = now, 0 end
    us, fraction = later(us, fraction, calls, product(window, cost))
  end
  return true, text, format('%s %.0f %.0f', letter, us, fraction), us + min(fraction, 1)
end
