# frozen_string_literal: true

# What the report of a trace says about memcached.
module MemcacheReports
  def calls(result)
    result["memcache"].transform_values { |operation| operation["calls"] }
  end

  def answers(result, operation)
    result["memcache"].dig(operation, "responses")
  end
end
