-- Fixed windows (f), sliding windows (s) and both kinds of sub-windows (w): counters of one width
-- each. A value is the letter, the number of counters, the start of the newest one, and the
-- counters, newest first; trailing zeros are omitted.
local COUNT_MAX = 4294967295

-- Decodes a value: all counters, the start of the newest one, and the text before the counters; nil
-- if it is invalid.
local function stored_counters(letter, text, count)
  local head, kind, many, starts_at, known = match(text, '^((%l) (%d+) (%d+))(.*)$')
  if kind ~= letter then return nil end
  many, starts_at = many + 0, starts_at + 0
  if many < 1 or many > 121 or starts_at >= EXACT or (many ~= count and letter ~= 'w') then
    return nil
  end
  local counts, found, size = {}, 0, 0
  for one in string.gmatch(known, ' (%d+)') do
    found, size = found + 1, size + 1 + #one
    counts[found] = one + 0
    if counts[found] > COUNT_MAX then return nil end
  end
  if found > many or size ~= #known then return nil end
  for at = found + 1, many do counts[at] = 0 end
  return counts, starts_at, head
end

-- Converts counters to the current number: all counts go to the newest possible one.
local function fitted_counters(old, starts_at, count, width)
  local counts = {0}
  for at = 1, #old do counts[1] = counts[1] + old[at] end
  counts[1] = min(counts[1], COUNT_MAX)
  for at = 2, count do counts[at] = 0 end
  local old_width = floor(width * (count - 1) / max(#old - 1, 1))
  local last = starts_at + max(old_width - 1, 0)
  return counts, last - last % width
end

-- Adds counters that began since; returns the start of the newest one, and the time since then.
local function move_on(counts, starts_at, width)
  local since = max(now - starts_at, 0)
  if since < width then return starts_at, since end
  local elapsed = now % width
  local begun = floor(now / width) - floor(starts_at / width)
  for at = #counts, 1, -1 do counts[at] = counts[at - begun] or 0 end
  return now - elapsed, elapsed
end

-- Returns whether the cost fits: whole + oldest * (width - elapsed) / width + needed <= limit,
-- without fractions.
local function counters_admit(counts, needed, limit, width, is_falling, elapsed)
  local count, left = #counts, limit - needed
  for at = 1, is_falling and count - 1 or count do left = left - counts[at] end
  if left < 0 then return false end
  local oldest = is_falling and counts[count] or 0
  if oldest == 0 then return true end
  local high, low = product(width, left)
  local oldest_high, oldest_low = product(width - elapsed, oldest)
  return not less(high, low, oldest_high, oldest_low)
end

local function refund_counters(counts, amount)
  for at = 1, #counts do
    local undone = min(amount, counts[at])
    counts[at] = counts[at] - undone
    amount = amount - undone
  end
end

-- Encodes the counters; returns the value and the end of its validity, nil if all are zero.
local function counters_value(head, counts, starts_at, width)
  local count, first = #counts, 1
  while counts[first] == 0 do first = first + 1 end
  if first > count then return head, nil end
  local last = count
  while counts[last] == 0 do last = last - 1 end
  -- Concatenation writes 14 digits of a number, and counters have ten at most.
  local value = head .. ' ' .. table.concat(counts, ' ', 1, last)
  return value, starts_at + width * (count - first + 1)
end

function counters(letter, text, cost, limit, width, count, is_falling)
  local counts, begun_at, head = stored_counters(letter, text, count)
  local prior, is_fitted = counts and text or '', false
  if not counts then
    if cost < 0 then return true, prior end
    counts, begun_at = {}, 0
    for at = 1, count do counts[at] = 0 end
  elseif #counts ~= count then
    counts, begun_at = fitted_counters(counts, begun_at, count, width)
    is_fitted = true
  end
  local starts_at, elapsed = move_on(counts, begun_at, width)
  if cost < 0 then
    refund_counters(counts, -cost)
  else
    if not counters_admit(counts, max(cost, 1), limit, width, is_falling == 1, elapsed) then
      return false, prior
    end
    counts[1] = counts[1] + cost
  end
  -- Mostly the newest counter is the same as before.
  if not head or is_fitted or starts_at ~= begun_at then
    head = format('%s %d %.0f', letter, count, starts_at)
  end
  local value, idle_at = counters_value(head, counts, starts_at, width)
  -- Converted counters that are all zero are deleted.
  if is_fitted and not idle_at then value = '' end
  return true, prior, value, idle_at or now
end
