-- Fixed windows, sliding windows and sub-windows: how many calls are left, and what is written if so many are lent.
local function lender(text, letter, limit, width, count, is_falling)
  local state = {starts_at = 0, counts = {}}
  if text == '' then
    for at = 1, count do state.counts[at] = 0 end
  else
    state = stored_counters(text, letter, count)
    if not state or #state.counts ~= count then return nil end
  end
  local elapsed, left = move_on(state, width), limit
  for at = 1, count - is_falling do left = left - state.counts[at] end
  if is_falling == 1 then
    local falling, rest = divide(product(width - elapsed, state.counts[count]), width)
    left = left - falling - (rest > 0 and 1 or 0)
  end
  return math.max(left, 0), function(held)
    state.counts[1] = state.counts[1] + held
    return counters_text(letter, state), state.starts_at + width * count
  end
end
