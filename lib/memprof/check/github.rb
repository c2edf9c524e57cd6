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
      private_constant :LIMIT, :ESCAPES

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
        grown = @comparison.lines.select do |line|
          Comparison::MEASURES.any? { |measure| line[measure][:change].positive? }
        end
        [*errors, *grown.first(@limit).map { |line| warning(line) }].map { |line| "#{line}\n" }.join
      end

      private

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
