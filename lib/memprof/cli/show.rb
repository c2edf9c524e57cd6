# frozen_string_literal: true

require "json"
require_relative "heap_command"
require_relative "phrase"
require_relative "objects"
require_relative "steps"

module Memprof
  module CLI
    # `memprof show`: everything about one object.
    class Show < HeapCommand
      SHOWN = 200 # characters of a string
      private_constant :SHOWN

      SUMMARY = "shows all about one object of a dump"
      USAGE = "[OPTIONS] FILE ADDRESS"
      DETAILS = <<~TEXT
        What it is, where it was made, what it refers to, what refers to it, the
        shortest path from a root, and what would be free if it were gone.

        ADDRESS is one as 0x7f12a0, from any other list. CSV has the references.

        Example:
          memprof show heap.memprof 0x7f3a5c0012d8
      TEXT

      def call(arguments)
        file, name = expect_arguments(arguments, "FILE", "ADDRESS")
        of = address(name)
        answer = put(open_heap(file), :object, of: of, limit: @options[:limit])
        status = present(answer) do |page|
          output_format == :csv ? page.listing(Objects.references(answer[:references])) : tell(page, answer)
        end
        next_steps(steps(file, of, answer))
        status
      end

      private

      def define_own_options(parser)
        limit(parser, "the first N of each list", 20)
      end

      def steps(file, address, answer)
        holder = answer[:dominators].first
        steps = [[["tree", file, address], "what it keeps alive, level by level"]]
        if holder&.fetch(:address)
          steps << [["show", file, holder[:address]], "what alone holds it: #{holder[:text]}"]
        end
        steps
      end

      def tell(page, answer)
        page.heading("#{answer[:text]} at #{answer[:address]}")
        page.facts(values(answer).merge(facts(answer)))
        held_by(page, answer)
        lists(page, answer)
      end

      # What the dump says besides.
      def facts(answer)
        answer[:facts].to_h { |name, value| [name, value.is_a?(String) ? value : JSON.generate(value)] }
      end

      def values(answer)
        {
          "type" => answer[:type], "class" => answer[:class], "value" => value(answer[:value]),
          "length" => answer[:length] && Units.count(answer[:length]),
          "size" => "#{Units.bytes(answer[:size])} (slot of #{Units.bytes(answer[:slot_size])})",
          "retained" => "#{Units.bytes(answer[:retained])} (#{Cell.percent(answer[:percent])})",
          "made at" => answer[:site] && Cell.place(answer[:site]),
          "generation" => answer[:generation], "made in" => time(answer[:time]), "age" => answer[:age],
          "object_id" => answer[:object_id], "shape" => answer[:shape], "flags" => answer[:flags].join(" ")
        }
      end

      def value(text)
        return if text.nil?

        text.length > SHOWN ? "#{text[0, SHOWN].inspect}..." : text.inspect
      end

      def time(microseconds)
        microseconds && Time.at(microseconds / 1_000_000).utc.strftime("%F %T UTC")
      end

      def held_by(page, answer)
        if answer[:unreachable]
          page.paragraph("No root reaches it: garbage that was not collected yet.")
        else
          page.listing(Steps.listing(answer[:path]), heading: "Path: #{Phrase.text(answer[:path][:phrase])}")
        end
      end

      def lists(page, answer)
        { references: "Refers to", referrers: "Is referred to by" }.each do |name, heading|
          total = answer[:"#{name}_count"]
          page.listing(Objects.references(answer[name]), heading: "#{heading} #{Units.objects(total)}")
          more(page, total - answer[name].size, "object")
        end
        page.listing(retains(answer), heading: "Retains #{Units.bytes(answer[:retained])}")
      end

      def retains(answer)
        listing = Listing.new.column("Size", :bytes, :size).column("Objects", :count, :count)
          .column("Class", :name, :class)
        answer[:retains].each { |held| listing.row(*held.values_at(:size, :count, :class)) }
        listing
      end
    end
  end
end
