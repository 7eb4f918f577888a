-- Charges all keys, or none of them. Answers the time, and for each key whether it admits and what was remembered there
-- before ('' for nothing), so that whoever asks can tell the caller the rest.

local function judge(key, at)
  local letter, cost, calls, window = ARGV[at], ARGV[at + 1] + 0, ARGV[at + 2] + 0, ARGV[at + 3] + 0
  if letter == 'e' then return sliding_log(key, cost, calls, window) end
  local by = counters
  if letter == 'g' or letter == 'l' then by = paced elseif letter == 't' then by = token_bucket end
  local text = read('GET', key) or ''
  return by(letter, text, cost, calls, window, ARGV[at + 4] + 0, ARGV[at + 5] + 0, ARGV[at + 6] + 0)
end

local function write(key, value, idle_at)
  if not idle_at then return value() end
  if value == '' then return call('DEL', key) end
  local ms = kept_ms(idle_at)
  if ms then return call('SET', key, value, 'PX', ms) end
  return call('SET', key, value)
end

local answer, values, ends, all = {now}, {}, {}, true
for at = 1, #KEYS do
  local admits, prior, value, idle_at = judge(KEYS[at], at * 7 - 3)
  all = all and admits
  answer[at * 2], answer[at * 2 + 1] = admits and 1 or 0, prior
  values[at], ends[at] = value, idle_at
end
if all and ARGV[3] == '1' then
  for at = 1, #KEYS do
    -- Whoever peeks changes nothing.
    if values[at] and ARGV[at * 7 - 2] ~= '0' then write(KEYS[at], values[at], ends[at]) end
  end
end
return answer
