# frozen_string_literal: true

require_relative "../printable"

module Memprof
  module Dump
    # Values of variables in the lines of a dump: numbers, true, false and null as in JSON, a symbol as
    # `":name"`, every other object as its address.
    module Values
      # Replaces a number or a symbol in a dump without contents.
      HIDDEN = "(hidden)"
      FIXNUMS = -(2**62)..(2**62 - 1)
      # Not the object's own method, which may be overridden or missing. Writes the address last.
      DESCRIBE = Kernel.instance_method(:to_s)
      private_constant :FIXNUMS, :DESCRIBE

      module_function

      def encode(value, contents: true)
        case value
        when nil, true, false then value
        when Integer then FIXNUMS.cover?(value) ? shown(value, contents) : address(value)
        when Float then shown(value.finite? ? value : value.to_s, contents)
        when Symbol then shown(":#{Printable.utf8(value)}", contents)
        else address(value)
        end
      end

      def address(object) = "0x#{DESCRIBE.bind_call(object)[/:0x(\h+)>\z/, 1].to_i(16).to_s(16)}"

      def table(variables, contents: true)
        variables.to_h { |name, value| [":#{Printable.utf8(name)}", encode(value, contents: contents)] }
      end

      def shown(value, contents) = contents ? value : HIDDEN
    end
  end
end
