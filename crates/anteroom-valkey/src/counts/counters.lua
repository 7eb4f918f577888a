-- Fixed windows (f), sliding windows (s) and both kinds of sub-windows (w): counters of one width each.
-- A value is the letter, how many counters there are, where the newest begins, and the counters, newest first; zeros
-- at the end are left out.
local COUNT_MAX = 4294967295

-- What is remembered, or nil.
local function stored_counters(text, letter, count)
  local found = numbers(text, letter)
  if not found or #found < 2 or found[1] < 1 or found[1] > 121 or #found > found[1] + 2 then
    return nil
  end
  if letter ~= 'w' and found[1] ~= count then return nil end
  local counts = {}
  for at = 1, found[1] do
    counts[at] = found[at + 2] or 0
    if counts[at] > COUNT_MAX then return nil end
  end
  return {starts_at = found[2], counts = counts}
end

local function counters_text(letter, state)
  local last = #state.counts
  while last > 0 and state.counts[last] == 0 do last = last - 1 end
  local text = {letter, #state.counts, digits(state.starts_at)}
  for at = 1, last do text[at + 3] = digits(state.counts[at]) end
  return table.concat(text, ' ')
end

-- The same in as many counters as there are now: all of it where the newest can be.
local function fitted_counters(state, count, width)
  local counts = {0}
  for at = 1, #state.counts do counts[1] = counts[1] + state.counts[at] end
  counts[1] = math.min(counts[1], COUNT_MAX)
  for at = 2, count do counts[at] = 0 end
  local old_width = whole(width * (count - 1), math.max(#state.counts - 1, 1))
  local last = state.starts_at + math.max(old_width - 1, 0)
  return {starts_at = last - last % width, counts = counts, is_fitted = true}
end

-- Makes room for counters that began since; returns how long ago the newest did.
local function move_on(state, width)
  local since = math.max(now - state.starts_at, 0)
  if since < width then return since end
  local elapsed = now % width
  local begun = whole(now, width) - whole(state.starts_at, width)
  for at = #state.counts, 1, -1 do state.counts[at] = state.counts[at - begun] or 0 end
  state.starts_at = now - elapsed
  return elapsed
end

-- Whether so many fit: whole + oldest * (width - elapsed) / width + asked <= limit, without a fraction.
local function counters_admit(state, asked, limit, width, is_falling, elapsed)
  local count, left = #state.counts, limit - asked
  for at = 1, is_falling and count - 1 or count do left = left - state.counts[at] end
  if left < 0 then return false end
  local oldest = is_falling and state.counts[count] or 0
  return not less(product(width, left), product(width - elapsed, oldest))
end

local function write_counters(key, letter, state, width)
  for at = 1, #state.counts do
    if state.counts[at] > 0 then
      local idle_at = state.starts_at + width * (#state.counts - at + 1)
      return write(key, counters_text(letter, state), idle_at)
    end
  end
  if state.is_fitted then
    redis.call('DEL', key)
  else
    write(key, counters_text(letter, state), now)
  end
end

local function counters(letter, key, cost, limit, width, count, is_falling)
  local state = stored_counters(read('GET', key), letter, count)
  local prior = state and counters_text(letter, state) or ''
  if not state then
    if cost < 0 then return true, prior end
    state = {starts_at = 0, counts = {}}
    for at = 1, count do state.counts[at] = 0 end
  elseif #state.counts ~= count then
    state = fitted_counters(state, count, width)
  end
  local elapsed = move_on(state, width)
  if cost < 0 then
    local back = -cost
    for at = 1, count do
      local undone = math.min(back, state.counts[at])
      state.counts[at] = state.counts[at] - undone
      back = back - undone
    end
  else
    local asked = math.max(cost, 1)
    if not counters_admit(state, asked, limit, width, is_falling == 1, elapsed) then
      return false, prior
    end
    state.counts[1] = state.counts[1] + cost
  end
  return true, prior, function() write_counters(key, letter, state, width) end
end
