-- Charges all keys, or none of them. Answers the time, and for each key whether it admits and what was remembered there
-- before ('' for nothing), so that whoever asks can tell the caller the rest.
local JUDGES = {
  f = counters, s = counters, w = counters,
  g = gcra, l = leaky_bucket, t = token_bucket, e = sliding_log,
}
local answer, writes, all = {digits(now)}, {}, true
for at, key in ipairs(KEYS) do
  local first = 4 + (at - 1) * 7
  local letter, setting = ARGV[first], {}
  for n = 1, 6 do setting[n] = tonumber(ARGV[first + n]) end
  local admits, prior, save = JUDGES[letter](letter, key, unpack(setting))
  all = all and admits
  answer[#answer + 1] = admits and 1 or 0
  answer[#answer + 1] = prior
  if save and setting[1] ~= 0 then writes[#writes + 1] = save end
end
if all and ARGV[3] == '1' then
  for _, save in ipairs(writes) do save() end
end
return answer
