-- Writes a client's record, or that of the epoch, if both are those that were read; or else returns
-- the current ones, as a load does. Every value begins with the token of its write.
-- KEYS[1] the epoch, KEYS[2] the client if its record is written.
-- ARGV[1] token of the epoch, ARGV[2] token of the client; '' for no record.
-- ARGV[3] value to write, ARGV[4] time to keep a client's record, in ms.
local function token(key) return redis.call('GETRANGE', key, 0, 15) end
if token(KEYS[1]) == ARGV[1] and (not KEYS[2] or token(KEYS[2]) == ARGV[2]) then
  if KEYS[2] then
    redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
  else
    redis.call('SET', KEYS[1], ARGV[3])
  end
  return 1
end
local client = KEYS[2] and redis.call('GET', KEYS[2]) or false
local time = redis.call('TIME')
return {client, redis.call('GET', KEYS[1]), time[1], time[2]}
