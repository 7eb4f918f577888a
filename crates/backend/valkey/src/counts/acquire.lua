-- Acquires from all keys, or from none of them. Returns the time, and for each key whether it
-- admits and its prior state ('' for none), from which the caller computes the verdict.
-- KEYS[i] the state of one client of one limit.
-- ARGV[2] '1' to write, '0' to decide only. Then for each key: algorithm, cost (0 to peek, below
-- zero to refund), requests, window in us, and further settings of the algorithm (see `decide`).

-- Index of the next argument.
local at = 3

local function decide(key)
  local letter, cost = ARGV[at], ARGV[at + 1] + 0
  local requests, window = ARGV[at + 2] + 0, ARGV[at + 3] + 0
  local first = at + 4
  if letter == 'e' then
    at = first
    return cost, sliding_log(key, cost, requests, window)
  end
  local text, one = read('GET', key) or '', ARGV[first] + 0
  if letter == 'g' or letter == 'l' then
    at = first + 1
    return cost, paced(letter, text, cost, requests, window, one)
  end
  local two = ARGV[first + 1] + 0
  if letter ~= 't' then
    at = first + 2
    return cost, counters(letter, text, cost, requests, window, one, two)
  end
  at = first + 3
  return cost, token_bucket(letter, text, cost, requests, window, one, two, ARGV[first + 2] + 0)
end

local function save(key, value, idle_at)
  if not idle_at then return value() end
  if value == '' then return call('DEL', key) end
  return write(key, value, idle_at)
end

local reply, writes, all = {now}, nil, true
for n = 1, #KEYS do
  local cost, admits, prior, value, idle_at = decide(KEYS[n])
  all = all and admits
  reply[n * 2], reply[n * 2 + 1] = admits and 1 or 0, prior
  -- A peek changes nothing.
  if value and cost ~= 0 and ARGV[2] == '1' then
    if n == #KEYS and not writes then
      -- The usual case: one key.
      if all then save(KEYS[n], value, idle_at) end
    else
      writes = writes or {}
      writes[#writes + 1] = {KEYS[n], value, idle_at}
    end
  end
end
if all and writes then
  for _, one in ipairs(writes) do save(one[1], one[2], one[3]) end
end
return reply
