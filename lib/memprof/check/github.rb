# frozen_string_literal: true

require_relative "wording"

module Memprof
  module Check
    # A comparison as commands of GitHub Actions, which displays them next to the lines of a pull request.
    class Github
      # Maximum number of warnings that GitHub shows per step.
      LIMIT = 10
      # Escapes for messages, and for properties, which a comma or a colon would end.
      ESCAPES = { "%" => "%25", "\r" => "%0D", "\n" => "%0A", ":" => "%3A", "," => "%2C" }.freeze
      # Matches of lines whose text is not in the diff.
      UNCHANGED = %w[same moved].freeze
      # Percent of a total: less than this on such a line counts as noise.
      NOTABLE = 1
      private_constant :LIMIT, :ESCAPES, :UNCHANGED, :NOTABLE

      def initialize(comparison, outcomes, limit: nil, directory: Dir.pwd, workspace: ENV["GITHUB_WORKSPACE"])
        @comparison = comparison
        @outcomes = outcomes
        @limit = limit || LIMIT
        @prefix = prefix(directory, workspace)
      end

      def to_s
        errors = @outcomes.select(&:failed).map do |outcome|
          command("error", { title: "memprof" }, outcome.text)
        end
        grown = @comparison.lines.select { |line| notable?(line) }
        [*errors, *grown.first(@limit).map { |line| warning(line) }].map { |line| "#{line}\n" }.join
      end

      private

      # The bytes of a `require` vary slightly from run to run. So a line that the pull request did not change
      # counts only if the difference is notable, a changed one also if it adds objects.
      def notable?(line)
        Comparison::MEASURES.any? do |measure|
          change = line[measure][:change]
          next false unless change.positive?

          (objects?(measure) && !UNCHANGED.include?(line[:match].to_s)) ||
            change * 100 >= @comparison.totals[measure][:before] * NOTABLE
        end
      end

      def objects?(measure) = measure.end_with?("objects")

      # Lines of gems are not in the repository.
      def warning(line)
        place = "#{line[:file]}:#{line[:line]}"
        properties = { file: "#{@prefix}#{line[:file]}", line: line[:line].nonzero? }.compact if line[:own]
        found = Wording.found(line)
        text = Wording.line(line)
        text += " at #{place}" unless line[:own]
        text += " (#{found})" if found
        command("warning", { **properties.to_h, title: "memprof" }, text)
      end

      def command(name, properties, text)
        list = properties.map { |key, value| "#{key}=#{escape(value, /[%\r\n:,]/)}" }.join(",")
        "::#{name} #{list}::#{escape(text, /[%\r\n]/)}"
      end

      def escape(text, characters) = Printable.line(text).gsub(characters, ESCAPES)

      # Paths are relative to the program's directory; GitHub's are relative to the root of the repository.
      def prefix(directory, workspace)
        return "" if workspace.to_s.empty? || !directory.start_with?("#{workspace}/")

        "#{directory.delete_prefix("#{workspace}/")}/"
      end
    end
  end
end
