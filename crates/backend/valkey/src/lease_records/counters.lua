-- Fixed windows, sliding windows and sub-windows: remaining requests.
local function remaining_of(letter, text, limit, width, count, is_falling)
  local counts, starts_at = {}, 0
  if text == '' then
    for at = 1, count do counts[at] = 0 end
  else
    counts, starts_at = stored_counters(letter, text, count)
    if not counts or #counts ~= count then return nil end
  end
  local _, elapsed = move_on(counts, starts_at, width)
  local left = limit
  for at = 1, count - is_falling do left = left - counts[at] end
  if is_falling == 1 then
    local high, low = product(width - elapsed, counts[count])
    local falling, rest = divide(high, low, width)
    left = left - falling - (rest > 0 and 1 or 0)
  end
  return max(left, 0)
end

local acquire = counters
