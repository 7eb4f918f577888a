-- Sliding log: a list of entries 'us requests total', oldest first, with the sum of all requests up
-- to and including the entry. The sums and the times allow binary search, so that no call reads a
-- log of 100,000 entries.

-- Formats a number: tostring would round it.
local function digits(number)
  return format('%.0f', number)
end

local function entry_of_text(text)
  local us, requests, total = match(text, '^(%d+) (%d+) (%d+)$')
  return {at = (us or 0) + 0, requests = (requests or 0) + 0, total = (total or 0) + 0}
end

-- Opens the log of a key; nil if there is none.
local function open_log(key)
  local newest = read('LINDEX', key, -1)
  if not newest then return nil end
  newest = entry_of_text(newest)
  if newest.requests == 0 then return nil end
  local log = {key = key, length = call('LLEN', key), newest = newest}
  -- Entries are cached, as successive searches visit the same ones.
  local known = {[log.length - 1] = newest}
  function log.entry(at)
    if not known[at] then known[at] = entry_of_text(call('LINDEX', key, at)) end
    return known[at]
  end
  return log
end

-- Returns the first entry, from `from` on, for which `holds`; it holds for the last one, and for
-- all after one for which it does. One near the beginning takes few steps.
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

-- Finds the entries that count now: their start, the sum before them, and their sum. A clock that
-- was set back counts as standing still.
local function count_log(log, window)
  local at = max(now, log.newest.at)
  if at - log.newest.at >= window then
    log.from, log.before, log.sum = log.length, log.newest.total, 0
    return
  end
  local from, oldest = first_entry(log, 0, function(entry) return at - entry.at < window end)
  log.from, log.before = from, oldest.total - oldest.requests
  log.sum = log.newest.total - log.before
end

-- Returns the entry at which the running sum reaches `requests`.
local function entry_of(log, requests)
  return first_entry(log, log.from, function(entry) return entry.total - log.before >= requests end)
end

-- Returns a short log that yields the same decision: its newest entry, the one that must expire
-- before the request fits, and the one that would be the newest after a refund.
local function log_text(log, needed, limit, amount)
  if log.sum == 0 then return '' end
  local points = {{at = log.newest.at, total = log.sum}}
  if log.sum + needed > limit and needed <= limit then
    local _, entry = entry_of(log, log.sum + needed - limit)
    points[#points + 1] = {at = entry.at, total = entry.total - log.before}
  end
  if amount > 0 and amount < log.sum then
    local _, entry = entry_of(log, log.sum - amount)
    points[#points + 1] = {at = entry.at, total = log.sum - amount}
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
  return table.concat({digits(entry.at), digits(entry.requests), digits(entry.total)}, ' ')
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
    call('RPUSH', log.key, entry_text({at = at, requests = taken, total = taken}))
  else
    if log.from > 0 then call('LTRIM', log.key, log.from, -1) end
    if newest.at == at then
      newest.requests, newest.total = newest.requests + taken, newest.total + taken
      call('LSET', log.key, -1, entry_text(newest))
    else
      local entry = {at = at, requests = taken, total = newest.total + taken}
      call('RPUSH', log.key, entry_text(entry))
    end
  end
  keep_log(log, at, window)
end

local function refund_log(log, amount, window)
  if amount >= log.sum then
    call('DEL', log.key)
    return
  end
  local total = log.before + log.sum - amount
  local at, entry = entry_of(log, log.sum - amount)
  call('LTRIM', log.key, log.from, at)
  entry.requests, entry.total = entry.requests - (entry.total - total), total
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
  local needed, amount = max(cost, 1), max(-cost, 0)
  local prior = log_text(log, needed, limit, amount)
  if cost < 0 then
    return true, prior, function() refund_log(log, amount, window) end
  end
  if log.sum + needed > limit then return false, prior end
  return true, prior, function() append_to_log(log, cost, window) end
end
