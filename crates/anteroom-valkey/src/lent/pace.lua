-- Generic cell rate: how many calls are left, and what is written if so many are lent.
local function lender(text, letter, calls, window, burst)
  local point = {0, 0}
  if text ~= '' then
    point = stored_point(text, letter)
    if not point then return nil end
  end
  if calls == 0 then return 0 end
  point = read_point(point, calls)
  local left = divide(minus(product(window, burst), ahead_of_now(point, calls)), window)
  return left, function(held)
    local last = charged(point, held, calls, window)
    local state = table.concat({letter, digits(last[1]), digits(last[2])}, ' ')
    return state, last[1] + (last[2] > 0 and 1 or 0)
  end
end
