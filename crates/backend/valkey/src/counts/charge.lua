-- Charges all keys, or none of them. Answers the time, and for each key whether it admits and what
-- was remembered there before ('' for nothing), so that whoever asks can tell the caller the rest.
-- KEYS[i] what is remembered of one client by one limit.
-- ARGV[2] '1' to charge, '0' to say only what would become of it. After these for each key:
-- algorithm, cost (0 to peek, below zero to refund), calls, window in us, and what else the
-- algorithm has (see `judge`).

-- Which argument is the next.
local at = 3

local function judge(key)
  local letter, cost, calls, window = ARGV[at], ARGV[at + 1] + 0, ARGV[at + 2] + 0, ARGV[at + 3] + 0
  local first = at + 4
  if letter == 'e' then
    at = first
    return cost, sliding_log(key, cost, calls, window)
  end
  local text, one = read('GET', key) or '', ARGV[first] + 0
  if letter == 'g' or letter == 'l' then
    at = first + 1
    return cost, paced(letter, text, cost, calls, window, one)
  end
  local two = ARGV[first + 1] + 0
  if letter ~= 't' then
    at = first + 2
    return cost, counters(letter, text, cost, calls, window, one, two)
  end
  at = first + 3
  return cost, token_bucket(letter, text, cost, calls, window, one, two, ARGV[first + 2] + 0)
end

local function save(key, value, idle_at)
  if not idle_at then return value() end
  if value == '' then return call('DEL', key) end
  return write(key, value, idle_at)
end

local answer, writes, all = {now}, nil, true
for n = 1, #KEYS do
  local cost, admits, prior, value, idle_at = judge(KEYS[n])
  all = all and admits
  answer[n * 2], answer[n * 2 + 1] = admits and 1 or 0, prior
  -- Whoever peeks changes nothing.
  if value and cost ~= 0 and ARGV[2] == '1' then
    if n == #KEYS and not writes then
      -- The usual call, of one key.
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
return answer
