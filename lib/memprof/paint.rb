# frozen_string_literal: true

module Memprof
  # Colours for a terminal, or none.
  class Paint
    CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 }.freeze
    private_constant :CODES

    # Whether to print to `io` in colour: `choice` is true, false, or `:auto`, which means that `io` is a
    # terminal that can show colours, and NO_COLOR is not set (https://no-color.org).
    def self.wanted?(io, choice = :auto)
      return choice ? true : false unless choice == :auto
      return false unless io.respond_to?(:tty?) && io.tty?

      ENV.fetch("NO_COLOR", "").empty? && ENV["TERM"] != "dumb"
    rescue IOError
      false # closed
    end

    def initialize(enabled = false)
      @enabled = enabled
      freeze
    end

    # The text in a style, a key of CODES; nil leaves it plain.
    def call(text, style) = @enabled && style ? "\e[#{CODES.fetch(style)}m#{text}\e[0m" : text
  end
end
