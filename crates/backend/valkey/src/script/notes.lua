-- Notes beside a record: of each reader its newest one, behind its time in ms and a space.

-- Returns the notes that have not ended, as a name, the note, the next name; then the names of
-- those that have; then the time in ms.
local function read_notes(notes, ttl_ms)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local found, live, ended = redis.call('HGETALL', notes), {}, {}
  for i = 1, #found, 2 do
    local space = string.find(found[i + 1], ' ', 1, true)
    local age = now - tonumber(string.sub(found[i + 1], 1, space - 1))
    -- A note from the future was left before the clock stepped back.
    if math.abs(age) < tonumber(ttl_ms) then
      live[#live + 1] = found[i]
      live[#live + 1] = string.sub(found[i + 1], space + 1)
    else
      ended[#ended + 1] = found[i]
    end
  end
  return live, ended, now
end

-- Leaves a note, or removes it if it is empty. Notes that have ended make room for it.
local function leave_note(notes, ttl_ms, most, name, note)
  redis.call('HDEL', notes, name)
  local live, ended, now = read_notes(notes, ttl_ms)
  for _, other in ipairs(ended) do
    redis.call('HDEL', notes, other)
  end
  if note ~= '' and #live < 2 * most then
    redis.call('HSET', notes, name, string.format('%.0f', now) .. ' ' .. note)
    redis.call('PEXPIRE', notes, ttl_ms)
  end
end
