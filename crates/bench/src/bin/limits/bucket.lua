local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local bucket = redis.call('HMGET', KEYS[1], 'n', 't')
local tokens = tonumber(bucket[1]) or 1e9
local at = tonumber(bucket[2]) or now
tokens = math.min(1e9, tokens + (now - at) * 1e6)
local is_allowed = tokens >= 1
if is_allowed then
    tokens = tokens - 1
end
redis.call('HSET', KEYS[1], 'n', tokens, 't', now)
redis.call('PEXPIRE', KEYS[1], 60000)
return is_allowed and 1 or 0
