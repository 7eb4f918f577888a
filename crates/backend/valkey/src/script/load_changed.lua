-- Returns a record with the clock of the same server, or 0 if it still has a known version. Leaves
-- a note of the reader beside it, if there is one.
-- KEYS[1] the record, KEYS[2] the notes beside it; missing if the reader leaves none.
-- ARGV[1] the known version, '0' for no record.
-- ARGV[2] the lifetime of a note in ms, ARGV[3] the most notes.
-- ARGV[4] name of the reader, ARGV[5] its note, empty to remove it.
if KEYS[2] then
  leave_note(KEYS[2], ARGV[2], ARGV[3], ARGV[4], ARGV[5])
end
if (redis.call('HGET', KEYS[1], 'version') or '0') == ARGV[1] then
  return 0
end
local record = redis.call('HMGET', KEYS[1], 'version', 'value')
local time = redis.call('TIME')
return {record[1], record[2], time[1], time[2]}
