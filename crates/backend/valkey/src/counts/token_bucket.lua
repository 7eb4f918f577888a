-- Token bucket (t). A value is the letter, the time of the last count, the parts of the next token
-- at that time (a token has as many as the window has us), and the tokens.

-- Returns the current state: the time of the count, parts of the next token, tokens.
local function counted_tokens(counted_at, part, tokens, requests, window, capacity, initial)
  tokens = min(tokens, initial)
  if requests == 0 then return counted_at, part, tokens end
  local at = max(now, counted_at)
  local high, low = product(at - counted_at, requests)
  high, low = plus(high, low, min(part, window - 1))
  local new, rest = divide(high, low, window)
  tokens = max(tokens, min(tokens + new, capacity))
  return at, tokens < capacity and rest or 0, tokens
end

-- Returns when the state expires; `newcomer` is how long a client with an initial burst is
-- remembered.
local function bucket_idle_at(at, part, tokens, requests, window, capacity, initial, newcomer)
  if tokens >= initial then return now end
  if requests == 0 then return at + window end
  local full_at = at
  if tokens < capacity then
    local high, low = product(window, capacity - tokens)
    high, low = minus(high, low, 0, part)
    local wait, rest = divide(high, low, requests)
    full_at = full_at + wait + (rest > 0 and 1 or 0)
  end
  if initial == capacity then return full_at end
  return max(full_at, at + newcomer)
end

-- Decodes a value; nil if it is invalid.
local function stored_tokens(text)
  local counted_at, part, tokens = match(text, '^t (%d+) (%d+) (%d+)$')
  counted_at, part, tokens = (counted_at or EXACT) + 0, (part or 0) + 0, (tokens or 0) + 0
  if counted_at >= EXACT or part >= EXACT or tokens >= WORD then return nil end
  return counted_at, part, tokens
end

function token_bucket(_, text, cost, requests, window, capacity, initial, newcomer)
  local counted_at, part, tokens = stored_tokens(text)
  local prior = text
  if not counted_at then
    if cost < 0 then return true, '' end
    prior, counted_at, part, tokens = '', now, 0, initial
  else
    counted_at, part, tokens =
      counted_tokens(counted_at, part, tokens, requests, window, capacity, initial)
  end
  if cost < 0 then
    tokens = min(tokens - cost, initial)
    if tokens >= capacity then part = 0 end
  else
    if requests == 0 or tokens < max(cost, 1) then return false, prior end
    tokens = tokens - cost
  end
  local idle_at =
    bucket_idle_at(counted_at, part, tokens, requests, window, capacity, initial, newcomer)
  return true, prior, format('t %.0f %.0f %.0f', counted_at, part, tokens), idle_at
end
