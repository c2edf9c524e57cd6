# frozen_string_literal: true

require "shellwords"

module Memprof
  module CLI
    # What to do with a dump: said wherever one was made.
    #
    # @api private
    module NextSteps
      # @param path [String] of the dump
      # @return [String] a command
      def self.for(path)
        "memprof convert --format objspace #{Shellwords.escape(path)} #{Shellwords.escape(plain(path))} " \
          "(for heapy, sheap, reap)"
      end

      def self.plain(path)
        "#{path.sub(/(?:\.json|\.memprof)?(?:\.gz|\.zst)?\z/, "")}.objspace.json"
      end
      private_class_method :plain
    end
  end
end
