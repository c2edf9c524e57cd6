# frozen_string_literal: true

require_relative "heap_command"
require_relative "../wording"
require_relative "objects"

module Memprof
  module CLI
    # `memprof path`: what retains an object, or many.
    class Path < HeapCommand
      SUMMARY = "shows what retains an object of a dump, or many"
      USAGE = "[OPTIONS] FILE ADDRESS | FILE --where QUERY"
      DETAILS = <<~TEXT
        Prints the shortest path from a GC root to the object at ADDRESS. With --where
        it prints the paths to all objects that match, merged into a tree.

        Examples:
          memprof path heap.memprof 0x7f3a5c0012d8
          memprof path heap.memprof --where 'class = Session'
      TEXT

      def call(arguments) = @options[:where] ? many(arguments) : one(arguments)

      private

      def define_own_options(parser)
        where(parser)
        limit(parser, "with --where: N branches per node", 8)
      end

      def one(arguments)
        file, name = expect_arguments(arguments, "FILE", "ADDRESS (or --where QUERY)")
        to = address(name)
        answer = ask(open_heap(file), :path, to: to)
        status = present(answer) do |page|
          if answer[:steps].empty?
            page.text("#{to} is unreachable from the roots: garbage not collected yet.")
          else
            page.heading(Wording.phrase(answer[:phrase])).listing(Objects.path(answer))
          end
        end
        next_steps([[["show", file, to], "details of the object"]])
        status
      end

      def many(arguments)
        file, = expect_arguments(arguments, "FILE")
        answer = ask(open_heap(file), :path, **@options.slice(:where, :limit))
        status = present(answer) do |page|
          page.heading(heading(answer))
          page.listing(tree(answer[:branches]))
        end
        next_steps(steps(file, answer))
        status
      end

      def heading(answer)
        garbage = answer[:unreachable]
        of_them = ", #{Units.count(garbage)} of them garbage" if garbage.positive?
        "Paths to #{Units.objects(answer[:objects])}#{of_them}"
      end

      # One of those that were looked for, at the end of the widest path.
      def steps(file, answer)
        branch = answer[:branches].first
        branch = branch[:branches].first until branch.nil? || branch[:branches].empty?
        example = branch && branch[:example]
        example ? [[["show", file, example], "one of them"]] : []
      end

      def tree(branches)
        listing = Listing.new.column("Paths", :count, :paths).column("Retained size", :bytes, :retained)
          .column("Through", :name, :through).column("Objects", :count, :count)
          .column("Example", :address, :address, spare: true)
        branches.each { |branch| grow(listing, branch, 0) }
        listing
      end

      def grow(listing, branch, depth)
        through = [branch[:label], branch[:text]].compact.uniq.join(": ")
        paths, retained, objects, example = branch.values_at(:paths, :retained, :objects, :example)
        listing.row(paths, retained, through, objects, example, depth: depth)
        branch[:branches].each { |below| grow(listing, below, depth + 1) }
        return unless branch[:more].positive?

        listing.row(nil, nil, "... #{Units.count(branch[:more])} more", nil, nil, depth: depth + 1)
      end
    end
  end
end
