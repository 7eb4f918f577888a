-- Returns the rows of parts of a room's history, one list of names and rows for each part.
-- KEYS[1] and so on the parts.
local parts = {}
for at, key in ipairs(KEYS) do
  parts[at] = redis.call('HGETALL', key)
end
return parts
