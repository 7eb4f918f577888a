-- Sliding log: how many calls are left, and what is written if so many are lent. A log is one text
-- here, and a list of its own where calls are counted. It is read from end to end each time, so one
-- that is longer than this is left to the node.
local LOG_MOST = 4096
local CALLS_MAX = 4294967295

-- Entries that count now, all of them of which the last is the newest, and when the next one would
-- be; nil if they cannot be read.
local function stored_log(text, window)
  local entries, newest_at = {}, 0
  if text ~= '' then
    if #text > LOG_MOST or not match(text, '^d[%d ]+$') then return nil end
    local size = 1
    for after, calls in string.gmatch(text, ' (%d+) (%d+)') do
      size, newest_at, calls = size + 2 + #after + #calls, newest_at + after, calls + 0
      if calls < 1 or calls > CALLS_MAX then return nil end
      entries[#entries + 1] = {at = newest_at, calls = calls}
    end
    -- What has no partner, or more than one space before it, would be passed over.
    if #entries == 0 or size ~= #text or newest_at >= EXACT then return nil end
  end
  -- What another limit lent may count as lent later than now.
  local at, live = max(now, newest_at), {}
  for _, entry in ipairs(entries) do
    if at - entry.at < window then live[#live + 1] = entry end
  end
  return live, at
end

local function calls_left(_, text, limit, window)
  local live = stored_log(text, window)
  if not live then return nil end
  local left = limit
  for _, entry in ipairs(live) do left = left - entry.calls end
  return max(left, 0)
end

local function charged(_, text, held, _, window)
  local live, at = stored_log(text, window)
  local newest = live[#live]
  if newest and newest.at == at then
    newest.calls = newest.calls + held
  else
    live[#live + 1] = {at = at, calls = held}
  end
  local state, before = {'d'}, 0
  for _, entry in ipairs(live) do
    state[#state + 1] = format('%.0f %.0f', entry.at - before, entry.calls)
    before = entry.at
  end
  return true, text, table.concat(state, ' '), at + window
end
