# frozen_string_literal: true

require "yaml"

# A program of spec/fixtures/verdict, which calls `look` three times, and the right answer to its three dumps.
# Used by the spec and the benchmark of `memprof leaks`.
class VerdictProgram
  DIRECTORY = File.expand_path("../fixtures/verdict", __dir__)
  FINDINGS = /^\d+\. .*?(?=^\d+\. |^\.\.\. and |^Note: |\z)/m
  NATIVE = "No Ruby object grows, native memory does"
  KEYS = %w[nothing native holder line at below why gem ruby].freeze
  private_constant :FINDINGS, :NATIVE, :KEYS

  def self.all
    YAML.load_file(File.join(DIRECTORY, "answers.yml")).map { |name, answer| new(name, answer) }
  end

  attr_reader :name, :path

  def initialize(name, answer)
    @name = name
    @path = File.join(DIRECTORY, "#{name}.rb")
    @answer = answer == "nothing" ? { "nothing" => true } : answer
    unknown = @answer.keys - KEYS
    raise ArgumentError, "#{name}: #{unknown.join(", ")}" if unknown.any?
  end

  def nothing? = @answer["nothing"]
  def native? = @answer["native"]

  # Its description, from the first comment.
  def description
    comment = File.foreach(@path).drop(2).take_while { |line| line.start_with?("#") }
    comment.map { |line| line[2..].chomp }.join(" ")
  end

  # The reason why it can't be run here, or nil.
  def missing
    gem, ruby = @answer.values_at("gem", "ruby")
    return "#{gem} is not installed" if gem && !installed?(gem)

    "it leaks in Ruby #{ruby} only" if ruby && !Gem::Requirement.new(ruby).satisfied_by?(Gem.ruby_version)
  end

  # The numbers of the lines that allocate leaked objects.
  def lines = numbers("line")

  # The numbers of the lines that allocate leaked objects, or objects that these retain.
  def all_lines = lines + numbers("below")

  # The numbers of the lines of this program that a text mentions.
  def lines_in(text) = text.scan(/\b#{@name}\.rb:(\d+)/).flatten.map(&:to_i)

  # The parts missing in the first finding of the text of `memprof leaks`.
  #
  # @return [Array<String>] "holder", "line", "mechanism"; for other answers, the expected one
  def not_named(text)
    return accused(text).empty? && !text.start_with?(NATIVE) ? [] : ["nothing grows"] if nothing?
    return text.start_with?(NATIVE) ? [] : ["native memory"] if native?

    finding = findings(text).first.to_s
    named = {
      "holder" => finding[/^Retained by +(.*)/, 1].to_s.include?(@answer["holder"]),
      "line" => (lines - lines_in(finding)).empty? && finding.include?(@answer.fetch("at", "")),
      "mechanism" => finding.match?(/#{@answer["why"]}/)
    }
    named.reject { |_, there| there }.keys
  end

  # @return ["right", "partly", "wrong"] partly is the holder without the line, or without the mechanism
  def judge(text)
    missing = not_named(text)
    return "right" if missing.empty?

    nothing? || native? || missing.include?("holder") ? "wrong" : "partly"
  end

  # The objects that a text calls leaked: a filling cache does not count.
  def accused(text) = findings(text).grep_v(/^Dumps .*levels off/)

  private

  # Includes dependencies: for a new Ruby, Debian may have only some of them.
  def installed?(name, seen = [])
    return true if seen.include?(name)

    seen << name
    found = Gem::Specification.find_all_by_name(name).max_by(&:version) or return false
    found.runtime_dependencies.all? { |dependency| installed?(dependency.name, seen) }
  end

  def numbers(key)
    source = File.readlines(@path)
    Array(@answer[key]).map do |text|
      found = source.each_index.select { |at| source[at].include?(text) && !source[at].start_with?("#") }
      found.one? ? found.first + 1 : raise("#{@path} has #{found.size} lines with #{text}")
    end
  end

  def findings(text) = text.scan(FINDINGS).map { |finding| finding.gsub(/\n +/, " ") }
end
