-- Token bucket: remaining requests.
local function remaining_of(_, text, requests, window, capacity, initial)
  if requests == 0 then return 0 end
  if text == '' then return initial end
  local counted_at, part, tokens = stored_tokens(text)
  if not counted_at then return nil end
  counted_at, part, tokens =
    counted_tokens(counted_at, part, tokens, requests, window, capacity, initial)
  return tokens
end

local acquire = token_bucket
