# frozen_string_literal: true

require_relative "wording"

module Memprof
  module Check
    # A comparison as commands of GitHub Actions, which shows them beside the lines of a pull request.
    class Github
      # GitHub shows so many warnings a step.
      LIMIT = 10
      # In a message, and in a property, which a comma or a colon would end.
      ESCAPES = { "%" => "%25", "\r" => "%0D", "\n" => "%0A", ":" => "%3A", "," => "%2C" }.freeze
      # How lines match whose text is not in the diff.
      UNCHANGED = %w[same moved].freeze
      # Percent of a total: less on such a line is taken for noise.
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

      # A `require` takes a few bytes more or less from run to run. So a line that the pull request did not
      # change counts only if it makes a difference, and one that it changed by objects.
      def notable?(line)
        Comparison::MEASURES.any? do |measure|
          change = line[measure][:change]
          next false unless change.positive?

          (objects?(measure) && !UNCHANGED.include?(line[:match].to_s)) ||
            change * 100 >= @comparison.totals[measure][:before] * NOTABLE
        end
      end

      def objects?(measure) = measure.end_with?("objects")

      # Lines of gems are in no file of the repository.
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

      # Paths are from the directory of the program on; GitHub's from the root of the repository on.
      def prefix(directory, workspace)
        return "" if workspace.to_s.empty? || !directory.start_with?("#{workspace}/")

        "#{directory.delete_prefix("#{workspace}/")}/"
      end
    end
  end
end
