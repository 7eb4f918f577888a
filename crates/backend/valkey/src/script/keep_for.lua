-- Lets a record end, and writes it before if there is none. Returns 1 if there is a record now.
-- KEYS[1] the record, ARGV[1] its lifetime in ms, ARGV[2] value to write; missing for none.
if not redis.call('HGET', KEYS[1], 'version') then
  if not ARGV[2] then
    return 0
  end
  redis.call('HSET', KEYS[1], 'version', '1', 'value', ARGV[2])
end
-- A swap reads this, and lets the record stay.
redis.call('HSET', KEYS[1], 'ends', '1')
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
