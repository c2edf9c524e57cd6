# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof show`: everything about one object.
    class Show < HeapCommand
      SHOWN = 200 # characters of a string
      private_constant :SHOWN

      SUMMARY = "shows one object of a dump in detail"
      USAGE = "[OPTIONS] FILE ADDRESS"
      DETAILS = <<~TEXT
        Shows the object, where it was allocated, its outgoing and incoming references,
        the shortest path from a GC root, and what it retains.

        ADDRESS, such as 0x7f12a0, comes from any other list. CSV has the references.

        Example:
          memprof show heap.memprof 0x7f3a5c0012d8
      TEXT

      def call(arguments)
        file, name = expect_arguments(arguments, "FILE", "ADDRESS")
        of = address(name)
        answer = ask(open_heap(file), :object, of: of, limit: option(:limit))
        present(answer, steps(file, of, answer)) do |page|
          output_format == :csv ? page.listing(Objects.references(answer[:references])) : render(page, answer)
        end
      end

      private

      def steps(file, address, answer)
        holder = answer[:dominators].first
        steps = [[["tree", file, address], "what it retains, level by level"]]
        if holder&.fetch(:address)
          steps << [["show", file, holder[:address]], "its immediate dominator: #{holder[:text]}"]
        end
        steps
      end

      def render(page, answer)
        page.heading("#{answer[:text]} at #{answer[:address]}")
        page.facts(values(answer).merge(facts(answer)))
        held_by(page, answer)
        lists(page, answer)
      end

      # Further fields of the dump.
      def facts(answer)
        answer[:facts].to_h { |name, value| [name, value.is_a?(String) ? value : JSON.generate(value)] }
      end

      def values(answer)
        {
          "type" => answer[:type], "class" => answer[:class], "value" => value(answer[:value]),
          "length" => answer[:length] && Units.count(answer[:length]),
          "shallow size" => "#{Units.bytes(answer[:size])}#{slot(answer[:slot_size])}",
          "retained size" => "#{Units.bytes(answer[:retained])} (#{Units.percentage(answer[:percent])})",
          "allocated at" => answer[:site] && Cell.place(answer[:site]),
          "application" => answer.dig(:site, :caller) && Cell.place(answer.dig(:site, :caller)),
          "generation" => answer[:generation], "allocated" => time(answer[:time]), "age" => answer[:age],
          "object_id" => answer[:object_id], "shape" => answer[:shape], "flags" => answer[:flags].join(" ")
        }
      end

      # A block of malloc has none.
      def slot(size) = size.positive? ? " (slot of #{Units.bytes(size)})" : ""

      def value(text)
        return if text.nil?

        text.length > SHOWN ? "#{text[0, SHOWN].inspect}..." : text.inspect
      end

      def time(microseconds) = microseconds && Time.at(microseconds / 1_000_000).utc.strftime("%F %T UTC")

      def held_by(page, answer)
        if answer[:unreachable]
          page.paragraph(Heap::Sentences.unreachable(answer))
        else
          page.listing(Objects.path(answer[:path]),
            heading: "Path from a GC root: #{Wording.phrase(answer[:path][:phrase])}")
        end
      end

      def lists(page, answer)
        { references: "Outgoing references", referrers: "Incoming references" }.each do |name, heading|
          total = answer[:"#{name}_count"]
          page.listing(Objects.references(answer[name]), heading: "#{heading} (#{Units.count(total)})")
          more(page, total - answer[name].size, "object")
        end
        page.listing(retains(answer), heading: "Retains #{Units.bytes(answer[:retained])}")
      end

      def retains(answer)
        Listing.new.columns(:size, :count, :class)
          .rows(answer[:retains])
      end
    end
  end
end
