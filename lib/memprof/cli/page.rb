# frozen_string_literal: true

require_relative "../screen_width"
require_relative "../table"

module Memprof
  module CLI
    # An answer to read: headings, sentences and listings, in order, as text, Markdown or CSV.
    class Page
      WIDEST = 100 # width of sentences
      UNIT_STAYS = / +(?!(?:[KMGTPE]i)?B\b|%)/
      private_constant :WIDEST, :UNIT_STAYS

      def initialize(width: nil, paint: Paint.new)
        @width = width
        @paint = paint
        @sections = []
      end

      # Begins a section.
      def heading(text) = section.add(:heading, Printable.line(text))

      # Adds sentences to the section; after a listing, they begin a new one.
      def text(text)
        section if @sections.empty? || @sections.last.last&.first == :listing
        add(:text, Printable.line(text))
      end

      # Adds a line to what is above it.
      def note(text) = add(:note, Printable.line(text))

      # Begins a section of sentences.
      def paragraph(text) = section.add(:text, Printable.line(text))

      # Adds named facts, without unknown ones.
      def facts(facts)
        facts = facts.reject { |_, value| value.nil? || value.to_s.empty? }
        add(:facts, facts.transform_values { |value| Printable.line(value) }) unless facts.empty?
        self
      end

      # Adds rows; without a heading, and after sentences, they begin a section.
      def listing(listing, heading: nil)
        return self if listing.empty?

        if heading then heading(heading)
        elsif @sections.last&.last&.first != :heading then section
        end
        add(:listing, listing)
      end

      def to(format)
        return to_csv if format == :csv

        sections = @sections.reject(&:empty?).map do |parts|
          parts.map { |part| format == :markdown ? markdown(*part) : plain(*part) }.join
        end
        sections.join("\n")
      end

      protected

      def add(kind, content)
        @sections.last << [kind, content]
        self
      end

      private

      def section
        @sections << []
        self
      end

      # CSV is one table: the first.
      def to_csv
        _, listing = @sections.flatten(1).find { |kind, _| kind == :listing }
        listing ? listing.to_csv : ""
      end

      def plain(kind, content)
        return content.to_text(@paint, @width) if kind == :listing
        return plain_facts(content) if kind == :facts

        wrapped(content).map { |line| "#{kind == :heading ? @paint.call(line, :bold) : line}\n" }.join
      end

      # Values are wrapped beside their names.
      def plain_facts(facts)
        margin = facts.keys.map(&:length).max + 2
        facts.map do |name, value|
          first, *rest = wrapped(value, margin)
          first = "#{@paint.call(name.ljust(margin), :cyan)}#{first}"
          [first, *rest.map { |line| (" " * margin) + line }].map { |line| "#{line}\n" }
        end.join
      end

      def markdown(kind, content)
        case kind
        when :heading then "### #{content}\n\n"
        when :text then "#{content}\n"
        when :note then "\n#{content}\n"
        when :facts then content.map { |name, value| "- #{name}: #{Table.code(value)}\n" }.join
        else content.to_markdown
        end
      end

      def wrapped(text, margin = 0)
        width = [@width || WIDEST, WIDEST].min - margin
        lines = [+""]
        text.split(UNIT_STAYS).each do |word|
          lines << +"" if !lines.last.empty? && ScreenWidth.of(lines.last) + ScreenWidth.of(word) >= width
          lines.last << " " unless lines.last.empty?
          lines.last << word
        end
        # A word may be longer than the screen: a path, a name.
        lines.flat_map { |line| @width ? ScreenWidth.split(line, [@width - margin, 1].max) : [line] }
      end
    end
  end
end
