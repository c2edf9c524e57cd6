# frozen_string_literal: true

require_relative "../folded_path"

module Memprof
  module CLI
    # `memprof path`: what retains an object, or many.
    class Path < HeapCommand
      SUMMARY = "shows what retains an object of a dump, or many of them"
      USAGE = "[OPTIONS] FILE ADDRESS | FILE --where QUERY"
      DETAILS = <<~TEXT
        Prints the shortest path from a GC root to the object at ADDRESS. With --where
        it prints the paths to all objects that match, merged into a tree.

        Examples:
          memprof path heap.memprof 0x7f3a5c0012d8
          memprof path heap.memprof --where 'class = Session'
      TEXT
      QUERY = / (?:=|!=|~|=~|>|<|>=|<=|in) /
      private_constant :QUERY

      def call(arguments) = @options[:where] ? many(arguments) : one(arguments)

      private

      def one(arguments)
        file, name = expect_arguments(arguments, "FILE", "ADDRESS (or --where QUERY)")
        raise UsageError, "#{name.inspect} is a query; give it as --where" if name.match?(QUERY)

        to = address(name)
        heap = open_heap(file)
        answer = ask(heap, :path, to: to)
        present(answer, [[["show", file, to], "details of the object"]]) do |page|
          if answer[:steps].empty?
            page.text("#{to}: #{Heap::Sentences.unreachable(ask(heap, :object, of: to, limit: 0))}")
          else
            page.heading(Wording.phrase(answer[:phrase])).listing(Objects.path(answer, run: longest_run))
          end
        end
      end

      def many(arguments)
        file, = expect_arguments(arguments, "FILE")
        answer = ask(open_heap(file), :path, **chosen(:where, :limit))
        present(answer, steps(file, answer)) do |page|
          page.heading(heading(answer))
          page.listing(tree(answer[:branches]))
        end
      end

      # Longer runs of equal steps are folded in text.
      def longest_run = (output_format == :csv) ? Float::INFINITY : FoldedPath::RUN

      def heading(answer)
        unreachable = answer[:unreachable]
        of_them = ", #{Units.count(unreachable)} of them unreachable" if unreachable.positive?
        "Paths to #{Units.objects(answer[:objects])}#{of_them}"
      end

      # One of the matching objects, at the end of the widest path.
      def steps(file, answer)
        branch = answer[:branches].first
        branch = branch[:branches].first until branch.nil? || branch[:branches].empty?
        example = branch && branch[:example]
        example ? [[["show", file, example], "one of them"]] : []
      end

      def tree(branches)
        listing = Listing.new.columns(:paths, :retained)
          .columns(:through) { |branch| through(branch) }
          .columns(:count, from: :objects)
          .columns(:example, as: :address, from: :example, spare: true)
        branches.each { |branch| grow(listing, branch, 0) }
        listing
      end

      def grow(listing, branch, depth)
        listing.item(branch, depth: depth)
        run = run_from(branch)
        if run.size > longest_run
          rest(listing, "... #{Units.count(run.size - 2)} more #{through(branch)} ...", depth + 1)
          return grow(listing, run.last, depth + 2)
        end

        branch[:branches].each { |below| grow(listing, below, depth + 1) }
        rest(listing, "... #{Units.count(branch[:more])} more", depth + 1) if branch[:more].positive?
      end

      # The branch and its equal only children, as in a linked list.
      def run_from(branch)
        run = [branch]
        until run.last[:branches].size != 1 || run.last[:more].positive?
          below = run.last[:branches].first
          break if below.values_at(:label, :text) != branch.values_at(:label, :text)

          run << below
        end
        run
      end

      def through(branch) = branch.values_at(:label, :text).compact.uniq.join(": ")

      def rest(listing, text, depth) = listing.row(nil, nil, text, nil, nil, depth: depth)
    end
  end
end
