# frozen_string_literal: true

require_relative "../documents"

module Documents
  # Finds what reads badly on a page: long sentences, inversions, and words for which the field has others.
  # `rake docs:words` lists it and counts words; spec/docs_spec.rb expects nothing, and at most {MOST} words.
  module Words
    # The most words of a sentence; code counts as one.
    LONGEST = 30

    # The most words of README.md and docs/ together, counted as `wc -w` does.
    MOST = 30_000

    # What not to write, and what to write instead. Those with \A are about the beginning of a sentence.
    RULES = {
      /\b(?:born|birth|dies|died|death|made at)\b/i => "allocated, freed",
      /\b(?:keeps?|kept|holds?|held|stays?)\b(?! the GVL| its lock| track| up)/i => "retain, remain, store",
      /\bstands? still\b/i => "paused",
      /\bpass(?:es|ed)? over\b/i => "skipped",
      /\bin vain\b|\bfor for ever\b/i => "deadlock",
      /\bfor longest\b/i => "least recently used",
      /\blistens? to\b/i => "hook into",
      /\blets? go\b|\banew\b/i => "release, again",
      /\b(?<!there )(?:is|are|was|were) no (?!longer|more|less)\w/i => "is not a",
      /\b(?:nobody|no one)\b/i => "name the subject",
      /\btells?\b|\btold\b/i => "says, shows",
      /\bwould go with\b/i => "is freed with",
      /\b(?:none|that|those) of (?:it|them)\b/i => "name the thing",
      /\A(?:What|Those|Who)\b[^?]*[.:]\z/ => "begin with the subject",
      /\A(?:\w+ed|known|shown|told|missing|found|left out)(?: \w+ly)? (?:is|are|was|were)\b/i => "inversion",
      /\A(?:Also|Not) \w+ (?:is|are|was|were)\b/ => "inversion",
      /\AOf\b/ => "inversion",
      /\AOnly (?:if|when|with|of|then)\b.* (?:is|are|may|can|does|has) (?:the|an?|it|they)\b/ => "inversion"
    }.freeze

    LISTS = /CODE(?:,? (?:(?:and|or) )?CODE)+|(?:\b\d[-\d]*:? [^.,;:]+[,;] ){3,}/
    SEPARATOR = /^[-:| ]*---[-:| ]*$/ # of a table
    # A sentence ends before a capital letter, code or a link, and before our own name.
    SENTENCE = /(?<=[.?!])\)?\s+(?=[[:upper:]`*\[(]|memprof\b)/

    Finding = Struct.new(:place, :problem, :sentence) do
      def to_s = "#{place}: #{problem}: #{sentence}"
    end

    class << self
      # @return [Hash{String => Integer}] words of each page, tables and code included
      def counts(pages) = pages.to_h { |page| [Documents.relative(page), File.read(page).split.size] }

      # @return [Array<Finding>] what reads badly on a page
      def findings(page)
        sentences(File.read(page)).flat_map do |line, sentence|
          place = "#{Documents.relative(page)}:#{line}"
          problems(sentence).map { |problem| Finding.new(place, problem, sentence) }
        end
      end

      # @return [Array<String>] what is wrong with a sentence
      def problems(sentence)
        words = sentence.scan(/[[:alnum:]][[:alnum:]'’.,-]*/).size
        long = words > LONGEST ? ["#{words} words, at most #{LONGEST}"] : []
        long + RULES.filter_map { |pattern, instead| instead if sentence.match?(pattern) }
      end

      # The sentences of a page with the lines that they begin in, without code, tables and headings.
      def sentences(text)
        paragraphs(text).flat_map do |line, paragraph|
          start = 0
          paragraph.split(SENTENCE).map do |sentence|
            start = paragraph.index(sentence, start)
            [line + paragraph[0, start].count("\n"), plain(sentence)]
          end
        end
      end

      private

      # Paragraphs and items of lists with their lines.
      def paragraphs(page)
        blank = page.gsub(/^```.*?^```$|<!--.*?-->/m) { |part| "\n" * part.count("\n") }
        groups = blank.lines.each.with_index(1).slice_when { |(before, _), (line, _)| apart?(before, line) }
        groups.map { |lines| [lines.first.last, lines.map(&:first).join] }
          .reject { |_, text| text.match?(/\A(?:[#!]|\s*\z)/) || text.match?(SEPARATOR) }
      end

      def apart?(before, line)
        before.strip.empty? || line.match?(/\A\s*(?:\z|- |#|!|\d+\. )/) || before.match?(/\A[#!]/)
      end

      # Code, or a list of it, or of numbers, is one word, a link its text, a name in italics or bold a name.
      def plain(sentence)
        text = sentence.gsub(/\A\s*(?:-|\d+\.)\s+/, "").gsub(/`[^`]*`/, "CODE")
        text = text.gsub(/\[([^\]]*)\]\([^)]*\)/, '\1').gsub(/\*+([^*]+)\*+/) { Regexp.last_match(1).upcase }
        text.gsub(/\s+/, " ").gsub(LISTS, "CODE").strip
      end
    end
  end
end
