# frozen_string_literal: true

module Memprof
  # Shared by the entries of reports: a line of code, and equality by value.
  #
  # @api private
  module Located
    # Where the objects were allocated, or where the code is.
    #
    # @return [String] `"file:line"`
    # @example
    #   report = Memprof.report { Object.new }
    #   report.first.location
    def location = "#{file}:#{line}"

    # Equality by value.
    #
    # @param other [Object]
    # @return [Boolean]
    # @example
    #   report = Memprof.report { Object.new }
    #   report.first == report.sites.first # => true
    def ==(other)
      other.instance_of?(self.class) && to_h == other.to_h
    end
    alias_method :eql?, :==

    # @return [Integer] equal for equal sites
    # @example
    #   report = Memprof.report { Object.new }
    #   { report.first => "seen" }
    def hash = to_h.hash
  end
end
