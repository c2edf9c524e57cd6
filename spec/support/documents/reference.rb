# frozen_string_literal: true

require "memprof/cli"
require "memprof/columns"

module Documents
  # The pages of docs/ that are written from tables of the code: `rake docs:reference`.
  module Reference
    NOTE = "<!-- written by `rake docs:reference` -->"

    COLUMNS = <<~MARKDOWN
      # Columns

      #{NOTE}

      What the columns of commands, reports and web pages show. On a page, the tooltip of a heading says the same. `--format csv` has exact
      numbers under short names; [Report formats](formats.md) has the keys of JSON.
    MARKDOWN

    OPTIONS = <<~MARKDOWN
      # Options

      #{NOTE}

      The options of all commands, in the order of `memprof help COMMAND`. [Command line](cli.md) explains the commands, and how a file sets
      defaults. What is "below" is in the help of the command.

      | option | commands | effect |
      |---|---|---|
    MARKDOWN

    STATUS = <<~MARKDOWN
      # Exit status

      #{NOTE}

      Exit statuses of the commands. A closed pipe (`| head`) is not an error.

      | status | commands | meaning |
      |---|---|---|
    MARKDOWN

    class << self
      # The text of each page, by its path.
      def pages
        { "docs/columns.md" => columns, "docs/options.md" => options, "docs/exit-status.md" => status }
      end

      private

      def columns
        sections = Memprof::Columns::SECTIONS.map do |title, rows|
          rows = rows.map { |_, heading, _, sentence| row(heading, sentence) }
          "\n## #{title}\n\n| column | shows |\n|---|---|\n#{rows.join}"
        end
        "#{COLUMNS}#{sections.join}"
      end

      def options
        rows = Memprof::CLI::Flags::TABLE.flat_map do |flag|
          name = "`#{[flag.short, [flag.long, flag.value].compact.join(" ")].compact.join(", ")}`"
          flag.verbs.group_by { |verb| flag.sentence(verb) }.map do |sentence, verbs|
            row(name, verbs == Memprof::CLI::VERBS.keys ? "all" : verbs.join(", "), sentence)
          end
        end
        "#{OPTIONS}#{rows.join}"
      end

      def status
        "#{STATUS}#{Memprof::CLI::ExitStatus::TABLE.map { |row| row(*row.map(&:to_s)) }.join}"
      end

      # What looks like a tag or a column of a table would be one.
      def row(*cells) = "| #{cells.map { |cell| cell.gsub(/[<|]/) { |mark| "\\#{mark}" } }.join(" | ")} |\n"
    end
  end
end
