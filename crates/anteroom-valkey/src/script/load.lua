-- A record with the clock and the identity of the very server that answers.
-- KEYS[1] the record.
local record = redis.call('HMGET', KEYS[1], 'version', 'value')
local time = redis.call('TIME')
local run_id = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
return {record[1], record[2], time[1], time[2], run_id or ''}
