-- Writes rows of a part of a room's history, and returns the sizes of all its parts: name, bytes,
-- name, bytes ...
-- KEYS[1] the part, KEYS[2] the sizes of all parts.
-- ARGV[1] name of the part, ARGV[2] its lifetime in ms, ARGV[3] that of the sizes in ms,
-- ARGV[4] bytes that a row counts besides, ARGV[5] name of a row, ARGV[6] the row, and so on.
local more = 0
for at = 5, #ARGV, 2 do
  local before = redis.call('HGET', KEYS[1], ARGV[at])
  if before then
    more = more - #before
  else
    more = more + ARGV[4]
  end
  redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  more = more + #ARGV[at + 1]
end
local size = (redis.call('HGET', KEYS[2], ARGV[1]) or 0) + more
redis.call('HSET', KEYS[2], ARGV[1], string.format('%.0f', size))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return redis.call('HGETALL', KEYS[2])
