-- Writes a record if it has the version that was read, or else returns the current one, as a load
-- does. A record that was to end stays.
-- KEYS[1] the record.
-- ARGV[1] expected version, '0' for no record.
-- ARGV[2] version to write, ARGV[3] value to write.
if (redis.call('HGET', KEYS[1], 'version') or '0') == ARGV[1] then
  redis.call('HSET', KEYS[1], 'version', ARGV[2], 'value', ARGV[3])
  if redis.call('HGET', KEYS[1], 'ends') then
    redis.call('HDEL', KEYS[1], 'ends')
    redis.call('PERSIST', KEYS[1])
  end
  return 1
end
local record = redis.call('HMGET', KEYS[1], 'version', 'value')
local time = redis.call('TIME')
return {record[1], record[2], time[1], time[2]}
