-- What wrk itself does not print: the 95th percentile, and everything on one line.
done = function(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("rowlock %d %d %d %d\n", summary.requests, summary.duration, latency:percentile(95.0), failed))
end
