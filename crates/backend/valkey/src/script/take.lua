-- Returns the next number of a counter, starting with 0.
-- KEYS[1] the counter, ARGV[1] its lifetime in ms.
local taken = redis.call('INCR', KEYS[1])
if taken == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return taken - 1
