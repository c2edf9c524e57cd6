# frozen_string_literal: true

require "set"

require_relative "source"
require_relative "wording"

module Memprof
  # The answer of {Heap::Verdict} in words: for the command, its JSON, and the pages.
  class VerdictWording
    TRENDS = {
      "one_heap" => "",
      "unknown" => "two dumps show no trend",
      "levels_off" => "levels off, as a cache that fills"
    }.freeze
    SHARE = 10 # a line that allocated one in so many bytes of a class is named
    NOISE = 256 << 10 # bytes by which a part of RSS changes all the time
    SOON = 10 # seconds: what was gained in less says nothing of an hour
    HOUR = 3600
    LINES = 3 # of code
    METHOD = "method"
    BLOCK = "<block>" # of malloc, as Rust names it
    MALLOCED = "malloc block"
    PARTS = 3 # of RSS
    SOURCE = 64 # characters
    # A line that only delegates the work, as in a middleware.
    PASSES_ON = /\A(?:[\w, ]+ = )?(?:@?\w+\.call\(?[\w, ]*\)?|(?:yield|super)\b.*)\z/
    OBJECTS = %w[slots_used objects iseqs].freeze # items of the ledger
    private_constant :TRENDS, :SHARE, :NOISE, :SOON, :HOUR, :LINES, :METHOD, :BLOCK, :MALLOCED, :PARTS,
      :SOURCE, :PASSES_ON, :OBJECTS

    class << self
      # The answer with its sentences, and with the source of each line, if its file can be read.
      def complete(answer)
        words = new(answer)
        findings = answer[:findings].map do |finding|
          own = sourced(finding[:own])
          own = nil if own && PASSES_ON.match?(own[:source].to_s)
          finding.merge(sentence: words.sentence(finding), own: own,
            lines: finding[:lines].map { |line| sourced(line) })
        end
        answer.merge(title: words.title, findings: findings)
      end

      # One line: the largest growth.
      def summary(answer)
        words = new(answer)
        finding = answer[:findings].first
        finding ? words.sentence(finding) : words.title
      end

      # Whether the growth continues: a filling cache is not a failure.
      def grows?(answer)
        words = new(answer)
        answer[:findings].any? { |finding| finding[:trend] != "levels_off" } || words.native? || words.loses?
      end

      # Objects gained since the first dump; for one dump, all.
      def more(finding)
        first, *later = finding[:count]
        later.empty? ? first : later.last - first
      end

      # The path, and other paths to the same objects.
      def retained_by(finding)
        [finding[:retained_by], *finding[:also]].map { |path| Wording.phrase(path) }.join("; also ")
      end

      private

      def sourced(line) = line&.merge(source: Source.line(line[:file], line[:line]))
    end

    # `pid` is the process for further commands; `malloc` are lines with their native memory in bytes.
    def initialize(answer, pid: nil, malloc: [])
      @answer = answer
      @pid = pid
      @malloc = malloc
      @said = Set.new
    end

    def title
      count = @answer[:findings].size + @answer[:more]
      return "Not known: #{@answer[:unknown]}" if @answer[:unknown]
      return large(count) if one?

      first = "Native memory grows most, then " if native? && count.positive?
      return "#{first}#{Units.plural(count, "finding")}, in #{@answer[:heaps]} dumps" if count.positive?

      native? || loses? ? "No Ruby object grows, native memory does" : "Nothing grows"
    end

    # Whether C code causes most of the RSS growth, and RSS grows from dump to dump.
    def native?
      memory = @answer[:memory]
      return false if one? || memory.nil?
      return false unless memory[:cause] && memory[:cause][:key] == "malloc"

      steps = @answer[:rss].compact.each_cons(2).map { |before, after| after - before }
      memory[:objects] * 2 < memory[:cause][:change] && steps.all?(&:positive?) && in_use?(memory[:cause])
    end

    # "32,000 more String instances, with what they retain 2.2 MiB more".
    def sentence(finding)
      more = self.class.more(finding)
      gained = Units.bytes(finding[:gained])
      return "#{instances(finding[:count].last, finding)} grew by #{gained}" if finding[:in_place]

      places = finding[:places]
      everywhere = ", in #{Units.plural(places, "place")} that are alike" if places > 1
      list = ", each retained by another" if finding[:list]
      return "#{one(finding)}#{malloced(finding)}#{everywhere}#{list}" if one?

      "#{instances(more, finding, "more ")} #{retain(more)} #{gained}#{malloced(finding)}#{everywhere}#{list}"
    end

    # One dump only shows totals.
    def one? = @answer[:heaps] == 1

    def reachable
      return "One dump shows what is large; two or more, or a PID, show what grows." if one?

      sizes = @answer[:reachable].map { |sum| Units.bytes(sum[:size]) }
      time = @answer[:seconds]
      "Reachable objects: #{sizes.join(", ")}#{" in #{Cell.text(time, :seconds)}" if time && time >= SOON}."
    end

    # Memory outside of objects is in the dumps, unless /proc could not be read.
    def memory
      memory = @answer[:memory]
      return parts_of_rss(memory) if one?
      return memory_of_blocks unless memory

      lost = memory_of_blocks if loses?
      [grown(memory), lost, native? ? native_lines : other_lines].compact.join(" ")
    end

    # Whether C code loses more and more blocks, according to dumps with blocks.
    def loses?
      series = @answer.dig(:blocks, :series) || [0]
      series.last - series.first >= NOISE && series.each_cons(2).all? { |before, after| before < after }
    end

    # Blocks of C code, if they are a good part of the growth.
    def blocks
      blocks = @answer[:blocks] || {}
      return "Whether C code leaks is not known: #{blocks[:unknown]}." if blocks[:unknown]
      return if blocks[:count].to_i.zero?
      return if !one? && blocks[:bytes] * SHARE < @answer.dig(:memory, :cause, :change).to_i

      count, largest = blocks.values_at(:count, :largest)
      same = ", #{Units.count(largest[:count])} of them of #{Units.bytes(largest[:size])}" if largest
      "Nothing references #{Units.plural(count, "block")} of malloc (#{Units.bytes(blocks[:bytes])}#{same})."
    end

    # Nothing is repeated, and on a screen only the first finding is described in `full`: the answer remains
    # short.
    def facts(finding, full: finding.equal?(@answer[:findings].first))
      {
        "Retained by" => self.class.retained_by(finding),
        "Allocated at" => allocated(finding, full ? LINES : 1),
        "Application" => once(application(finding)),
        "Source" => (once(source(finding)) if full),
        "Mostly in" => (mostly(finding[:mostly]) if full),
        (one? && finding[:kind] != "object" ? "Now at" : "Because") => once(finding[:why]),
        "Age" => (age(finding) if one? && full),
        "Dumps" => (dumps(finding) unless one?)
      }
    end

    # "levels off, as a cache that fills", or a projection to an hour.
    def trend(finding)
      trend = TRENDS[finding[:trend]]
      [trend, (in_an_hour(finding) unless finding[:trend] == "levels_off")].compact.join("; ")
    end

    private

    # For dumps without RSS: native memory according to their blocks, if they have any.
    def memory_of_blocks
      series = @answer.dig(:blocks, :series)
      return "The dumps do not say what RSS was: whether native memory grows is not known." unless series

      sizes = series.map { |bytes| Units.bytes(bytes) }
      lost = "Blocks of malloc that nothing references: #{sizes.join(", ")}."
      [lost, (blocks if loses?)].compact.join(" ")
    end

    # Memory that becomes resident is not growth if it was already in use, like the stacks of threads.
    def in_use?(cause)
      first, last = Array(@answer[:malloc]).values_at(0, -1)
      first.nil? || last.nil? || (last - first) * 2 >= cause[:change]
    end

    def native_lines
      attach = "`memprof attach #{@pid || "PID"} --malloc` shows which lines allocate it."
      return [(blocks unless loses?), attach].compact.join(" ") if @malloc.empty?

      lines = @malloc.first(LINES).select { |_, bytes| bytes * SHARE >= @malloc.dig(0, 1) }
      "Allocated meanwhile at #{sites(lines)}."
    end

    # Lines with live malloc memory outside of all findings: too little to stand out from normal fluctuation.
    def other_lines
      known = @answer[:findings].flat_map { |finding| finding[:lines] }
        .map { |line| "#{line[:file]}:#{line[:line]}" }
      lines = @malloc.reject do |site, bytes|
        bytes < NOISE || known.any? { |place| place.end_with?(site) }
      end
      "Live memory of malloc since then: #{sites(lines.first(LINES))}." if lines.any?
    end

    # Native code without its address in the process.
    def sites(lines)
      lines.map { |site, bytes| "#{site.sub(/ \[0x\h+\]/, "")} (#{Units.bytes(bytes)})" }.join(", ")
    end

    def large(count)
      total = Units.bytes(@answer[:reachable].first[:size])
      "#{total} reachable, #{count.zero? ? "and nothing in it is large" : Units.plural(count, "finding")}"
    end

    # "1,000 Session instances retain 8.2 MiB (61.0 %)"
    def one(finding)
      count = finding[:count].last
      size = finding[:gained]
      share = Units.percentage(size * 100.0 / @answer[:reachable].first[:size])
      "#{instances(count, finding)} #{retain(count)} #{Units.bytes(size)} (#{share})"
    end

    def retain(count) = count == 1 ? "retains" : "retain"

    # ", 25.6 MiB of it in 242,200 blocks of malloc", if that is most of it, but not all.
    def malloced(finding)
      blocks = finding[:blocks]
      return if blocks.nil? || blocks[:size] * 2 < finding[:gained] || block?(finding[:class])

      ", #{Units.bytes(blocks[:size])} of it in #{Units.plural(blocks[:count], "block")} of malloc"
    end

    def block?(name) = name == BLOCK

    # The parts of RSS.
    def parts_of_rss(memory)
      return if memory.nil?

      largest = parts(memory).max_by(PARTS) { |_, bytes| bytes }
      said = largest.map { |name, bytes| "#{name} #{Units.bytes(bytes)}" }.join(", ")
      "RSS was #{Units.bytes(memory[:after])}: #{said}."
    end

    # The number of GC runs since their allocation: objects in a cache have all ages.
    def age(finding)
      first, last = finding[:generations]
      now = @answer[:generation]
      return if first.nil? || now.nil?

      ages = [now - last, now - first].uniq.map { |age| Units.count(age) }
      "#{ages.join(" to ")} #{ages == ["1"] ? "GC" : "GCs"}"
    end

    # The growth of RSS, and its main parts; small ones are left out.
    def grown(memory)
      change = memory[:change]
      from_to = "#{Units.bytes(memory[:before])} to #{Units.bytes(memory[:after])}"
      return "RSS stayed at #{Units.bytes(memory[:after])}." if change.abs < NOISE

      least = [NOISE, change.abs / SHARE].max
      parts = parts(memory).select { |_, bytes| bytes.abs >= least }
      parts = parts.max_by(PARTS) { |_, bytes| bytes.abs }.sort_by { |_, bytes| -bytes }
      said = parts.map { |name, bytes| "#{name} #{Cell.text(bytes, :growth)}" }
      "RSS #{change.positive? ? "grew" : "shrank"} by #{Units.bytes(change.abs)} (#{from_to})" \
        "#{": #{said.join(", ")}" if said.any?}."
    end

    # Ruby objects split into reachable ones and garbage, which the next GC frees.
    def parts(memory)
      reachable = @answer[:reachable].map { |sum| sum[:size] }
      reachable.unshift(0) if one?
      gained = reachable.last - reachable.first
      others = memory[:items].reject { |item| OBJECTS.include?(item[:key]) }
        .map { |item| [item[:name].sub(", not ", " but not "), item[:change]] } # a list has commas
      # Of blocks of malloc, C code may have reachable ones.
      return [["Ruby objects", memory[:objects]], *others] if @answer.dig(:blocks, :series)

      [["reachable objects", gained], ["garbage", memory[:objects] - gained], *others]
    end

    def once(text)
      text if text && @said.add?(text)
    end

    # On one line, next to its name, on a screen of 80 columns.
    def source(finding)
      text = (finding[:own] || finding[:lines].first)&.fetch(:source)
      text && text.length > SOURCE ? "#{text[0, SOURCE - 3]}..." : text
    end

    def instances(count, finding, more = nil)
      return classes(count, finding[:class], more) if finding[:kind] == "class"

      name, place = kind(finding[:class])
      one = finding[:kind] == "object" && ![METHOD, MALLOCED].include?(name) ? "#{name} instance" : name
      "#{Units.count(count)} #{more}#{one}#{"s" unless count == 1}#{" written at #{place}" if place}"
    end

    # "600 anonymous classes", "160 more classes Types::TYPE#", "1 singleton class of Query::Matchers"
    def classes(count, name, more)
      kind, plural = name == "#<Module>" ? %w[module modules] : %w[class classes]
      what = count == 1 ? kind : plural
      object = name[/\A#<Class:(.+)>\z/, 1]
      return "#{Units.count(count)} #{more}singleton #{what} of #{object}" if object

      "#{Units.count(count)} #{more}#{name.start_with?("#<") ? "anonymous #{what}" : "#{what} #{name}"}"
    end

    # Several lines, if each allocated a good part of the same class.
    def allocated(finding, limit)
      first, *others = finding[:lines].first(limit)
      return unless first

      others.select! { |line| line[:class] == first[:class] && line[:size] * SHARE >= first[:size] }
      return place(first, finding) if others.empty?

      [first, *others].map { |line| "#{Cell.place(line)}: #{what(line)}" }.join("; ")
    end

    # The application's line, if the first line belongs to a gem.
    def application(finding)
      own = finding[:own]
      return if own.nil? || own.values_at(:file, :line) == finding[:lines].first&.values_at(:file, :line)

      place(own, finding)
    end

    # A line, and its allocations, unless the sentence mentions them.
    def place(line, finding)
      more = self.class.more(finding)
      all = line[:class] == finding[:class] && line[:count] == more
      all ? Cell.place(line) : "#{Cell.place(line)}: #{what(line)}"
    end

    def mostly(mostly)
      return if mostly.nil? || block?(mostly[:class]) # the sentence says it

      "#{Wording.phrase(mostly[:path])} -> #{what(mostly)}"
    end

    def what(sum)
      "#{kind(sum[:class]).first} (#{Units.count(sum[:count])}, #{Units.bytes(sum[:size])})"
    end

    # A class, or for a block the place where it is written.
    def kind(name)
      return [METHOD] if name == "<ment>"
      return [MALLOCED] if block?(name)

      name.start_with?("Proc ") ? ["Proc", Paths.short(name.delete_prefix("Proc "))] : [name]
    end

    def dumps(finding)
      sizes = finding[:size]
      all = "#{Cell.text(sizes, :series)} #{sizes.map { |size| Units.bytes(size) }.join(", ")}"
      [all, trend(finding)].reject(&:empty?).join("; ")
    end

    def in_an_hour(finding)
      time = @answer[:seconds]
      "#{Units.bytes((finding[:gained] * HOUR / time).round)} in an hour" if time && time >= SOON
    end
  end
end
