# frozen_string_literal: true

require "tmpdir"

module Memprof
  module CLI
    # A temporary directory for a block. It is removed even if Ctrl-C interrupts the removal: Ruby can't block
    # signals.
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
