-- Writes a record if this is still the server that it was read from, in the version that was read.
-- KEYS[1] the record.
-- ARGV[1] identity, ARGV[2] version that must be found, '0' if there must be none.
-- ARGV[3] version to write, ARGV[4] value to write.
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
if string.sub(run_id or '', 1, 16) ~= ARGV[1] then
  return 0
end
if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[2] then
  return 0
end
redis.call('HSET', KEYS[1], 'version', ARGV[3], 'value', ARGV[4])
return 1
