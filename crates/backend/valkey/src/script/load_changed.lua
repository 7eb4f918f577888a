-- Returns a record with the clock of the same server, or 0 if it still has a known version.
-- KEYS[1] the record, ARGV[1] the known version, '0' for no record.
if (redis.call('HGET', KEYS[1], 'version') or '0') == ARGV[1] then
  return 0
end
local record = redis.call('HMGET', KEYS[1], 'version', 'value')
local time = redis.call('TIME')
return {record[1], record[2], time[1], time[2]}
