# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof query`: the objects that match a query.
    class Query < Top
      SUMMARY = "lists the objects of a dump that match a query"
      USAGE = "[OPTIONS] FILE QUERY"
      DETAILS = <<~TEXT
        QUERY names fields: class, type, name, value, length, size, retained, file,
        line, site, method, gem, generation, age, references, referrers, depth,
        reachable, root, address, frozen, ... Operators are = != < > ~ (contains)
        =~ (matches), in, and, or, not. docs/query.md describes all of them.

        Examples:
          memprof query heap.memprof 'class = Session and retained > 1KiB'
          memprof query heap.memprof 'type = string and size > 1MiB' --sort size
          memprof query heap.memprof 'file ~ "app/" and age > 10' --format csv
      TEXT

      def call(arguments)
        file, query = expect_arguments(arguments, "FILE", "QUERY")
        @options[:where] = query
        list(file)
      end
    end
  end
end
