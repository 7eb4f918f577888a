-- Sliding log: remaining requests, and the state after a grant. A log is one text here, unlike the
-- list of the request counts. It is read completely each time, so a longer one is left to the node.
local LOG_MOST = 4096
local CALLS_MAX = 4294967295

-- Returns the entries that count now, and the time of a new one; nil if the text is invalid.
local function stored_log(text, window)
  local entries, newest_at = {}, 0
  if text ~= '' then
    if #text > LOG_MOST or not match(text, '^d[%d ]+$') then return nil end
    local size = 1
    for after, requests in string.gmatch(text, ' (%d+) (%d+)') do
      size, newest_at, requests = size + 2 + #after + #requests, newest_at + after, requests + 0
      if requests < 1 or requests > CALLS_MAX then return nil end
      entries[#entries + 1] = {at = newest_at, requests = requests}
    end
    -- Unpaired numbers and double spaces would be skipped silently.
    if #entries == 0 or size ~= #text or newest_at >= EXACT then return nil end
  end
  -- Grants under another limit may count as later than now.
  local at, live = max(now, newest_at), {}
  for _, entry in ipairs(entries) do
    if at - entry.at < window then live[#live + 1] = entry end
  end
  return live, at
end

local function remaining_of(_, text, limit, window)
  local live = stored_log(text, window)
  if not live then return nil end
  local left = limit
  for _, entry in ipairs(live) do left = left - entry.requests end
  return max(left, 0)
end

local function acquire(_, text, granted, _, window)
  local live, at = stored_log(text, window)
  local newest = live[#live]
  if newest and newest.at == at then
    newest.requests = newest.requests + granted
  else
    live[#live + 1] = {at = at, requests = granted}
  end
  local state, before = {'d'}, 0
  for _, entry in ipairs(live) do
    state[#state + 1] = format('%.0f %.0f', entry.at - before, entry.requests)
    before = entry.at
  end
  return true, text, table.concat(state, ' '), at + window
end
