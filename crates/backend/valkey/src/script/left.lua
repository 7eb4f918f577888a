-- Requests that writers left beside a record, for any of them to apply.

-- Leaves a request, if there is one and there are fewer than `most`. Returns all requests: a name,
-- its value, the next name.
local function leave(requests, most, ttl_ms, name, value)
  local left = redis.call('HGETALL', requests)
  if name and #left < 2 * most then
    redis.call('HSET', requests, name, value)
    redis.call('PEXPIRE', requests, ttl_ms)
    left[#left + 1], left[#left + 2] = name, value
  end
  return left
end

-- Returns a record, the clock of the same server, and the requests beside the record.
local function load(record, left)
  local found = redis.call('HMGET', record, 'version', 'value')
  local time = redis.call('TIME')
  return {found[1], found[2], time[1], time[2], left}
end
