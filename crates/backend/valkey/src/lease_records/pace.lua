-- Generic cell rate: remaining requests.
local function remaining_of(letter, text, requests, window, burst)
  local us, fraction = 0, 0
  if text ~= '' then
    us, fraction = stored_point(letter, text, requests)
    if not us then return nil end
  end
  if requests == 0 then return 0 end
  local high, low = product(window, burst)
  high, low = minus(high, low, ahead_of_now(us, fraction, requests))
  local left = divide(high, low, window)
  return left
end

local acquire = paced
