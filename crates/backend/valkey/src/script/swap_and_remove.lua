
-- Writes a record if it has the version that was read, and removes the requests that it contains
-- now. Or else leaves a request and returns the current record, as a load does. A record that was
-- to end stays.
-- KEYS[1] the record, KEYS[2] the requests beside it.
-- ARGV[1] the most requests, ARGV[2] their lifetime in ms.
-- ARGV[3] expected version, '0' for no record.
-- ARGV[4] version to write, ARGV[5] value to write.
-- ARGV[6] number of requests to leave, 0 or 1: its name, its value. The names to remove follow.
local names = 7 + 2 * ARGV[6]
if (redis.call('HGET', KEYS[1], 'version') or '0') == ARGV[3] then
  redis.call('HSET', KEYS[1], 'version', ARGV[4], 'value', ARGV[5])
  if redis.call('HGET', KEYS[1], 'ends') then
    redis.call('HDEL', KEYS[1], 'ends')
    redis.call('PERSIST', KEYS[1])
  end
  if names <= #ARGV then
    redis.call('HDEL', KEYS[2], unpack(ARGV, names))
  end
  return 1
end
if ARGV[6] == '0' then
  return load(KEYS[1], leave(KEYS[2], ARGV[1], ARGV[2]))
end
return load(KEYS[1], leave(KEYS[2], ARGV[1], ARGV[2], ARGV[7], ARGV[8]))
