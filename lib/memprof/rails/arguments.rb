# frozen_string_literal: true

module Memprof
  module Rails
    # Numbers among the arguments of a Rake task.
    #
    # @api private
    module Arguments
      # The values of some arguments, or their defaults. Ends the task if one is not a number above 0.
      def self.numbers(arguments, **defaults)
        defaults.map do |name, default|
          text = arguments[name].to_s
          next default if text.empty?

          number = Integer(text, exception: false)
          abort("memprof: #{name} must be a whole number above 0 (got #{text})") unless number&.positive?
          number
        end
      end
    end
  end
end
