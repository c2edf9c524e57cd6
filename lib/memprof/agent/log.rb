# frozen_string_literal: true

require_relative "../printable"
require_relative "../stderr"

module Memprof
  module Agent
    # The lines that the agent logs: to a logger, to standard error, or nowhere. A failing logger is ignored.
    class Log
      PREFIX = "memprof agent"
      private_constant :PREFIX

      # `logger` is :auto, :stderr, nil, or has `info` and `warn`.
      def initialize(logger)
        @logger = logger
        @said = {}
      end

      def info(text) = write(:info, text)
      def warn(text) = write(:warn, text)

      # Logs the first line with a key only.
      def warn_once(key, text)
        return if @said.key?(key)

        @said[key] = true
        warn(text)
      end

      # Whether the logger of the application is known: while it boots, Rails has none yet.
      def settled? = @logger != :auto || !defined?(::Rails.logger) || !::Rails.logger.nil?

      private

      def write(level, text)
        return unless @logger

        line = "#{PREFIX}: #{Printable.line(text)}"
        target = logger
        target ? target.public_send(level, line) : Stderr.warn(line.delete_prefix("memprof "))
      rescue StandardError
        nil
      end

      def logger
        return (::Rails.logger if defined?(::Rails.logger)) if @logger == :auto

        @logger unless @logger == :stderr
      end
    end
  end
end
