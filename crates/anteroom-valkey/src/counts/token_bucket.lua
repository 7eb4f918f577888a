-- Token bucket (t). A value is the letter, when the tokens were counted, how many parts of the next one there were
-- then (a token has as many as the window has us), and how many tokens.

local function stored_bucket(text, letter)
  local found = numbers(text, letter)
  if not found or #found ~= 3 or found[3] >= WORD then return nil end
  return {counted_at = found[1], part = found[2], tokens = found[3]}
end

local function bucket_text(letter, bucket)
  local at, part, tokens = digits(bucket.counted_at), digits(bucket.part), digits(bucket.tokens)
  return table.concat({letter, at, part, tokens}, ' ')
end

-- With all tokens counted that there are now.
local function counted_bucket(bucket, calls, window, capacity, initial)
  local tokens = math.min(bucket.tokens, initial)
  if calls == 0 then
    return {counted_at = bucket.counted_at, part = bucket.part, tokens = tokens}
  end
  local counted_at = math.max(now, bucket.counted_at)
  local part = math.min(bucket.part, window - 1)
  local parts = plus(product(counted_at - bucket.counted_at, calls), part)
  local new, rest = divide(parts, window)
  tokens = math.max(tokens, math.min(tokens + new, capacity))
  return {counted_at = counted_at, part = tokens < capacity and rest or 0, tokens = tokens}
end

-- When it may be forgotten; `newcomer` is how long whoever had an initial burst is remembered.
local function bucket_idle_at(bucket, calls, window, capacity, initial, newcomer)
  if bucket.tokens >= initial then return now end
  if calls == 0 then return bucket.counted_at + window end
  local full_at = bucket.counted_at
  if bucket.tokens < capacity then
    local missing = product(window, capacity - bucket.tokens)
    local wait, rest = divide(minus(missing, plus({0, 0}, bucket.part)), calls)
    full_at = full_at + wait + (rest > 0 and 1 or 0)
  end
  if initial == capacity then return full_at end
  return math.max(full_at, bucket.counted_at + newcomer)
end

local function token_bucket(letter, key, cost, calls, window, capacity, initial, newcomer)
  local stored = stored_bucket(read('GET', key), letter)
  local prior = stored and bucket_text(letter, stored) or ''
  if not stored and cost < 0 then return true, prior end
  local bucket
  if stored then
    bucket = counted_bucket(stored, calls, window, capacity, initial)
  else
    bucket = {counted_at = now, part = 0, tokens = initial}
  end
  if cost < 0 then
    bucket.tokens = math.min(bucket.tokens - cost, initial)
    if bucket.tokens >= capacity then bucket.part = 0 end
  else
    if calls == 0 or bucket.tokens < math.max(cost, 1) then return false, prior end
    bucket.tokens = bucket.tokens - cost
  end
  return true, prior, function()
    local idle_at = bucket_idle_at(bucket, calls, window, capacity, initial, newcomer)
    write(key, bucket_text(letter, bucket), idle_at)
  end
end
