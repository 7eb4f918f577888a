-- Removes parts of a room's history.
-- KEYS[1] the sizes of all parts, KEYS[2] and so on the parts; ARGV[1] and so on their names.
for at = 2, #KEYS do
  -- It is gone at once.
  redis.call('PEXPIRE', KEYS[at], 0)
end
return redis.call('HDEL', KEYS[1], unpack(ARGV))
