# frozen_string_literal: true

require "memprof/cli"
require "memprof/columns"

module Documents
  # The pages of docs/ that are written from tables of the code: `rake docs:reference`.
  module Reference
    # Names of commands that share options, the largest set first.
    SETS = { "dump commands" => Memprof::CLI::Flags::HEAPS, "tables" => Memprof::CLI::Flags::LISTS }.freeze

    FIRST_ROWS = /\Athe first N\b[\w ]*(?= \(default: \d+\)\z)/

    EXAMPLE = /, such as \d\w+/

    # Shorter sentences say little more than their heading.
    LEAST_WORDS = 6

    NOTE = "<!-- written by `rake docs:reference` -->"

    COLUMNS = <<~MARKDOWN
      # Columns

      #{NOTE}

      On a page, the tooltip of a heading says the same, also of headings that explain themselves and are not listed here.
    MARKDOWN

    OPTIONS = <<~MARKDOWN
      # Options

      #{NOTE}

      [Command line](cli.md#defaults) explains how a file sets defaults. "Below" means in `memprof help COMMAND`.

      %<sets>s

      option | effect
      ---|---
    MARKDOWN

    STATUS = <<~MARKDOWN
      # Exit status

      #{NOTE}

      Exit statuses of the commands. A closed pipe (`| head`) is not an error.

      status | commands | meaning
      ---|---|---
    MARKDOWN

    class << self
      # The text of each page, by its path.
      def pages
        { "docs/columns.md" => columns, "docs/options.md" => options, "docs/exit-status.md" => status }
      end

      private

      def columns
        sections = Memprof::Columns::SECTIONS.map do |title, rows|
          rows = rows.reject { |_, heading, _, sentence| plain?(heading, sentence) }
          rows.map! { |_, heading, _, sentence| open_row(heading, sentence) }
          "\n## #{title}\n\ncolumn | shows\n---|---\n#{rows.join}" if rows.any?
        end
        "#{COLUMNS}#{sections.join}"
      end

      # Whether the heading alone says as much.
      def plain?(heading, sentence)
        repeated = /\A(?:number of |name of the )?#{heading.downcase}\b(?!'| or)[^:]*\z/
        sentence.split.size < LEAST_WORDS || sentence.match?(repeated)
      end

      # Many options of one command have a table of their own, behind the table of all others.
      def options
        flags = Memprof::CLI::Flags::TABLE.group_by { |flag| [flag.short, flag.long, flag.value] }
        effects = flags.to_h { |names, same| [option(*names), effects(same)] }
        own = effects.select { |_, rows| rows.size == 1 }.group_by { |_, rows| rows[0].last }
        own.select! { |verb, same| Memprof::CLI::VERBS.key?(verb) && same.size > 5 }
        shared = effects.except(*own.each_value.flat_map { |same| same.map(&:first) })
        sets = SETS.map { |name, verbs| "**#{name.capitalize}** are #{verbs.split.join(", ")}." }
        tables = own.map { |verb, same| "#{heading(verb)}#{own_rows(same)}" }
        "#{format(OPTIONS, sets: sets.join("\n\n"))}#{shared_rows(shared)}#{tables.join}"
      end

      # As many effects in a row as fit into it.
      def shared_rows(effects)
        rows = effects.flat_map do |name, same|
          texts = filled(same.map { |sentence, verbs| "*#{verbs}*: #{sentence}" })
          [name, *["`#{name[/--[\w-]+/]}`"] * (texts.size - 1)].zip(texts).map { |row| open_row(*row) }
        end
        rows.join
      end

      def filled(texts)
        texts.each_with_object([]) do |text, rows|
          fits = rows.any? && rows.last.size + text.size < 130
          fits ? rows.last.concat("; ", text) : rows << text.dup
        end
      end

      def option(short, long, value) = "`#{[short, [long, value].compact.join(" ")].compact.join(", ")}`"

      def heading(verb) = "\n## memprof #{verb}\n\noption | effect\n---|---\n"

      def own_rows(effects) = effects.map { |name, ((sentence))| open_row(name, sentence) }.join

      # What an option does, and for which commands.
      def effects(flags)
        does = flags.flat_map do |flag|
          flag.verbs.map { |verb| [verb, shorter(flag.sentence(verb))] }
        end
        does.group_by(&:last).map { |sentence, same| [sentence, commands(same.map(&:first))] }
      end

      # Help has more room: for the name of the rows, for an example of a value.
      def shorter(sentence) = sentence.sub(FIRST_ROWS, "the first N rows").sub(EXAMPLE, "")

      def commands(verbs)
        return "all" if verbs == Memprof::CLI::VERBS.keys

        SETS.each do |name, set|
          verbs = [*(verbs - set.split), name] if (set.split - verbs).empty?
        end
        verbs.join(", ")
      end

      def status
        reading = (Memprof::CLI::Flags::HEAPS.split - ["console"]).join(", ")
        rows = Memprof::CLI::ExitStatus::TABLE.map { |row| open_row(*row.map(&:to_s)) }
        rows.each { |row| row.sub!(reading, "those that read dumps") }
        "#{STATUS}#{rows.join}"
      end

      # What looks like a tag or a column of a table would be one.
      def open_row(*cells) = "#{cells.map { |cell| cell.gsub(/[<|]/) { |mark| "\\#{mark}" } }.join(" | ")}\n"
    end
  end
end
