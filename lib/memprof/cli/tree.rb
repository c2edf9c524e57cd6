# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof tree`: what an object retains, level by level.
    class Tree < HeapCommand
      SUMMARY = "shows what an object of a dump retains, level by level"
      USAGE = "[OPTIONS] FILE [ADDRESS]"
      DETAILS = <<~TEXT
        Prints the dominator tree: below each object are the objects that it alone
        retains, the largest first. Without ADDRESS the tree starts at the roots.

        Examples:
          memprof tree heap.memprof
          memprof tree --by class --depth 5 heap.memprof 0x7f3a5c0012d8
      TEXT

      def call(arguments)
        file, name = expect_arguments(arguments, "FILE", "[ADDRESS]")
        of = name && address(name)
        answer = ask(open_heap(file), :tree, of: of, by_class: @options[:by] == :class || nil,
          **chosen(:depth, :limit), min: option(:min_size))
        largest = answer[:branches].filter_map { |branch| branch[:address] }.first
        present(answer, largest ? [[["show", file, largest], "details of the largest"]] : []) do |page|
          page.heading(heading(answer)).listing(tree(answer))
        end
      end

      private

      def heading(answer)
        name = answer[:address] ? "#{answer[:text]} at #{answer[:address]} retains" : "The roots retain"
        "#{name} #{Units.bytes(answer[:sum])}"
      end

      def tree(answer)
        classes = @options[:by] == :class
        listing = Listing.new.columns(:retained, :percent, :count)
          .columns(classes ? :class : :object, as: :object)
          .columns(classes ? :largest : :address, as: :address)
          .columns(:site, spare: true)
        whole = answer[:percent].positive? ? answer[:retained] / answer[:percent] : 0
        answer[:branches].each { |branch| grow(listing, branch, whole, 0) }
        rest(listing, answer, whole, 0)
        listing
      end

      def grow(listing, branch, whole, depth)
        classes = @options[:by] == :class
        name = classes ? branch[:class] : [branch[:label], branch[:text]].compact.join(": ")
        count = branch[:count] if classes
        listing.row(branch[:sum], share(branch[:sum], whole), count, name, branch[:address], branch[:site],
          depth: depth)
        branch[:branches].each { |below| grow(listing, below, whole, depth + 1) }
        # Branches on the last level are not expanded.
        rest(listing, branch, whole, depth + 1) unless branch[:branches].empty?
      end

      def rest(listing, branch, whole, depth)
        count, sum = branch[:more]
        return unless count.positive?

        name = "... #{Units.plural(count, @options[:by] == :class ? "more class" : "more object")}"
        listing.row(sum, share(sum, whole), nil, name, nil, nil, depth: depth)
      end

      # `whole` is a hundredth of the heap.
      def share(sum, whole) = whole.positive? ? sum / whole : 0.0
    end
  end
end
