-- Token bucket: how many calls are left.
local function calls_left(_, text, calls, window, capacity, initial)
  if calls == 0 then return 0 end
  if text == '' then return initial end
  local counted_at, part, tokens = stored_tokens(text)
  if not counted_at then return nil end
  counted_at, part, tokens =
    counted_tokens(counted_at, part, tokens, calls, window, capacity, initial)
  return tokens
end

local charged = token_bucket
