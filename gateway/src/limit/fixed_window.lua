-- One key a subject and minute. It outlives its minute by one, so that it never expires within it.
local limit = tonumber(ARGV[1])
local now = redis.call('TIME')
local second = tonumber(now[1])
local left_ms = (60 - second % 60) * 1000 - math.floor(tonumber(now[2]) / 1000)
local key = KEYS[1] .. ':' .. math.floor(second / 60)
local used = redis.call('INCR', key)
if used == 1 then
    redis.call('EXPIRE', key, 120)
end
if used > limit then
    return {0, 0, left_ms, left_ms}
end
return {1, limit - used, left_ms, 0}
