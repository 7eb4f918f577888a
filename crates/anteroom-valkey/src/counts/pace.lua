-- GCRA (g) and leaky bucket (l): one point in time, {us, fraction}, whose fraction has as many parts as the limit has
-- calls. A value is the letter and both.

local function stored_point(text, letter)
  local found = numbers(text, letter)
  if not found or #found ~= 2 or found[2] >= WORD then return nil end
  return found
end

-- As it is read by a rate that has fewer parts.
local function read_point(point, calls)
  if point[2] == 0 or point[2] < calls then return point end
  return {point[1] + 1, 0}
end

-- How many parts it lies ahead of now.
local function ahead_of_now(point, calls)
  if point[1] < now then return {0, 0} end
  return plus(product(point[1] - now, calls), point[2])
end

local function later(point, parts, calls)
  local us, fraction = divide(plus(parts, point[2]), calls)
  return {point[1] + us, fraction}
end

-- Charged from now on, or after what was charged before.
local function charged(point, taken, calls, window)
  if point[1] < now then point = {now, 0} end
  return later(point, product(window, taken), calls)
end

local function refunded(point, back, calls, window)
  local ahead = ahead_of_now(point, calls)
  if calls == 0 or (ahead[1] == 0 and ahead[2] == 0) then return point end
  return later({now, 0}, minus(ahead, product(window, back)), calls)
end

-- A call that counts `asked` goes through if what was charged lies no more than `calls_ahead(asked)` calls ahead;
-- never if that is nil.
local function paced(letter, key, cost, calls, window, calls_ahead)
  local stored = stored_point(read('GET', key), letter)
  local prior = stored and table.concat({letter, digits(stored[1]), digits(stored[2])}, ' ') or ''
  if not stored and cost < 0 then return true, prior end
  local point = read_point(stored or {0, 0}, calls)
  if cost < 0 then
    point = refunded(point, -cost, calls, window)
  else
    local may_be = calls_ahead(math.max(cost, 1))
    if not may_be or less(product(window, may_be), ahead_of_now(point, calls)) then
      return false, prior
    end
    if cost > 0 then point = charged(point, cost, calls, window) end
  end
  return true, prior, function()
    local text = table.concat({letter, digits(point[1]), digits(point[2])}, ' ')
    write(key, text, point[1] + (point[2] > 0 and 1 or 0))
  end
end

local function gcra(letter, key, cost, calls, window, burst)
  return paced(letter, key, cost, calls, window, function(asked)
    return calls > 0 and asked <= burst and burst - asked or nil
  end)
end

local function leaky_bucket(letter, key, cost, calls, window, queue)
  return paced(letter, key, cost, calls, window, function(asked)
    return asked <= calls and queue or nil
  end)
end
