# frozen_string_literal: true

require "memprof/cli"

RSpec.describe Memprof::CLI::ExitStatus do
  let(:constants) { described_class.constants.map { |name| described_class.const_get(name) }.grep(Integer) }

  it "has a row for each status, which commands take from here" do
    numbers = described_class::TABLE.map { |status, *| status.to_s[/\A\d+/] }.compact.map(&:to_i).uniq
    expect(numbers).to match_array(constants)
    files = Dir[File.expand_path("../../../lib/memprof/{cli.rb,cli/**/*.rb}", __dir__)]
    used = files.reject { |file| file.end_with?("/exit_status.rb") }.map { |file| File.read(file) }.join
    described_class.constants.each do |name|
      next unless described_class.const_get(name).is_a?(Integer)

      expect(used).to match(/ExitStatus::#{name}\b/), "nothing exits with #{name}"
    end
    expect(used.scan(/\? \d : \d\b|^\s+1(?:26|27|30)$/)).to eq([])
  end

  it "names commands and options that there are" do
    flags = Memprof::CLI::Flags
    described_class::TABLE.map { |_, commands, _| commands }.uniq.-(["all"]).each do |commands|
      next if commands.start_with?("--")

      commands.split(", ").each do |command|
        verb, option = command.split
        expect(Memprof::CLI::VERBS).to include(verb)
        expect(flags.of(verb).map(&:long)).to include(option) if option
      end
    end
  end
end
