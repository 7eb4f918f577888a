-- Token bucket: how many calls are left, and what is written if so many are lent.
local function lender(text, letter, calls, window, capacity, initial)
  local bucket = {counted_at = now, part = 0, tokens = initial}
  if text ~= '' then
    bucket = stored_bucket(text, letter)
    if not bucket then return nil end
    bucket = counted_bucket(bucket, calls, window, capacity, initial)
  end
  if calls == 0 then return 0 end
  return bucket.tokens, function(held)
    bucket.tokens = bucket.tokens - held
    -- Full again is what matters here: for how long newcomers are remembered is told with the call.
    local full_at = bucket_idle_at(bucket, calls, window, capacity, capacity, 0)
    return bucket_text(letter, bucket), full_at
  end
end
