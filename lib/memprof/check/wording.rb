# frozen_string_literal: true

require_relative "../cell"

module Memprof
  module Check
    # A comparison in words.
    module Wording
      KINDS = %i[allocated retained].freeze
      # How a line was matched.
      MATCHES = {
        same: nil, moved: "moved from", method_renamed: "method renamed, was", nearest: "nearest to",
        file_renamed: "file renamed, was", new: "new", gone: "gone"
      }.freeze
      # Labels for the number of lines matched in each way.
      WAYS = {
        same: "matched exactly", moved: "moved", method_renamed: "in renamed methods",
        nearest: "changed or moved within their method", file_renamed: "in renamed files", new: "new",
        gone: "gone"
      }.freeze
      private_constant :MATCHES

      class << self
        def measure(name) = name.to_s.tr("_", " ")

        def amount(measure, number) = bytes?(measure) ? Units.bytes(number) : Units.objects(number)

        # "allocated bytes: from 1.0 KiB to 2.0 KiB (+100.0 %)"
        def change(measure, change, digits = 1) = "#{measure(measure)}: #{from_to(measure, change, digits)}"

        # Allocated or retained objects and bytes.
        def kind(kind, totals)
          %w[objects bytes].map { |unit| from_to(:"#{kind}_#{unit}", totals[:"#{kind}_#{unit}"]) }.join(", ")
        end

        # The change of a line: "+200 objects (+6.5 KiB) allocated".
        def difference(row)
          parts = KINDS.filter_map do |kind|
            objects, bytes = row.values_at(:"#{kind}_objects", :"#{kind}_bytes").map { |part| part[:change] }
            next if objects.zero? && bytes.zero?

            size = Cell.text(bytes, :growth)
            objects.zero? ? "#{size} #{kind}" : "#{signed(objects)} (#{size}) #{kind}"
          end
          parts.join(", ")
        end

        def line(line) = "#{difference(line)}: #{line[:class]} in #{line[:method]}"

        # How a line was matched; nil if it is at the same place.
        def found(line)
          match = line[:match].to_sym
          # Another text on the same line.
          return if match == :nearest && line[:was].nil?

          [MATCHES.fetch(match), line[:was]].compact.join(" ").then { |text| text unless text.empty? }
        end

        def percentage(percent)
          number = percent.to_f
          "#{number == number.to_i ? number.to_i : number} %"
        end

        # The relative change of a number: "+1.2 %"; nil if it is unchanged, or was 0.
        def relative(change, digits = 1)
          return unless change[:before].positive? && !change[:change].zero?

          format("%+.#{digits}f %%", change[:change] * 100.0 / change[:before])
        end

        private

        def bytes?(measure) = measure.end_with?("bytes")

        def from_to(measure, change, digits = 1)
          return "#{amount(measure, change[:after])} (no change)" if change[:change].zero?

          numbers = change.values_at(:before, :after).map { |number| amount(measure, number) }
          percent = relative(change, digits)
          "from #{numbers.join(" to ")}#{" (#{percent})" if percent}"
        end

        def signed(number) = "#{"+" if number.positive?}#{Units.objects(number)}"
      end
    end
  end
end
