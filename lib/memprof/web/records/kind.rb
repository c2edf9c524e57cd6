# frozen_string_literal: true

require_relative "../../malloc"
require_relative "../../native"

module Memprof
  class Web
    class Records
      # Finds out what a file is by what it begins with.
      module Kind
        HEAD = 262_144 # bytes: a traced request is a line
        REPORT = /\A\s*\{\s*"format"\s*:\s*"memprof-report"/
        BOOT = /\A\s*\{\s*"format"\s*:\s*"memprof-boot"/
        STATS = /\A\s*\d+ .+:\d+:.+$/
        STACKS = /\A[^\s{\[].*;.* \d+$/
        private_constant :HEAD, :REPORT, :BOOT, :STATS, :STACKS

        class << self
          def of(path)
            return :malloc if Malloc::Recording.file?(path)

            head = (File.binread(path, HEAD) || +"").force_encoding(Encoding::UTF_8).scrub
            return :tracked if head.match?(REPORT)
            return :boot if head.match?(BOOT)

            first = head.each_line.find { |line| !line.strip.empty? }.to_s
            return :trace if request?(first)

            first.match?(STATS) || first.match?(STACKS) ? :tracked : :heap
          end

          private

          # The first request may be longer than what was read of it.
          def request?(line)
            Native.request?(line) || (line.bytesize >= HEAD && line.start_with?('{"start":'))
          end
        end
      end
    end
  end
end
