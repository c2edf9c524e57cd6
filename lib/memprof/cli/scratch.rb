# frozen_string_literal: true

require "tmpdir"

module Memprof
  module CLI
    # A directory for the time of a block. It goes also if Ctrl-C comes while it is being removed: Ruby can't
    # hold signals back.
    module Scratch
      def self.directory(prefix = "memprof-")
        path = nil
        Dir.mktmpdir(prefix) { |directory| yield path = directory }
      rescue Interrupt
        FileUtils.rm_rf(path) if path
        raise
      end
    end
  end
end
