# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof subset`: extracts part of a heap, step by step, with memdump's operations.
    class Subset < HeapCommand
      SUMMARY = "extracts part of a dump, step by step, as GML or a dump"
      USAGE = "[OPTIONS] FILE [OUT]"
      DETAILS = <<~TEXT
        The set starts with all objects and roots of FILE. Each step makes another set;
        steps run in the order of the options. memprof writes the set and its references
        to OUT, as GML if its extension is .gml, else as a dump. Without OUT it counts
        the set by class.

        Examples:
          memprof subset --cleanup --roots-of 'class = Session' heap.memprof out.gml
          memprof subset --diff after.memprof --class /Session/ before.memprof
          memprof subset --subgraph-of 0x7f12a0 --depth 3 heap.memprof part.json
          memprof subset --out-degree --min-references 1000 heap.memprof
      TEXT

      def call(arguments)
        file, out = expect_arguments(arguments, "FILE", "[OUT]")
        raise UsageError, "--out-degree does not take OUT" if out && @options[:out_degree]
        raise UsageError, "give OUT or --output, not both" if out && @options[:output]
        check_out(out) if out
        set = open_heap(file).subset
        sizes = @terminal.busy { steps.map { |step, value| (set = take(set, step, value)).size } }
        out ? write(set, out) : show(set, sizes)
      rescue ArgumentError => e
        raise UsageError::Shown, e.message
      end

      private

      def steps = @options.fetch(:steps, [])

      def take(set, step, value)
        case step
        when :class then set.objects_of_class(name(value))
        when :type then set.objects_of_type(name(value))
        when :where then set.find_all(value)
        when :roots then set.roots
        when :cleanup then set.common_cleanup
        when :class_references then set.with_class_references
        when :valid then valid(set)
        when :small then set.remove_small_components(max_size: number(:Integer, "--small", value))
        when :random then set.sample(number(:Float, "--random", value))
        when :diff then set.diff(open_heap(value).subset)
        when :subgraph_of then set.subgraph_of(address(value), **depth)
        when :root_of, :remove_node then set.public_send(step, address(value))
        when :parents_of then set.parents_of(set.find_all(value),
          min: @options.fetch(:min_references, 0)).first
        else set.public_send(step, set.find_all(value))
        end
      end

      def valid(set)
        set, @missing = set.remove_invalid_references
        set
      end

      def depth = @options[:depth] ? { max_depth: @options[:depth] } : {}

      def name(text)
        match = %r{\A/(?<source>.*)/(?<fold>i?)\z}m.match(text)
        match ? Regexp.new(match[:source], match[:fold].empty? ? nil : Regexp::IGNORECASE) : text
      rescue RegexpError => e
        raise UsageError, "invalid regular expression \"#{text}\": #{e.message}"
      end

      def number(kind, option, text)
        Kernel.public_send(kind, text)
      rescue ArgumentError
        raise UsageError, "invalid #{option} \"#{text}\"; expected a number"
      end

      def write(set, out)
        path = out == "-" ? $stdout : out
        @terminal.busy { out.end_with?(".gml") ? set.to_gml(path) : set.save(path) }
        @terminal.warn("#{out == "-" ? "stdout" : out}: #{Units.objects(set.size)}")
        0
      end

      def show(set, sizes)
        answer = answer(set, sizes)
        present(answer) do |page|
          page.heading(Units.objects(answer[:objects]))
          page.listing(listing(answer))
          more(page, answer[:more], "row")
          steps = answer[:steps].map { |step| "#{step[:step]}: #{Units.objects(step[:objects])}" }
          page.paragraph("Steps: #{steps.join(", ")}.") unless steps.empty?
          missing(page, answer[:missing]) if answer[:missing]
        end
      end

      def answer(set, sizes)
        taken = steps.zip(sizes).map do |(step, value), size|
          { step: step.name.tr("_", "-"), value: value, objects: size }.compact
        end
        rows = @options[:out_degree] ? out_degree(set) : classes(set)
        limit = option(:limit)
        { objects: set.size, rows: rows.first(limit), more: [rows.size - limit, 0].max, steps: taken,
          missing: @missing }.compact
      end

      def classes(set)
        unknown, counts = set.stats
        rows = counts.map { |name, count| { count: count, class: name } }
        unknown.zero? ? rows : [*rows, { count: unknown, class: nil }]
      end

      def out_degree(set)
        set.out_degree(min: @options.fetch(:min_references, 0)).to_a.reverse.map do |object, count|
          { count: count, class: object.class_name, address: object.address }
        end
      end

      def listing(answer)
        degrees = @options[:out_degree]
        listing = Listing.new.columns(degrees ? :references : :count, as: :count)
          .columns(:class) { |row| row[:class] || "(unknown)" }
        listing.columns(:address) if degrees
        listing.rows(answer[:rows])
      end

      def missing(page, addresses)
        page.paragraph("Dropped references to #{Units.plural(addresses.size, "missing address")}: " \
                       "#{addresses.first(10).join(", ")}#{", ..." if addresses.size > 10}")
      end
    end
  end
end
