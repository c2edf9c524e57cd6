# frozen_string_literal: true

module Memprof
  # Colours for a terminal, or none.
  class Paint
    CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 }.freeze
    # Ruby's own classes, in which `isatty` and `tty?` are one method.
    RUBYS = %w[IO StringIO].freeze
    private_constant :CODES, :RUBYS

    # Whether to print to `io` in colour: `choice` is true, false, or `:auto`, which means that `io` is a
    # terminal that supports colours, and NO_COLOR is not set (https://no-color.org).
    def self.wanted?(io, choice = :auto)
      return choice ? true : false unless choice == :auto
      return false unless terminal?(io)

      ENV.fetch("NO_COLOR", "").empty? && ENV["TERM"] != "dumb"
    rescue IOError
      false # closed
    end

    # Whether `io` is a terminal, preferring whichever of `isatty` and `tty?` it defines itself.
    def self.terminal?(io)
      names = %i[isatty tty?].select { |name| io.respond_to?(name) }
      name = names.find { |one| !RUBYS.include?(io.method(one).owner.name) } || names.first
      name ? io.public_send(name) : false
    end

    def initialize(enabled = false)
      @enabled = enabled
      freeze
    end

    # The text in a style, a key of CODES; plain if nil.
    def call(text, style) = @enabled && style ? "\e[#{CODES.fetch(style)}m#{text}\e[0m" : text
  end
end
