# frozen_string_literal: true

module Memprof
  class Heap
    # Export formats for other programs, by file extension.
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
  end
end
