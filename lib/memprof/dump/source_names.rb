# frozen_string_literal: true

require_relative "../printable"
require_relative "values"

module Memprof
  module Dump
    # Names of source files in the lines of a dump. Code that a program evaluates has any name that the
    # program gives it, which is a value of the program: a dump without contents does not contain it.
    module SourceNames
      module_function

      def path(location, contents)
        path = Printable.utf8(location.path)
        contents || Native.source_file?(path) ? path : Values::HIDDEN
      end

      def line(location, contents)
        line = Printable.utf8(location.to_s)
        shown = path(location, contents)
        shown == Values::HIDDEN ? shown + line.delete_prefix(Printable.utf8(location.path)) : line
      end
    end
  end
end
