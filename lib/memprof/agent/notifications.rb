# frozen_string_literal: true

module Memprof
  module Agent
    # Events for ActiveSupport::Notifications, if the program has loaded that: `interval.memprof`,
    # `leak.memprof`, `limit.memprof`.
    module Notifications
      def self.publish(name, **payload)
        return unless defined?(::ActiveSupport::Notifications.instrument)

        ::ActiveSupport::Notifications.instrument("#{name}.memprof", **payload)
      end
    end
  end
end
