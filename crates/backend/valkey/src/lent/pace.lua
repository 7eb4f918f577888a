-- Generic cell rate: how many calls are left.
local function calls_left(letter, text, calls, window, burst)
  local us, fraction = 0, 0
  if text ~= '' then
    us, fraction = stored_point(letter, text, calls)
    if not us then return nil end
  end
  if calls == 0 then return 0 end
  local high, low = product(window, burst)
  high, low = minus(high, low, ahead_of_now(us, fraction, calls))
  local left = divide(high, low, window)
  return left
end

local charged = paced
