# frozen_string_literal: true

require "digest"

module Memprof
  class Web
    # Compares secrets.
    module Secret
      # In a time that does not reveal where they differ, nor how long the right one is.
      def self.same?(given, right)
        return false if given.nil?

        left = Digest::SHA256.digest(given).bytes
        left.zip(Digest::SHA256.digest(right).bytes).reduce(0) { |sum, (a, b)| sum | (a ^ b) }.zero?
      end
    end
  end
end
