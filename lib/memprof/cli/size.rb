# frozen_string_literal: true

module Memprof
  module CLI
    # Sizes as people write them: `500MB`, `2GiB`, `1048576`.
    module Size
      PATTERN = /\A(?<number>\d+(?:\.\d+)?)\s*(?<prefix>[KMGT]?)(?<binary>i?)B?\z/i
      PREFIXES = ["", "K", "M", "G", "T"].freeze
      private_constant :PATTERN, :PREFIXES

      def self.parse(text)
        match = PATTERN.match(text.strip) or return
        base = match[:binary].empty? ? 1000 : 1024
        (match[:number].to_r * (base**PREFIXES.index(match[:prefix].upcase))).to_i
      end
    end
  end
end
