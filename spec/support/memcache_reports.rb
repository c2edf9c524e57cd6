# frozen_string_literal: true

# Reads the memcached part of a trace's report.
module MemcacheReports
  def calls(result)
    result["memcache"].transform_values { |operation| operation["calls"] }
  end

  def answers(result, operation)
    result["memcache"].dig(operation, "responses")
  end
end
