-- Whole microseconds throughout: they fit the 53 bits of a Lua number until the year 2255.
local limit = tonumber(ARGV[1])
local now = redis.call('TIME')
now = tonumber(now[1]) * 1000000 + tonumber(now[2])
-- What one request costs, and how far ahead of the clock a subject may be.
local cost = math.floor(60000000 / limit)
local ahead = cost * limit
-- When everything used so far is paid off; the past is as good as now.
local paid = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
local after = paid + cost - now
if after > ahead then
    return {0, 0, math.ceil((paid - now) / 1000), math.ceil((after - ahead) / 1000)}
end
redis.call('SET', KEYS[1], string.format('%.0f', now + after), 'PX', math.ceil(after / 1000))
return {1, math.floor((ahead - after) / cost), math.ceil(after / 1000), 0}
