-- Returns a record with the clock of the same server.
-- KEYS[1] the record.
local record = redis.call('HMGET', KEYS[1], 'version', 'value')
local time = redis.call('TIME')
return {record[1], record[2], time[1], time[2]}
