-- GCRA (g) and leaky bucket (l): a point in time in us and its fraction, which has as many parts as
-- the limit has requests. A value is the letter and both.

-- Returns the parts by which the point is ahead of now, as a wide number.
local function ahead_of_now(us, fraction, requests)
  if us < now then return 0, 0 end
  local high, low = product(us - now, requests)
  return plus(high, low, fraction)
end

-- Returns the point that is later by a wide number of parts.
local function later(us, fraction, requests, high, low)
  high, low = plus(high, low, fraction)
  local more, rest = divide(high, low, requests)
  return us + more, rest
end

local function refunded(us, fraction, amount, requests, window)
  local high, low = ahead_of_now(us, fraction, requests)
  if requests == 0 or (high == 0 and low == 0) then return us, fraction end
  return later(now, 0, requests, minus(high, low, product(window, amount)))
end

-- Decodes a value; nil if it is invalid.
local function stored_point(letter, text, requests)
  local kind, us, fraction = match(text, '^(%l) (%d+) (%d+)$')
  us, fraction = (us or 0) + 0, (fraction or 0) + 0
  if kind ~= letter or us >= EXACT or fraction >= WORD then return nil end
  -- The rate has fewer parts now.
  if fraction > 0 and fraction >= requests then return us + 1, 0 end
  return us, fraction
end

-- `burst` is the burst of a GCRA, and the queue of a leaky bucket.
function paced(letter, text, cost, requests, window, burst)
  local us, fraction = stored_point(letter, text, requests)
  if not us then
    if cost < 0 then return true, '' end
    text, us, fraction = '', 0, 0
  end
  if cost < 0 then
    us, fraction = refunded(us, fraction, -cost, requests, window)
  else
    -- A request is admitted if the point is at most this many requests ahead.
    local needed, may_be = max(cost, 1), burst
    if letter == 'g' then
      if requests == 0 then return false, text end
      may_be = burst - needed
    elseif needed > requests then
      return false, text
    end
    if may_be < 0 then return false, text end
    local high, low = product(window, may_be)
    if less(high, low, ahead_of_now(us, fraction, requests)) then return false, text end
    if us < now then us, fraction = now, 0 end
    us, fraction = later(us, fraction, requests, product(window, cost))
  end
  return true, text, format('%s %.0f %.0f', letter, us, fraction), us + min(fraction, 1)
end
