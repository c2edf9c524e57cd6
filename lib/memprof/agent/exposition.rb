# frozen_string_literal: true

module Memprof
  module Agent
    # Metrics as text: the format of Prometheus, and OpenMetrics, which grew out of it.
    #
    # @api private
    module Exposition
      # A metric: its name without the suffix of its type, its type, its unit (part of the name, or nil), a
      # sentence, and its samples: suffix, labels, value.
      Family = Struct.new(:name, :type, :unit, :help, :samples)

      TYPES = {
        prometheus: "text/plain; version=0.0.4; charset=utf-8",
        openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
      }.freeze
      ACCEPTED = { "application/openmetrics-text" => :openmetrics, "text/plain" => :prometheus,
                   "text/*" => :prometheus, "*/*" => :prometheus }.freeze
      ESCAPES = { "\\" => "\\\\", "\n" => "\\n", '"' => '\\"' }.freeze
      private_constant :ACCEPTED, :ESCAPES

      class << self
        # The format that an Accept header prefers. Of equal ones, OpenMetrics.
        def accepted(header)
          wanted = header.to_s.split(",").filter_map do |part|
            type, *parameters = part.split(";").map { |text| text.strip.downcase }
            format = ACCEPTED[type] or next
            # Only this version is known.
            version = parameters.find { |text| text.start_with?("version=") }&.delete_prefix("version=")
            next if format == :openmetrics && version && version != "1.0.0"

            quality = parameters.find { |text| text.start_with?("q=") }&.delete_prefix("q=")
            [quality ? quality.to_f : 1.0, format]
          end
          best = wanted.select { |quality, _| quality.positive? }
            .max_by { |quality, format| [quality, format == :openmetrics ? 1 : 0] }
          best ? best.last : :prometheus
        end

        def text(families, format)
          out = +""
          families.each { |family| format == :openmetrics ? modern(out, family) : classic(out, family) }
          out << "# EOF\n" if format == :openmetrics
          out
        end

        private

        def modern(out, family)
          name = family.name
          out << "# TYPE #{name} #{family.type}\n"
          # Only a unit that the name ends with is allowed.
          out << "# UNIT #{name} #{family.unit}\n" if family.unit && name.end_with?("_#{family.unit}")
          out << "# HELP #{name} #{escape(family.help, "\\", "\n", '"')}\n"
          samples(out, name, suffix(family), family.samples)
        end

        # Here the suffix is part of the name, and there is no type for information.
        def classic(out, family)
          name = family.type == :summary ? family.name : "#{family.name}#{suffix(family)}"
          out << "# HELP #{name} #{escape(family.help, "\\", "\n")}\n"
          out << "# TYPE #{name} #{family.type == :info ? :gauge : family.type}\n"
          samples(out, family.name, suffix(family), family.samples)
        end

        def suffix(family) = { counter: "_total", info: "_info" }[family.type]

        def samples(out, name, suffix, samples)
          samples.each do |own, labels, value|
            out << name << (own.empty? ? suffix.to_s : own)
            unless labels.empty?
              pairs = labels.map { |key, text| %(#{key}="#{escape(text, "\\", "\n", '"')}") }
              out << "{" << pairs.join(",") << "}"
            end
            out << " " << number(value) << "\n"
          end
        end

        def escape(text, *marks) = text.gsub(Regexp.union(marks), ESCAPES)

        def number(value)
          return value.to_s if value.is_a?(Integer)
          return "NaN" if value.to_f.nan?

          value.to_f.infinite? ? (value.positive? ? "+Inf" : "-Inf") : value.to_f.to_s
        end
      end
    end
  end
end
