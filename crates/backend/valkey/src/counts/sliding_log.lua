-- Sliding log: a list of entries 'us calls total', oldest first, with the sum of all calls up to
-- and with it. By these sums and by time entries are found by halves, so that no call reads a log
-- of 100,000 entries.

-- A number as text: tostring would round it.
local function digits(number)
  return format('%.0f', number)
end

local function entry_of_text(text)
  local us, calls, total = match(text, '^(%d+) (%d+) (%d+)$')
  return {at = (us or 0) + 0, calls = (calls or 0) + 0, total = (total or 0) + 0}
end

-- What is remembered, or nil.
local function open_log(key)
  local newest = read('LINDEX', key, -1)
  if not newest then return nil end
  newest = entry_of_text(newest)
  if newest.calls == 0 then return nil end
  local log = {key = key, length = call('LLEN', key), newest = newest}
  -- Each is read once: those who look for one entry after the other pass by the same ones.
  local known = {[log.length - 1] = newest}
  function log.entry(at)
    if not known[at] then known[at] = entry_of_text(call('LINDEX', key, at)) end
    return known[at]
  end
  return log
end

-- The first entry, from `from` on, for which `holds`; it holds for the last one, and for all after
-- one for which it does. Near the beginning it is found in few steps.
local function first_entry(log, from, holds)
  local step, last = 1, log.length - 1
  local below, above = from - 1, from
  while above < last and not holds(log.entry(above)) do
    below, above, step = above, math.min(above + step, last), step * 2
  end
  while above - below > 1 do
    local middle = floor((above + below) / 2)
    if holds(log.entry(middle)) then above = middle else below = middle end
  end
  return above, log.entry(above)
end

-- What of it counts now: where that begins, what was before, and the sum. A clock that went back
-- stands still.
local function count_log(log, window)
  local at = max(now, log.newest.at)
  if at - log.newest.at >= window then
    log.from, log.before, log.sum = log.length, log.newest.total, 0
    return
  end
  local from, oldest = first_entry(log, 0, function(entry) return at - entry.at < window end)
  log.from, log.before = from, oldest.total - oldest.calls
  log.sum = log.newest.total - log.before
end

-- The entry with the call that makes so many of what counts.
local function entry_of(log, calls)
  return first_entry(log, log.from, function(entry) return entry.total - log.before >= calls end)
end

-- A log of few entries that stands as this one does, for whoever judges the same call: its newest
-- entry, the one that must be over before so many fit, and the one that would be the newest after a
-- refund.
local function log_text(log, asked, limit, back)
  if log.sum == 0 then return '' end
  local points = {{at = log.newest.at, total = log.sum}}
  if log.sum + asked > limit and asked <= limit then
    local _, entry = entry_of(log, log.sum + asked - limit)
    points[#points + 1] = {at = entry.at, total = entry.total - log.before}
  end
  if back > 0 and back < log.sum then
    local _, entry = entry_of(log, log.sum - back)
    points[#points + 1] = {at = entry.at, total = log.sum - back}
  end
  table.sort(points, function(a, b) return a.total < b.total end)
  local text, total = {'e'}, 0
  for _, point in ipairs(points) do
    if point.total > total then
      text[#text + 1] = digits(point.at) .. ' ' .. digits(point.total - total)
      total = point.total
    end
  end
  return table.concat(text, ' ')
end

local function entry_text(entry)
  return table.concat({digits(entry.at), digits(entry.calls), digits(entry.total)}, ' ')
end

local function keep_log(log, newest_at, window)
  local ms = kept_ms(newest_at + window)
  if ms then
    call('PEXPIRE', log.key, ms)
  else
    call('PERSIST', log.key)
  end
end

local function append_to_log(log, taken, window)
  local newest = log.newest
  local at = max(now, newest.at)
  if log.sum == 0 then
    call('DEL', log.key)
    call('RPUSH', log.key, entry_text({at = at, calls = taken, total = taken}))
  else
    if log.from > 0 then call('LTRIM', log.key, log.from, -1) end
    if newest.at == at then
      newest.calls, newest.total = newest.calls + taken, newest.total + taken
      call('LSET', log.key, -1, entry_text(newest))
    else
      local entry = {at = at, calls = taken, total = newest.total + taken}
      call('RPUSH', log.key, entry_text(entry))
    end
  end
  keep_log(log, at, window)
end

local function refund_log(log, back, window)
  if back >= log.sum then
    call('DEL', log.key)
    return
  end
  local total = log.before + log.sum - back
  local at, entry = entry_of(log, log.sum - back)
  call('LTRIM', log.key, log.from, at)
  entry.calls, entry.total = entry.calls - (entry.total - total), total
  call('LSET', log.key, -1, entry_text(entry))
  keep_log(log, entry.at, window)
end

function sliding_log(key, cost, limit, window)
  local log = open_log(key)
  if log then
    count_log(log, window)
  elseif cost < 0 then
    return true, ''
  else
    log = {key = key, newest = {at = 0}, sum = 0}
  end
  local asked, back = max(cost, 1), max(-cost, 0)
  local prior = log_text(log, asked, limit, back)
  if cost < 0 then
    return true, prior, function() refund_log(log, back, window) end
  end
  if log.sum + asked > limit then return false, prior end
  return true, prior, function() append_to_log(log, cost, window) end
end
