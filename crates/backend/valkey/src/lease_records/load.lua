-- Returns a client's record and that of its epoch, with the clock of the same server.
-- KEYS[1] the epoch, KEYS[2] the client if one is requested.
local client = KEYS[2] and redis.call('GET', KEYS[2]) or false
local time = redis.call('TIME')
return {client, redis.call('GET', KEYS[1]), time[1], time[2]}
