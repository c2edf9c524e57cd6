# frozen_string_literal: true

module Memprof
  # What the sites of reports have in common: a place, and equality by their facts (`file`, `line`, `to_h`).
  #
  # @api private
  module Facts
    # Where the objects were made.
    #
    # @return [String] `"file:line"`
    # @example
    #   report = Memprof.report { Object.new }
    #   report.first.location
    def location
      "#{file}:#{line}"
    end

    # Equality by facts.
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
    def hash
      to_h.hash
    end
  end
end
