-- Sliding log: how many calls are left, and what is written if so many are lent. A log is read from end to end each time,
-- so one that is longer than this is left to the node.
local LOG_MOST = 4096

local function lender(text, letter, limit, window)
  local entries, newest_at = {}, 0
  if text ~= '' then
    local found = #text <= LOG_MOST and numbers(text, letter)
    if not found or #found % 2 ~= 0 then return nil end
    for n = 1, #found, 2 do
      newest_at = newest_at + found[n]
      entries[#entries + 1] = {at = newest_at, calls = found[n + 1]}
    end
  end
  -- What another limit lent may count as lent later than now.
  local at, from, left = math.max(now, newest_at), 1, limit
  while entries[from] and at - entries[from].at >= window do from = from + 1 end
  for n = from, #entries do left = left - entries[n].calls end
  return math.max(left, 0), function(held)
    local newest = entries[#entries]
    if newest and newest.at == at then
      newest.calls = newest.calls + held
    else
      entries[#entries + 1] = {at = at, calls = held}
    end
    local state, before = {letter}, 0
    for n = from, #entries do
      state[#state + 1] = digits(entries[n].at - before)
      state[#state + 1] = digits(entries[n].calls)
      before = entries[n].at
    end
    return table.concat(state, ' '), at + window
  end
end
