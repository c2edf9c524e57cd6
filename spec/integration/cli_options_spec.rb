# frozen_string_literal: true

require "memprof/cli"
require "stringio"
require "tmpdir"

# Whatever speaks of options knows all that the option parsers take.
RSpec.describe "Options of the command" do
  # What these print is an answer to the terminal alone, or goes to the argument OUT.
  without_output = %w[export convert start stop attach console web mcp completion help]

  verbs = Memprof::CLI::VERBS.keys

  let(:terminal) { Memprof::CLI::Terminal.new }

  def command(verb) = Memprof::CLI.command(verb, terminal)

  def long(verb) = Memprof::CLI::Flags.of(verb).map(&:long)

  def former(verb) = Memprof::CLI::Flags.of(verb).filter_map(&:was)

  def names(verb) = Memprof::CLI::Flags.of(verb).flat_map(&:names)

  def manual(verb)
    page = Memprof::CLI::ManPage.new(terminal).to_s.gsub("\\-", "-")
    page[/^\.SS memprof #{verb} .*?(?=^\.S[SH]|\z)/m].scan(/(?<=\\fB)--?[\w-]+/)
  end

  def bash(verb) = command("completion").bash[/^    #{verb}\) words="(.*)"/, 1].split

  def zsh(verb)
    command("completion").zsh[/^    #{verb}\) _arguments (.*)/, 1].scan(/'(--?[\w-]+)\[/).flatten
  end

  def fish(verb)
    lines = command("completion").fish.scan(/__fish_seen_subcommand_from #{verb}' (.*?) -d/).flatten
    lines.flat_map do |line|
      line.scan(/-l (\S+)/).map { |(name)| "--#{name}" } + line.scan(/-s (\S)/).map { |(name)| "-#{name}" }
    end
  end

  verbs.each do |verb|
    it "are in the help, the manual, the completions and the documentation: #{verb}" do
      places = {
        help: command(verb).help.scan(/(?<=[ ,])--?\w[\w-]*/), manual: manual(verb), bash: bash(verb),
        zsh: zsh(verb), fish: fish(verb), docs: File.read("docs/options.md").scan(/--?\w[\w-]*/)
      }
      missing = places.transform_values { |known| names(verb) - known - %w[-h --help] }
      expect(missing.reject { |_, options| options.empty? }).to eq({})
    end

    it "can be given in .memprof.yml: #{verb}" do
      Dir.mktmpdir do |directory|
        path = File.join(directory, "defaults.yml")
        lines = long(verb).map { |name| "  #{name.delete_prefix("--").tr("-", "_")}: 7\n" }
        File.write(path, "#{verb}:\n#{lines.join}")
        expect(Memprof::CLI::Defaults.new(verb, path).arguments(command(verb).flags))
          .to eq(long(verb).map { |name| "#{name}=7" })
      end
    end
  end

  it "are each in one place of the table, for commands that there are" do
    taken = Memprof::CLI::Flags::TABLE.flat_map { |flag| flag.verbs.map { |verb| [verb, flag.long] } }
    expect(taken.tally.select { |_, times| times > 1 }).to eq({})
    expect(taken.map(&:first).uniq - verbs).to eq([])
    expect(verbs.reject { |verb| names(verb).include?("--help") }).to eq([])
  end

  it "have one meaning each: a value of one kind, in all commands, and no former meaning" do
    meanings = Memprof::CLI::Flags::TABLE.group_by(&:long)
      .transform_values { |flags| flags.map(&:value).uniq }
    expect(meanings.select { |_, values| values.size > 1 }).to eq({})
    # The former name of an option of one command, and an option of others; no command has both.
    both = Memprof::CLI::Flags::TABLE.filter_map(&:was).uniq & meanings.keys
    expect(both).to match_array(%w[--force --sample])
    expect(both.select { |was| verbs.any? { |verb| long(verb).include?(was) && former(verb).include?(was) } })
      .to eq([])
  end

  it "have defaults that they take themselves" do
    defaults = Memprof::CLI::Flags::TABLE.flat_map do |flag|
      flag.verbs.map { |verb| [verb, flag.long, flag.default(verb)] }
    end
    expect(defaults).to include(["top", "--limit", 20], ["leaks", "--for", 60],
      ["check", "--max-increase", 2.0],
      ["web", "--max-upload", 2 << 30], ["trace", "--by", :action], ["run", "--peak", nil])
  end

  it "have former names that still work, and say so on a terminal" do
    former = Memprof::CLI::Flags::TABLE.select(&:was)
    expect(former.flat_map { |flag| flag.verbs.map { |verb| "#{verb} #{flag.was}" } })
      .to include("dump --values", "attach --duration", "leaks --force", "tree --min", "subset --sample")
    former.each do |flag|
      flag.verbs.each do |verb|
        value = { "--contents" => "none", "--for" => "5s" }.fetch(flag.long, "2") if flag.value
        err = StringIO.new
        err.define_singleton_method(:tty?) { true }
        terminal = Memprof::CLI::Terminal.new(out: StringIO.new, err: err)
        option = [flag.was, value].compact.join("=")
        expect(Memprof::CLI.command(verb, terminal).start([option, option, "--help"])).to eq(0)
        expect(err.string).to eq("memprof: #{flag.was} is now #{flag.long}\n")
      end
    end
  end

  it "are known whatever was loaded before" do
    result = run_ruby(<<~RUBY)
      require "memprof"
      require "memprof/cli"
      Memprof::CLI::VERBS.each_key { |verb| Memprof::CLI.command(verb, Memprof::CLI::Terminal.new).help }
    RUBY
    expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
  end

  it "are the same for what is printed everywhere" do
    lacking = (verbs - without_output).reject { |verb| long(verb).intersect?(%w[--output]) }
    expect(lacking).to eq([])
    formats = (verbs - %w[dump export convert]).select { |verb| long(verb).include?("--format") }
    expect(formats.reject { |verb| long(verb).include?("--json") }).to eq([])
    expect(formats.reject { |verb| long(verb).include?("--markdown") }).to eq([])
  end
end

RSpec.describe Memprof::CLI::Suggestion do
  it "knows what was meant, if anything was" do
    { "leeks" => "leaks", "rnu" => "run", "hlep" => "help" }.each do |wrong, meant|
      expect(described_class.of(wrong, Memprof::CLI::VERBS.keys)).to eq(" (did you mean #{meant}?)")
    end
    expect(described_class.of("--mni", %w[--limit --min])).to eq(" (did you mean --min?)")
    expect(described_class.of("zzz", Memprof::CLI::VERBS.keys)).to eq("")
  end
end
