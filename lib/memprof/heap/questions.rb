# frozen_string_literal: true

module Memprof
  class Heap
    # Export formats for other programs, by file extension.
    # @api private
    module Exports
      # Further extensions of formats.
      ENDINGS = { ".gv" => "dot", ".csv" => "objects-csv", ".txt" => "collapsed" }.freeze
      private_constant :ENDINGS

      class << self
        def format_of(target, format)
          formats = Native::Heap.export_formats.to_h
          if format.nil?
            path = Output.file_path(target)
            format = path && by_ending(path, formats)
            format || raise(ArgumentError, "no format given; expected one of: #{formats.keys.join(", ")}")
          else
            name = format.to_s.tr("_", "-")
            formats.key?(name) ? name : Output.check_format(format, formats.keys.map(&:to_sym)).name
          end
        end

        private

        def by_ending(path, formats)
          known = formats.to_a.map(&:reverse).to_h.transform_keys { |ending| ".#{ending}" }.merge(ENDINGS)
          ending = known.keys.select { |candidate| path.end_with?(candidate) }.max_by(&:length)
          known[ending]
        end
      end
    end
    private_constant :Exports

    # The most frequent questions, as methods of their own. Answers are hashes, as returned by {Heap#ask},
    # unless there is something better. For options that are nil, the question's default applies.
    module Questions
      # The heap in numbers: objects and bytes by type, the largest classes, roots, completeness of the dump,
      # the process.
      #
      # @param limit [Integer, nil] classes; 5
      # @return [Hash{Symbol => Object}]
      # @example
      #   Memprof::Heap.capture.overview[:objects][:count] > 1000 # => true
      def overview(limit: nil) = ask(:overview, limit: limit)
      alias_method :stats, :overview

      # Where the RSS of the process went when its dump was written. The items add up to the RSS.
      #
      # @return [Memory, nil] nil if the dump lacks it: formats of other tools, a heap in memory, dumps of
      #   systems without /proc
      # @example
      #   Memprof.dump_all("heap.memprof")
      #   memory = Memprof::Heap.open("heap.memprof").memory
      #   puts memory if memory
      def memory = ask(:memory)&.then { |answer| Memory.new(answer) }

      # Large things: objects with similar paths, or a few that retain most of the heap together. For growth
      # across several heaps, see {Verdict}.
      #
      # @param threshold [Numeric, nil] minimum percentage of the reachable bytes for a finding; 1
      # @param limit [Integer, nil] findings; 3
      # @param own [String, nil] a regexp for paths of application code; by default, every file outside gems
      #   and the standard library
      # @return [Hash{Symbol => Object}] as {Verdict#answer}, with a `:sentence` for each of the `:findings`
      # @raise [ArgumentError] if the threshold is not a percentage, or the regexp is invalid
      # @example
      #   Memprof::Heap.capture.leaks(threshold: 5)[:findings].each { |finding| puts finding[:sentence] }
      def leaks(threshold: nil, limit: nil, own: nil)
        VerdictWording.complete(ask(:leaks, threshold: threshold, limit: limit, own: own))
      end

      # Objects in groups.
      #
      # @param by [Symbol] `:class`, `:type`, `:file`, `:line`, `:gem`, `:method`, `:generation`, `:age`,
      #   `:size`, `:length`, `:shape`, `:slot`, `:imemo`, `:namespace`, `:superclass`, `:root`
      # @param where [String, nil] a filter
      # @param options [Hash] `then:`, `sort:` (`:retained`, `:size`, `:count`, `:name`), `limit:`,
      #   `then_limit:`, `depth:`, `exact:`
      # @return [Hash{Symbol => Object}] `:rows` with `:key`, `:count`, `:size`, `:retained`, `:percent`
      # @raise [ArgumentError] if there is no such option, or the filter is wrong
      # @example
      #   Memprof::Heap.capture.histogram(by: :type, sort: :count, limit: 3)[:rows].map { |row| row[:key] }
      def histogram(by: :class, where: nil, **options) = ask(:histogram, by: by, where: where, **options)

      # Strings with equal contents.
      #
      # @param where [String, nil] a filter
      # @param limit [Integer, nil] texts; 20
      # @param min [Integer, nil] minimum number of equal strings per text; 2
      # @return [Hash{Symbol => Object}]
      # @raise [ArgumentError] if the filter is wrong
      # @example
      #   Memprof::Heap.capture.duplicates(limit: 3)
      def duplicates(where: nil, limit: nil, min: nil)
        ask(:duplicates, where: where, limit: limit, min: min)
      end

      # The objects that an object retains, level by level: the dominator tree.
      #
      # @param of [Object, String, nil] the object, or its address; by default the roots
      # @param by_class [Boolean, nil] merge objects of one class
      # @param depth [Integer, nil] levels; 3
      # @param limit [Integer, nil] branches per level; 10
      # @param min [Integer, nil] bytes that a branch must retain; 1
      # @return [Hash{Symbol => Object}] with nested `:branches` of the same form
      # @raise [ArgumentError] if there is no such object
      # @example
      #   Memprof::Heap.capture.tree(by_class: true, depth: 1)[:branches].map { |branch| branch[:class] }
      def tree(of: nil, by_class: nil, depth: nil, limit: nil, min: nil)
        ask(:tree, of: of, by_class: by_class, depth: depth, limit: limit, min: min)
      end

      # A shortest path from a root to an object: what retains it.
      #
      # @param object [Object, String, Integer] the object, or its address
      # @return [Path, nil] nil if it is unreachable from the roots
      # @raise [ArgumentError] if there is no such object
      # @example
      #   heap = Memprof::Heap.capture
      #   puts heap.path_to(heap.class_named("Comparable").first)
      def path_to(object) = one(object).path

      # Paths to all objects that match a filter, merged into a tree.
      #
      # @param where [String] a filter
      # @param limit [Integer, nil] branches per level; 8
      # @return [Hash{Symbol => Object}] `:branches`, `:objects`, `:unreachable`
      # @raise [ArgumentError] if the filter is wrong
      # @example
      #   Memprof::Heap.capture.paths("class = Regexp", limit: 2)[:objects] > 1 # => true
      def paths(where, limit: nil) = ask(:path, where: where, limit: limit)

      # Paths that retain the objects matching a filter, merged if they differ only in indices and keys, as in
      # `memprof leaks` with several dumps.
      #
      # @param where [String, nil] a filter
      # @param limit [Integer, nil] the first N; 10
      # @return [Hash{Symbol => Object}] `:rows`, most objects first, each with `:class`, `:retained_by` (a
      #   phrase: strings, and hashes with `:file` and `:line`), `:count`, `:size` in bytes; `:more`, number
      #   of omitted rows; `:garbage`, objects that no root reaches
      # @raise [ArgumentError] if the filter is wrong
      # @example
      #   NOTES = Array.new(20) { { text: +"a note" } }
      #   row = Memprof::Heap.capture.merged_paths(where: 'value = "a note"')[:rows].first
      #   row.values_at(:retained_by, :count) # => [["NOTES -> Array[*] -> Hash[*]"], 20]
      def merged_paths(where: nil, limit: nil) = ask(:merged_paths, where: where, limit: limit)

      # How full the pages of the heap are.
      #
      # @param nearly_empty [Numeric, nil] percent of used slots up to which a page is nearly empty; 10
      # @return [Hash{Symbol => Object}]
      # @example
      #   Memprof::Heap.capture.slots
      def slots(nearly_empty: nil) = ask(:slots, nearly_empty: nearly_empty)

      # The changes between this heap and another one of the same process.
      #
      # @param other [Heap] a later one
      # @param later [Heap, nil] a third one: what is new in the second and still in the third survived
      # @return [Diff]
      # @example
      #   before = Memprof::Heap.capture
      #   kept = Array.new(10) { "abc".dup }
      #   diff = before.diff(Memprof::Heap.capture)
      #   diff.new.strings.where("value = abc").size >= kept.size # => true
      def diff(other, later = nil) = Diff.between(self, other, later)

      # Writes the heap in the format of another program.
      #
      # @param path_or_io [String, Pathname, IO]
      # @param format [Symbol, String, nil] `heapsnapshot` (Chrome's DevTools), `gml`, `gexf`, `dot`,
      #   `collapsed`, `flamegraph`, `objects-csv`, `references-csv`, `mongo`; by default, by the file's
      #   extension
      # @param where [String, nil] a filter: only these objects
      # @param limit [Integer, nil] most objects, by retained size; by default what viewers can bear
      # @param depth [Integer, nil] maximum levels of the dominator tree
      # @param min_retained [Integer] minimum retained size in bytes
      # @return [Hash{Symbol => Integer}] `:objects`, `:references`, `:folded`, `:left_out`
      # @raise [ArgumentError] if there is no such format, or the filter is wrong
      # @raise [Memprof::Error] if it can't be written
      # @example
      #   Memprof::Heap.capture.export("heap.dot", where: "class = Regexp", limit: 10)
      def export(path_or_io, format: nil, where: nil, limit: nil, depth: nil, min_retained: 0)
        format = Exports.format_of(path_or_io, format)
        counts = Output.open_named(path_or_io) do |file|
          native.export(file.fileno, format, where, [limit, depth, min_retained])
        end
        counts.transform_keys(&:to_sym)
      end

      private

      def one(object)
        return object if Object === object

        at(object) || raise(ArgumentError, "no object has the address #{object}")
      end

      def these(ids) = Objects.new(self, native.these(ids))

      def these_native(native) = Objects.new(self, native)
    end
  end
end
