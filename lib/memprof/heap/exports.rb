# frozen_string_literal: true

module Memprof
  class Heap
    # Files for other programs: their formats by what their names end with, and how the extension gets at
    # them.
    module Exports
      # Where a format has further endings.
      ENDINGS = { ".gv" => "dot", ".csv" => "objects-csv", ".txt" => "collapsed" }.freeze
      private_constant :ENDINGS

      class << self
        def format_of(target, format)
          formats = Native::Heap.export_formats.to_h
          if format.nil?
            path = Output.file_path(target)
            format = path && by_ending(path, formats)
            format || raise(ArgumentError, "which format? Known are #{formats.keys.join(", ")}")
          else
            name = format.to_s.tr("_", "-")
            formats.key?(name) ? name : Output.check_format(format, formats.keys.map(&:to_sym)).name
          end
        end

        # Yields a File for what can be named or written to.
        def to(target)
          Output.open(target) do |io|
            next spooled(io) { |file| yield(file) } unless io.respond_to?(:fileno) && io.fileno

            io.flush
            yield(io)
          end
        end

        private

        def by_ending(path, formats)
          known = formats.to_a.map(&:reverse).to_h.transform_keys { |ending| ".#{ending}" }.merge(ENDINGS)
          ending = known.keys.select { |candidate| path.end_with?(candidate) }.max_by(&:length)
          known[ending]
        end

        def spooled(io)
          require "tempfile"
          Tempfile.create("memprof", binmode: true) do |file|
            result = yield(file)
            file.rewind
            IO.copy_stream(file, io)
            result
          end
        end
      end
    end
    private_constant :Exports
  end
end
